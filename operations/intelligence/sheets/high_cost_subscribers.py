"""The sheet of a fleet's cost: countries as bars, stacked by network, and the dearest lines."""

from collections.abc import Mapping, Sequence

from operations.intelligence.costs.figures import NAMED, CountryCost, LineCost, NetworkCost
from operations.intelligence.finding import Finding
from operations.intelligence.high_cost_subscribers import FleetCosts
from operations.intelligence.lines.use_kinds import Kind
from operations.intelligence.sheet import Chart, Series, Sheet, Table, Value

BARS = 12
"""Countries of the chart."""
PLACES = ("Dearest network", "Second network", "Third network", "Other networks")
WORDS: Mapping[Kind, str] = {
    "data": "Data",
    "calls_out": "Calls made",
    "calls_in": "Calls received",
    "sms_out": "Messages sent",
    "sms_in": "Messages received",
    "other": "Other use",
}


def sheet(found: Finding[FleetCosts]) -> Sheet:
    """The report of a finding."""
    data = found["data"]
    few = data["pareto"]
    return {
        "title": "What lines cost",
        "headline": f"{few['lines']} of {found['of']} lines make {few['percent']} % of what use cost: EUR {data['cost']:.2f}.",
        "figures": [
            {"label": "Cost", "kind": "money", "value": data["cost"]},
            {"label": "Charged outside packages", "kind": "money", "value": data["charged"]},
            {"label": "Margin without packages", "kind": "money", "value": data["margin"]},
            {"label": "Lines with cost", "kind": "number", "value": data["lines_with_cost"]},
            {"label": "First day", "kind": "day", "value": data["window"]["start"]},
            {"label": "Last day", "kind": "day", "value": data["window"]["end"]},
        ],
        "charts": [by_country(data["countries"]), by_kind(data["kinds"])],
        "tables": [lines(data["lines"], data["lines_with_cost"]), countries(data["countries"])],
    }


def by_country(rows: Sequence[CountryCost]) -> Chart:
    """The dearest countries. Networks differ from country to country, so the layers are their places in it."""
    named = [row for row in rows if row["country"] is not None][:BARS]
    series: list[Series] = [{"label": PLACES[place], "values": [layer(row, place) for row in named]} for place in range(NAMED)]
    series.append({"label": PLACES[NAMED], "values": [row["rest"]["cost"] if row["rest"] is not None else None for row in named]})
    return {
        "title": "Cost by country, stacked by network",
        "shape": "stacked",
        "kind": "money",
        "places_kind": "country",
        "places": [row["country"] or "" for row in named],
        "series_kind": "word",
        "series": [one for one in series if any(one["values"])],
    }


def layer(row: CountryCost, place: int) -> float | None:
    """The cost of the country's network at this place."""
    return row["networks"][place]["cost"] if place < len(row["networks"]) else None


def by_kind(kinds: Mapping[Kind, float]) -> Chart:
    """What is paid for."""
    ordered = sorted(kinds, key=lambda kind: -kinds[kind])
    return {
        "title": "Cost by kind of use",
        "shape": "bar",
        "kind": "money",
        "places_kind": "word",
        "places": [WORDS[kind] for kind in ordered],
        "series_kind": "word",
        "series": [{"label": "Cost", "values": [kinds[kind] for kind in ordered]}],
    }


def lines(rows: Sequence[LineCost], of: int) -> Table:
    """The dearest lines, each with where most of it comes from."""
    return {
        "title": "Dearest lines",
        "columns": [
            {"label": "Line", "kind": "line"},
            {"label": "Cost", "kind": "money"},
            {"label": "Share", "kind": "percent"},
            {"label": "Charged", "kind": "money"},
            {"label": "Margin", "kind": "money"},
            {"label": "Country", "kind": "country"},
            {"label": "Network", "kind": "network"},
        ],
        "rows": [line(row) for row in rows],
        "note": f"{len(rows)} of {of} lines with cost; country and network are the dearest of each" if rows else None,
    }


def line(row: LineCost) -> list[Value]:
    """A line."""
    first = row["networks"][0] if row["networks"] else None
    country, network = (None, None) if first is None else (first["country"], code(first))
    return [row["iccid"], row["cost"], row["share_percent"], row["charged"], row["margin"], country, network]


def countries(rows: Sequence[CountryCost]) -> Table:
    """Countries with their dearest network."""
    return {
        "title": "Countries",
        "columns": [
            {"label": "Country", "kind": "country"},
            {"label": "Cost", "kind": "money"},
            {"label": "Share", "kind": "percent"},
            {"label": "Charged", "kind": "money"},
            {"label": "Dearest network", "kind": "network"},
        ],
        "rows": [[row["country"], row["cost"], row["share_percent"], row["charged"], code(row["networks"][0])] for row in rows],
        "note": None,
    }


def code(network: NetworkCost) -> str:
    """MCC-MNC."""
    return f"{network['mcc']:03d}-{network['mnc']:02d}"
