"""The health of a fleet as a report."""

from operations.intelligence.finding import Factor, Finding
from operations.intelligence.fleet.score import Deed, ToDo
from operations.intelligence.fleet_health import AccountState, FleetHealth
from operations.intelligence.sheet import Chart, Figure, Sheet, Table

DEEDS: dict[Deed, str] = {
    "order_esims": "Order eSIMs",
    "raise_balance": "Raise the balance",
    "start_unused_lines": "Start lines never used",
    "look_at_idle_lines": "Look at idle lines",
    "settle_suspended_lines": "Settle suspended lines",
}
FACTORS = {
    "full_marks": "Full marks",
    "idle_share": "Idle for 30 days",
    "never_used_share": "Never used",
    "suspended_share": "Suspended",
    "stock_days": "eSIM stock",
    "balance_days": "Balance",
}


def sheet(found: Finding[FleetHealth]) -> Sheet:
    """Score, what to do, lines, accounts."""
    data = found["data"]
    return {
        "title": "Fleet health",
        "headline": headline(data),
        "figures": figures(data),
        "charts": [scores(data["factors"]), statuses(data)],
        "tables": [deeds(data["first"]), accounts(data["accounts"])],
    }


def headline(data: FleetHealth) -> str:
    """The score and what costs most of it."""
    first = f" First: {DEEDS[data['first'][0]['do']].lower()}." if data["first"] else " Nothing needs to be done."
    lines = data["lines"]
    return f"The fleet scores {data['score']:g} of 100: {lines['used_30d']} of {lines['issued']} issued lines were used in 30 days." + first


def figures(data: FleetHealth) -> list[Figure]:
    """The numbers at the top."""
    lines = data["lines"]
    return [
        {"label": "Score", "kind": "number", "value": data["score"]},
        {"label": "Issued lines", "kind": "number", "value": lines["issued"]},
        {"label": "Used in 7 days", "kind": "number", "value": lines["used_7d"]},
        {"label": "Used in 30 days", "kind": "number", "value": lines["used_30d"]},
        {"label": "Never used", "kind": "number", "value": lines["never_used"]},
        {"label": "Silent for 60 days", "kind": "number", "value": lines["silent_60d"]},
        {"label": "Suspended", "kind": "number", "value": lines["suspended"]},
        {"label": "In stock", "kind": "number", "value": lines["in_stock"]},
    ]


def scores(factors: list[Factor]) -> Chart:
    """What makes the score."""
    return {
        "title": "Points of the score",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": [FACTORS.get(factor["name"], "Other") for factor in factors],
        "series_kind": "word",
        "series": [{"label": "Points", "values": [factor["weight"] for factor in factors]}],
    }


def statuses(data: FleetHealth) -> Chart:
    """Lines by status. The words are ours: what the charging system says otherwise is UNKNOWN."""
    counts = data["lines"]["by_status"]
    return {
        "title": "Issued lines by status",
        "shape": "bar",
        "kind": "number",
        "places_kind": "word",
        "places": list(counts),
        "series_kind": "word",
        "series": [{"label": "Lines", "values": [float(count) for count in counts.values()]}],
    }


def deeds(first: list[ToDo]) -> Table:
    """What to do first."""
    return {
        "title": "Do first",
        "columns": [
            {"label": "What", "kind": "word"},
            {"label": "Lines", "kind": "number"},
            {"label": "Days left", "kind": "days"},
            {"label": "Points", "kind": "number"},
        ],
        "rows": [[DEEDS[row["do"]], row["lines"], row["days"], row["points"]] for row in first],
        "note": None,
    }


def accounts(rows: list[AccountState]) -> Table:
    """Every account that the finding shows."""
    return {
        "title": "Accounts",
        "columns": [
            {"label": "Account", "kind": "text"},
            {"label": "Issued", "kind": "number"},
            {"label": "Used in 30 days", "kind": "number"},
            {"label": "Free eSIMs", "kind": "number"},
            {"label": "Stock lasts", "kind": "days"},
            {"label": "Balance", "kind": "money"},
            {"label": "Spent a day", "kind": "money"},
            {"label": "Balance lasts", "kind": "days"},
        ],
        "rows": [
            [
                row["name"],
                row["issued"],
                row["used_30d"],
                row["free_esims"],
                row["stock_days"],
                row["balance"],
                row["spent_daily"],
                row["balance_days"],
            ]
            for row in rows
        ],
        "note": "What an account spends a day is estimated from a sample of its lines, without what packages cost.",
    }
