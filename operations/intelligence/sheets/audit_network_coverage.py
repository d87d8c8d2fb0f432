"""The report of audit_network_coverage."""

from operations.intelligence.audit_network_coverage import Coverage, NetworkLines, OutsideLine
from operations.intelligence.finding import Finding
from operations.intelligence.lines.network_told import NetworkTold
from operations.intelligence.sheet import Chart, Figure, Sheet, Table, Value

CHARTED = 12


def sheet(found: Finding[Coverage]) -> Sheet:
    """Mis-steered lines first: they are what a push of steering mends."""
    data = found["data"]
    return {
        "title": "Network coverage",
        "headline": headline(data),
        "figures": figures(found),
        "charts": [by_country(data)],
        "tables": [networks(data), lines(data)],
    }


def headline(data: Coverage) -> str:
    """What to know before anything else."""
    totals = data["totals"]
    wrong = totals["mis_steered"] + totals["outside_zone"] + totals["no_package"]
    if not wrong:
        return f"All {totals['covered']} lines that were seen lately are on networks that their packages cover."
    return (
        f"{totals['mis_steered']} lines are steered to networks outside their packages, {totals['outside_zone']} are where their packages "
        f"do not work, and {totals['no_package']} have no package; in 28 days that cost {data['cost_outside']:.2f} EUR, "
        f"and {data['charged_outside']:.2f} EUR were charged for it."
    )


def figures(found: Finding[Coverage]) -> list[Figure]:
    """The totals."""
    data, totals = found["data"], found["data"]["totals"]
    return [
        {"label": "Lines looked into", "kind": "number", "value": found["sampled"]},
        {"label": "Covered", "kind": "number", "value": totals["covered"]},
        {"label": "Mis-steered", "kind": "number", "value": totals["mis_steered"]},
        {"label": "Outside their zone", "kind": "number", "value": totals["outside_zone"]},
        {"label": "Without a package", "kind": "number", "value": totals["no_package"]},
        {"label": "Not seen in 7 days", "kind": "number", "value": totals["not_seen_lately"] + totals["never_seen"]},
        {"label": "Cost to the reseller, outside packages", "kind": "money", "value": data["cost_outside"]},
        {"label": "Charged to balances, outside packages", "kind": "money", "value": data["charged_outside"]},
    ]


def by_country(data: Coverage) -> Chart:
    """Covered, mis-steered and other lines of each country."""
    sums: dict[str, list[int]] = {}
    for row in data["networks"]:
        if row["country"] is not None:
            known = sums.setdefault(row["country"], [0, 0, 0])
            known[0] += row["covered"]
            known[1] += row["mis_steered"]
            known[2] += row["lines"] - row["covered"] - row["mis_steered"]
    places = sorted(sums, key=lambda country: (-sums[country][1], -sum(sums[country]), country))[:CHARTED]
    labels = ("Covered", "Mis-steered", "Not covered otherwise")
    return {
        "title": "Lines by country",
        "shape": "stacked",
        "kind": "number",
        "places_kind": "country",
        "places": places,
        "series_kind": "word",
        "series": [{"label": label, "values": [sums[country][at] for country in places]} for at, label in enumerate(labels)],
    }


def networks(data: Coverage) -> Table:
    """The networks that lines are on."""
    return {
        "title": "Networks",
        "columns": [
            {"label": "Country", "kind": "country"},
            {"label": "Network", "kind": "network"},
            {"label": "Operator", "kind": "text"},
            {"label": "Lines", "kind": "number"},
            {"label": "Mis-steered", "kind": "number"},
            {"label": "Share mis-steered", "kind": "percent"},
            {"label": "Cost outside", "kind": "money"},
            {"label": "Charged outside", "kind": "money"},
        ],
        "rows": [network_row(row) for row in data["networks"]],
        "note": f"{data['more_networks']} networks more." if data["more_networks"] else None,
    }


def network_row(row: NetworkLines) -> list[Value]:
    """One network."""
    network, told = (
        row["network"],
        [row["lines"], row["mis_steered"], row["share_mis_steered"], row["cost_outside"], row["charged_outside"]],
    )
    return [row["country"], code(network), network.get("operator"), *told]


def lines(data: Coverage) -> Table:
    """The lines that are not covered."""
    return {
        "title": "Lines that are not covered",
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Verdict", "kind": "word"},
            {"label": "Country", "kind": "country"},
            {"label": "Network", "kind": "network"},
            {"label": "Seen", "kind": "day"},
            {"label": "Bytes outside", "kind": "bytes"},
            {"label": "Cost outside", "kind": "money"},
            {"label": "Charged outside", "kind": "money"},
            {"label": "What to do", "kind": "word"},
        ],
        "rows": [line_row(row) for row in data["lines"]],
        "note": f"{data['more_lines']} lines more." if data["more_lines"] else None,
    }


def line_row(row: OutsideLine) -> list[Value]:
    """One line."""
    outside = row["outside"]
    use: list[Value] = [None, None, None] if outside is None else [outside["bytes"], outside["cost"], outside["charged"]]
    words = row["verdict"].replace("_", " "), row["action"].replace("_", " ")
    return [row["iccid"], words[0], row["country"], code(row["network"]), row["seen"][:10], *use, words[1]]


def code(network: NetworkTold) -> str:
    """MCC-MNC."""
    return f"{network['mcc']}-{network['mnc']}"
