"""How a fleet is, as one number and the figures behind it."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.costs.euros import euros
from operations.intelligence.finding import Factor, Finding, finding
from operations.intelligence.fleet.lines import Counts
from operations.intelligence.fleet.score import ToDo
from operations.intelligence.fleet.survey import AccountHealth, health_of
from operations.intelligence.upstream_text import plain
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import after
from operations.services.network.reached import AccountGone
from operations.services.network.upstream import reach
from registry.errors import BadRequest, NotFound, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, operation

METHOD = (
    "Lines are counted by the list of the charging system, eSIMs by its stock; what accounts spend is estimated from a sample of lines."
)
NOTES = [
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


EXAMPLE: FleetHealth = {
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
    "notes": NOTES,
}
ANSWER: Finding[FleetHealth] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 140,
    "of": 140,
    "method": METHOD,
    "incomplete": None,
    "data": EXAMPLE,
}


@operation(
    "POST",
    "/v1/intelligence/fleet-health",
    scope=Scope.READ,
    upstream=True,
    operator=True,
    raises=[BadRequest, NotFound, AccountGone, OcsError],
    examples=[Example("How is our fleet, and what should we do first?", {}, ANSWER)],
    tool_defaults={"limit": 10},
)
async def fleet_health(ctx: Ctx, params: HealthQuery) -> Finding[FleetHealth]:
    """Judge the fleet: lines in use, silent, suspended; eSIM stock; balances.

    `first`: what to do first. `score` starts at 100; each factor says what it takes away.

    It lists lines, which costs a call for some hundred of them, counts the eSIMs of every account, and reads a week of at most 160 lines
    that charge an account. Packages are not read. The figures are kept for a minute.
    """
    place = params.starting_after
    upstream = await reach(ctx)
    health = await health_of(ctx, upstream, params.account_id, further=place is not None)
    start = after([row.supply.account_id for row in health.accounts], place)
    page = health.accounts[start : start + params.limit]
    if start + len(page) < len(health.accounts):
        ctx.next_cursor = str(page[-1].supply.account_id)
        ctx.note = f"{len(page)} of {len(health.accounts)} accounts."
    data: FleetHealth = {
        "score": health.score.score,
        "factors": health.score.factors,
        "first": health.score.first,
        "lines": lines_told(health.counts),
        "accounts": [account_told(row) for row in page],
        "notes": NOTES,
    }
    return finding(data, now=health.at, sampled=health.lines, of=health.lines, method=METHOD, incomplete=health.incomplete)


def lines_told(counts: Counts) -> LineCounts:
    """The lines as the answer counts them."""
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


def account_told(row: AccountHealth) -> AccountState:
    """An account as the answer shows it."""
    return {
        "account_id": row.supply.account_id,
        "name": plain(row.account.get("name")),
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
