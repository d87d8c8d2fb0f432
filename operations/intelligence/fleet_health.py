"""How a fleet is, as one number and the figures behind it; and the sheet of it."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.lines.fleet_score import AccountHealth, FleetCounts, HealthAction, ToDo, health_snapshot
from operations.intelligence.lines.usage import euros
from operations.intelligence.reports.sheet import (
    Chart,
    Factor,
    Figure,
    Finding,
    Sheet,
    Table,
    bar_chart_of,
    make_finding,
    sheet_table,
    upstream_text,
)
from operations.upstream.connection import AccountGone, connect_upstream
from operations.upstream.paging import cursor_index
from operations.vocabulary import UpstreamId
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import CamelInput, Example, Scope, operation

HEALTH_METHOD = (
    "Lines are counted by the list of the charging system, eSIMs by its stock; what accounts spend is estimated from a sample of lines."
)
HEALTH_NOTES = [
    "score: 100 less at most 25 for ACTIVE lines that were used, but not in 30 days (all from 50 %), 15 for issued lines never used (from "
    "30 %), 15 for SUSPENDED ones (from 20 %), 25 for the account whose eSIMs end first and 20 for the one whose balance does (none from "
    "60 days on).",
    "stock_days: free eSIMs at the pace of those issued in the last 30 days; null: none was.",
    "balance_days: the balance at what use outside packages cost in the last 7 whole days; null: nothing, not known, or no balance. What "
    "packages cost is not told by the charging system and not in it.",
]


class HealthQuery(CamelInput):
    """Which accounts."""

    account_id: Annotated[UpstreamId | None, Field(description="Only this account.")] = None
    limit: Annotated[int, Field(ge=1, le=500, description="Accounts shown.")] = 100
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")] = None


class LineCounts(TypedDict):
    """Lines. All but `in_stock` are issued ones; the last six say how these stand."""

    in_stock: Annotated[int, Field(description="SIMs that nobody has yet")]
    issued: int
    by_status: dict[str, int]
    used_7d: Annotated[int, Field(description="Last use in the last 7 days")]
    used_30d: int
    never_used: int
    idle_30d: Annotated[int, Field(description="ACTIVE, used before, not in the last 30 days")]
    silent_60d: Annotated[int, Field(description="Of these, not in the last 60 days")]
    suspended: int


class AccountState(TypedDict):
    """One account."""

    account_id: int
    name: str
    issued: Annotated[int, Field(description="Lines that are not in stock")]
    used_30d: int
    free_esims: int
    issued_30d: Annotated[int, Field(description="eSIMs issued in the last 30 days")]
    stock_days: Annotated[float | None, Field(description="Days until no eSIM is free")]
    balance: Annotated[float | None, Field(description="EUR; null: not told")]
    package_only: bool
    spent_daily: Annotated[float | None, Field(description="EUR a day, estimated; null: not known")]
    spending_read: Annotated[int, Field(description="Lines that `spent_daily` was read of")]
    spending_lines: Annotated[int, Field(description="Lines that charge the account and were used in the last 7 days")]
    balance_days: Annotated[float | None, Field(description="Days until the balance is used up")]


class FleetHealth(TypedDict):
    """The state of the fleet."""

    score: Annotated[float, Field(description="0-100")]
    factors: list[Factor]
    first: Annotated[list[ToDo], Field(description="At most three, what costs the score most first")]
    lines: LineCounts
    accounts: Annotated[list[AccountState], Field(description="By id")]
    notes: Annotated[list[str], Field(description="How the figures were made")]


HEALTH_EXAMPLE: FleetHealth = {
    "score": 79.2,
    "factors": [{"name": "full_marks", "value": 100.0, "weight": 100.0}, {"name": "stock_days", "value": 10.0, "weight": -20.8}],
    "first": [{"do": "order_esims", "account_id": 8101, "more_accounts": 0, "lines": None, "days": 10.0, "points": 20.8}],
    "lines": {
        "in_stock": 14,
        "issued": 126,
        "by_status": {"ACTIVE": 126},
        "used_7d": 96,
        "used_30d": 126,
        "never_used": 0,
        "idle_30d": 0,
        "silent_60d": 0,
        "suspended": 0,
    },
    "accounts": [
        {
            "account_id": 8101,
            "name": "Demo Retail",
            "issued": 126,
            "used_30d": 126,
            "free_esims": 14,
            "issued_30d": 42,
            "stock_days": 10.0,
            "balance": 386.7,
            "package_only": False,
            "spent_daily": 3.7,
            "spending_read": 40,
            "spending_lines": 65,
            "balance_days": 104.5,
        }
    ],
    "notes": HEALTH_NOTES,
}
HEALTH_FINDING_EXAMPLE = make_finding(HEALTH_EXAMPLE, now=1_800_014_400, sampled=140, of=140, method=HEALTH_METHOD)


@operation(
    "POST",
    "/v1/intelligence/fleet-health",
    scope=Scope.READ,
    upstream=True,
    operator=True,
    raises=[BadRequest, NotFound, AccountGone, OcsError],
    examples=[Example("How is our fleet, and what should we do first?", {}, HEALTH_FINDING_EXAMPLE)],
    tool_defaults={"limit": 10},
)
async def fleet_health(ctx: Ctx, params: HealthQuery) -> Finding[FleetHealth]:
    """Judge the fleet: lines in use, silent, suspended; eSIM stock; balances.

    `first`: what to do first. `score` starts at 100; each factor says what it takes away.

    It lists lines, which costs a call for some hundred of them, counts the eSIMs of every account, and reads a week of at most 160 lines
    that charge an account. Packages are not read. The figures are kept for a minute.
    """
    place = params.starting_after
    upstream = await connect_upstream(ctx)
    health = await health_snapshot(ctx, upstream, params.account_id, further=place is not None)
    start = cursor_index([row.supply.account_id for row in health.accounts], place)
    page = health.accounts[start : start + params.limit]
    if start + len(page) < len(health.accounts):
        ctx.next_cursor = str(page[-1].supply.account_id)
        ctx.note = f"{len(page)} of {len(health.accounts)} accounts."
    data: FleetHealth = {
        "score": health.score.score,
        "factors": health.score.factors,
        "first": health.score.first,
        "lines": line_counts(health.counts),
        "accounts": [account_state(row) for row in page],
        "notes": HEALTH_NOTES,
    }
    return make_finding(data, now=health.at, sampled=health.lines, of=health.lines, method=HEALTH_METHOD, incomplete=health.incomplete)


def line_counts(counts: FleetCounts) -> LineCounts:
    return {
        "in_stock": counts.stock,
        "issued": counts.issued,
        "by_status": dict(sorted(counts.statuses.items())),
        "used_7d": counts.used_week,
        "used_30d": counts.used_month,
        "never_used": counts.never_used,
        "idle_30d": counts.idle,
        "silent_60d": counts.silent,
        "suspended": counts.statuses["SUSPENDED"],
    }


def account_state(row: AccountHealth) -> AccountState:
    return {
        "account_id": row.supply.account_id,
        "name": upstream_text(row.account.get("name")),
        "issued": row.counts.issued,
        "used_30d": row.counts.used_month,
        "free_esims": row.free,
        "issued_30d": row.counts.issued_month,
        "stock_days": row.supply.stock_days,
        "balance": row.account.get("balance"),
        "package_only": row.account.get("packageOnly", False),
        "spent_daily": None if row.spending.daily is None else euros(row.spending.daily),
        "spending_read": row.spending.read,
        "spending_lines": row.spending.lines,
        "balance_days": row.supply.balance_days,
    }


HEALTH_ACTION_LABELS: dict[HealthAction, str] = {
    "order_esims": "Order eSIMs",
    "raise_balance": "Raise the balance",
    "start_unused_lines": "Start lines never used",
    "look_at_idle_lines": "Look at idle lines",
    "settle_suspended_lines": "Settle suspended lines",
}
HEALTH_FACTOR_LABELS = {
    "full_marks": "Full marks",
    "idle_share": "Idle for 30 days",
    "never_used_share": "Never used",
    "suspended_share": "Suspended",
    "stock_days": "eSIM stock",
    "balance_days": "Balance",
}


def health_sheet(found: Finding[FleetHealth]) -> Sheet:
    data = found["data"]
    return {
        "title": "Fleet health",
        "headline": health_headline(data),
        "figures": health_figures(data),
        "charts": [health_factor_chart(data["factors"]), line_status_chart(data)],
        "tables": [actions_table(data["first"]), health_accounts_table(data["accounts"])],
    }


def health_headline(data: FleetHealth) -> str:
    first = f" First: {HEALTH_ACTION_LABELS[data['first'][0]['do']].lower()}." if data["first"] else " Nothing needs to be done."
    lines = data["lines"]
    return f"The fleet scores {data['score']:g} of 100: {lines['used_30d']} of {lines['issued']} issued lines were used in 30 days." + first


def health_figures(data: FleetHealth) -> list[Figure]:
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


def health_factor_chart(factors: list[Factor]) -> Chart:
    return bar_chart_of(
        "Points of the score",
        "Points",
        [HEALTH_FACTOR_LABELS.get(factor["name"], "Other") for factor in factors],
        [factor["weight"] for factor in factors],
    )


def line_status_chart(data: FleetHealth) -> Chart:
    """Lines by status. The words are the service's own; an unknown status of the charging system is UNKNOWN."""
    counts = data["lines"]["by_status"]
    return bar_chart_of("Issued lines by status", "Lines", list(counts), [float(count) for count in counts.values()])


def actions_table(first: list[ToDo]) -> Table:
    return sheet_table(
        "Do first",
        {"What": "word", "Lines": "number", "Days left": "days", "Points": "number"},
        [[HEALTH_ACTION_LABELS[row["do"]], row["lines"], row["days"], row["points"]] for row in first],
    )


def health_accounts_table(rows: list[AccountState]) -> Table:
    return sheet_table(
        "Accounts",
        {
            "Account": "text",
            "Issued": "number",
            "Used in 30 days": "number",
            "Free eSIMs": "number",
            "Stock lasts": "days",
            "Balance": "money",
            "Spent a day": "money",
            "Balance lasts": "days",
        },
        [
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
        "What an account spends a day is estimated from a sample of its lines, without what packages cost.",
    )
