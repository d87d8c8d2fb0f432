"""The health of a fleet as one number: counts of its lines, and how long eSIMs and balances of its accounts will last; and the sheet of it.

Choice: the charging system tells no account's spending, so it is what the lines that charge it used in the last seven days that have ended.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.resellers import Account
from operations.deps import Ctx
from operations.fleet.wire_rows import day_start, ordinal
from operations.intelligence.lines.fleet_lines import PARALLEL_LINES, FleetResult, cached_result
from operations.intelligence.lines.fleet_view import FleetView, view_fleet
from operations.intelligence.lines.usage import last_whole_days
from operations.intelligence.reports.sheet import (
    Chart,
    Factor,
    Figure,
    Finding,
    Sheet,
    Table,
    bar_chart_of,
    example_finding,
    sheet_table,
    weighted_score,
)
from operations.times import WEEK_DAYS
from operations.upstream.connection import AccountGone, Upstream
from operations.upstream.paging import cursor_index
from operations.upstream.usage import MICROS_PER_EURO, euros
from operations.vocabulary import UpstreamId, upstream_text
from registry.errors import BadRequest, NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import CamelInput, Example, Scope, operation
from storage.fleet_health import HealthMoments, LineStanding, fleet_standing

FREE_ESIM_STATUS = 0


class FreeEsims(NamedTuple):
    """Free eSIMs by account, and how many accounts could not be counted and were counted by the list instead."""

    free: Mapping[int, int]
    failed: int


class AccountSpending(NamedTuple):
    """What an account pays a day, in micro-euros: None where nothing could be read. Of how many lines it was read, and how many pay."""

    daily: int | None
    read: int
    lines: int


async def read_free_esims(upstream: Upstream, accounts: Sequence[int], listed: Mapping[int, int]) -> FreeEsims:
    """Free eSIMs of `accounts`; of one that cannot be counted, those that are `listed`. Waits for the network."""
    found: dict[int, int] = {}
    failed = Counter[int]()
    waiting = iter(accounts)

    async def work() -> None:
        for account in waiting:
            try:
                rows = await upstream.ocs.reseller.esim_status_per_account(account_id=account)
                sponsors = [sponsor for row in rows if row.get("id") == account for sponsor in row.get("sponsor", [])]
                statuses = [status for sponsor in sponsors for status in sponsor.get("esim", {}).get("status", [])]
                found[account] = sum(each.get("count", 0) for each in statuses if each.get("statusNum") == FREE_ESIM_STATUS)
            except OcsError:
                failed[account] += 1

    async with anyio.create_task_group() as group:
        for _ in range(min(PARALLEL_LINES, len(accounts))):
            group.start_soon(work)
    return FreeEsims({account: found.get(account, listed.get(account, 0)) for account in accounts}, len(failed))


def account_spending(lines: Iterable[LineStanding], charges: int) -> AccountSpending:
    """What an account pays a day for use of its `lines` outside packages: `charges`, micro-euros, are of those whose use is known."""
    paying, known = (sum(getattr(each, name) for each in lines) for name in ("paying", "known"))
    return AccountSpending(charges * paying // (known * WEEK_DAYS) if known else None, known, paying)


def days_left(amount: float, daily: float) -> float | None:
    """Days until `amount` is used up at `daily`, with one decimal; None where nothing is used."""
    return round(max(0.0, amount) / daily, 1) if daily > 0 else None


COUNT_WEEK_DAYS, COUNT_MONTH_DAYS, SILENT_LINE_DAYS = 7, 30, 60


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
    name: FreeText
    issued: Annotated[int, Field(description="Lines that are not in stock")]
    used_30d: int
    free_esims: int
    issued_30d: Annotated[int, Field(description="eSIMs issued in the last 30 days")]
    stock_days: Annotated[float | None, Field(description="Days until no eSIM is free")]
    balance: Annotated[float | None, Field(description="EUR; null: not told")]
    package_only: bool
    spent_daily: Annotated[float | None, Field(description="EUR a day in the last 7 whole days; null: not known")]
    spending_read: Annotated[int, Field(description="Of `spending_lines` those whose use is known: `spent_daily` is made of it")]
    spending_lines: Annotated[int, Field(description="Lines that charge the account and were used in the last 7 days")]
    balance_days: Annotated[float | None, Field(description="Days until the balance is used up")]


def count_lines(lines: Iterable[LineStanding]) -> LineCounts:
    statuses, found = Counter[str](), Counter[str]()
    for each in lines:
        if each.in_stock:
            found["in_stock"] += each.lines
            continue
        statuses[each.status] += each.lines
        found["never_used"] += each.never_used
        found["used_week"] += each.used_week
        found["used_month"] += each.used_month
        if each.status == "ACTIVE":
            found["idle"] += each.lines - each.never_used - each.used_month
            found["silent"] += each.lines - each.never_used - each.used_silent
    return {
        "in_stock": found["in_stock"],
        "issued": statuses.total(),
        "by_status": dict(sorted(statuses.items())),
        "used_7d": found["used_week"],
        "used_30d": found["used_month"],
        "never_used": found["never_used"],
        "idle_30d": found["idle"],
        "silent_60d": found["silent"],
        "suspended": statuses["SUSPENDED"],
    }


def health_moments(now: float) -> HealthMoments:
    """The days that are counted from at `now`, Unix seconds. Spending is of the last seven whole days."""
    today = ordinal(now)
    week, month, silent = (day_start(today - days) for days in (COUNT_WEEK_DAYS, COUNT_MONTH_DAYS, SILENT_LINE_DAYS))
    return HealthMoments(week, month, silent, today - WEEK_DAYS, today - 1, day_start(today - WEEK_DAYS))


HealthAction = Literal["order_esims", "raise_balance", "start_unused_lines", "look_at_idle_lines", "settle_suspended_lines"]
FULL_SCORE = 100.0
TODO_LIMIT = 3
HEALTHY_DAYS = 60.0


class ScoreRule(NamedTuple):
    """How many points a share can take, and from which share on it takes them all."""

    points: float
    all_at: float


IDLE_RULE, UNUSED_RULE, SUSPENDED_RULE = ScoreRule(25, 0.5), ScoreRule(15, 0.3), ScoreRule(15, 0.2)
STOCK_POINTS, BALANCE_POINTS = 25.0, 20.0
"""Points that an account costs whose supply ends today; from HEALTHY_DAYS on none."""


class ToDo(TypedDict):
    """One thing to do, and how much it is about."""

    do: Annotated[HealthAction, Field(description="What")]
    account_id: Annotated[int | None, Field(description="In which account; null: the fleet")]
    more_accounts: Annotated[int, Field(description="Others that have none left within 60 days")]
    lines: Annotated[int | None, Field(description="Lines it is about")]
    days: Annotated[float | None, Field(description="Days until the account has none left")]
    points: Annotated[float, Field(description="What it costs the score")]


def score_fleet(counts: LineCounts, accounts: Sequence[AccountState]) -> tuple[float, list[Factor], list[ToDo]]:
    """The score, 100 points less the points of each problem; its factors; and what to do first."""
    active, issued = max(1, counts["by_status"].get("ACTIVE", 0)), max(1, counts["issued"])
    shares = {
        "idle_share": (counts["idle_30d"] / active, IDLE_RULE),
        "never_used_share": (counts["never_used"] / issued, UNUSED_RULE),
        "suspended_share": (counts["suspended"] / issued, SUSPENDED_RULE),
    }
    weights = {
        "full_marks": (FULL_SCORE, FULL_SCORE),
        **{name: (share, -round(rule.points * min(1.0, share / rule.all_at), 1)) for name, (share, rule) in shares.items()},
    }
    stock = earliest_end(account["stock_days"] for account in accounts)
    balance = earliest_end(account["balance_days"] for account in accounts)
    if stock is not None:
        weights["stock_days"] = stock, -shortage_points(stock, STOCK_POINTS)
    if balance is not None:
        weights["balance_days"] = balance, -shortage_points(balance, BALANCE_POINTS)
    score, factors = weighted_score(weights)
    return score, factors, first_todos(counts, accounts, {name: -points for name, (_, points) in weights.items()})


def shortage_points(days: float, points: float) -> float:
    return round(points * max(0.0, 1.0 - days / HEALTHY_DAYS), 1)


def earliest_end(days: Iterable[float | None]) -> float | None:
    return min((each for each in days if each is not None), default=None)


def first_todos(counts: LineCounts, accounts: Sequence[AccountState], points: dict[str, float]) -> list[ToDo]:
    """At most three things to do, those that cost the score most `points` first; equal ones in the order of the score."""
    stock = [(days, account["account_id"]) for account in accounts if (days := account["stock_days"]) is not None]
    balance = [(days, account["account_id"]) for account in accounts if (days := account["balance_days"]) is not None]
    found = [
        *shortage_todos("order_esims", stock, STOCK_POINTS),
        *shortage_todos("raise_balance", balance, BALANCE_POINTS),
        lines_todo("look_at_idle_lines", counts["idle_30d"], points["idle_share"]),
        lines_todo("start_unused_lines", counts["never_used"], points["never_used_share"]),
        lines_todo("settle_suspended_lines", counts["suspended"], points["suspended_share"]),
    ]
    return sorted((each for each in found if each["points"] > 0), key=lambda each: -each["points"])[:TODO_LIMIT]


def shortage_todos(do: HealthAction, ends: Sequence[tuple[float, int]], points: float) -> Iterable[ToDo]:
    """A shortage: the account where it comes first, and how many others follow."""
    for days, account_id in sorted(ends)[:1]:
        more = sum(each < HEALTHY_DAYS for each, _ in ends) - 1
        yield {
            "do": do,
            "account_id": account_id,
            "more_accounts": max(0, more),
            "lines": None,
            "days": days,
            "points": shortage_points(days, points),
        }


def lines_todo(do: HealthAction, lines: int, points: float) -> ToDo:
    return {"do": do, "account_id": None, "more_accounts": 0, "lines": lines, "days": None, "points": points}


HEALTH_METHOD = (
    "Lines are counted by the list of the charging system, eSIMs by its stock; what accounts spend is what their lines were charged."
)
HEALTH_NOTES = [
    "score: 100 less at most 25 for ACTIVE lines that were used, but not in 30 days (all from 50 %), 15 for issued lines never used (from "
    "30 %), 15 for SUSPENDED ones (from 20 %), 25 for the account whose eSIMs end first and 20 for the one whose balance does (none from "
    "60 days on).",
    "stock_days: free eSIMs at the pace of those issued in the last 30 days; null: none was.",
    "balance_days: the balance at what use outside packages cost in the last 7 whole days; null: nothing, not known, or no balance. What "
    "packages cost is not told by the charging system and not in it.",
]


class FleetHealth(TypedDict):
    """The state of the fleet."""

    score: Annotated[float, Field(description="0-100")]
    factors: list[Factor]
    first: Annotated[list[ToDo], Field(description="At most three, what costs the score most first")]
    lines: LineCounts
    accounts: Annotated[list[AccountState], Field(description="By id")]
    notes: Annotated[list[str], Field(description="How the figures were made")]


async def read_health_snapshot(ctx: Ctx, view: FleetView) -> FleetResult[FleetHealth]:
    """The health of the fleet, or of the account that was asked for. Waits for the database, and a call an account for the network."""
    accounts = [row for row in await view.upstream.accounts() if view.account is None or row.get("id") == view.account]
    moments = health_moments(ctx.now)
    found = await ctx.deps.store.read(fleet_standing, fleet=view.fleet.state.id, account=view.account, moments=moments)
    charges, own = {each.account_id: each.usage_income for each in found.charges}, defaultdict[int, list[LineStanding]](list)
    for each in found.lines:
        own[each.account_id].append(each)
    listed = {account: sum(each.esims for each in lines if each.in_stock) for account, lines in own.items()}
    stock = await read_free_esims(view.upstream, [row.get("id", 0) for row in accounts], listed)
    rows = [account_state(row, own[row.get("id", 0)], stock.free, charges) for row in accounts]
    counts = count_lines(found.lines)
    score, factors, first = score_fleet(counts, rows)
    health = FleetHealth(score=score, factors=factors, first=first, lines=counts, accounts=rows, notes=HEALTH_NOTES)
    return view.result(ctx, health, sampled=view.known.lines, missing=view.known.progress.unread, others=stock_gaps(stock))


def account_state(account: Account, lines: Sequence[LineStanding], free: Mapping[int, int], charges: Mapping[int, int]) -> AccountState:
    """An account and how long its supplies last. An account without a balance of its own cannot run out of it."""
    number, counts = account.get("id", 0), count_lines(lines)
    issued, spending = sum(each.fresh_esims for each in lines if not each.in_stock), account_spending(lines, charges.get(number, 0))
    balance = account.get("balance")
    spends = spending.daily is not None and balance is not None and not account.get("packageOnly")
    return {
        "account_id": number,
        "name": upstream_text(account.get("name")),
        "issued": counts["issued"],
        "used_30d": counts["used_30d"],
        "free_esims": free[number],
        "issued_30d": issued,
        "stock_days": days_left(free[number], issued / COUNT_MONTH_DAYS),
        "balance": balance,
        "package_only": account.get("packageOnly", False),
        "spent_daily": None if spending.daily is None else euros(spending.daily),
        "spending_read": spending.read,
        "spending_lines": spending.lines,
        "balance_days": days_left((balance or 0.0) * MICROS_PER_EURO, spending.daily or 0) if spends else None,
    }


def stock_gaps(stock: FreeEsims) -> list[str]:
    """What is missing of the stock."""
    if not stock.failed:
        return []
    return [f"The eSIMs of {stock.failed} accounts could not be counted; theirs are those that the list shows as free."]


class HealthQuery(CamelInput):
    """Which accounts."""

    account_id: Annotated[UpstreamId | None, Field(description="Only this account.")] = None
    limit: Annotated[int, Field(ge=1, le=500, description="Accounts shown.")] = 100
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")] = None


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
            "spent_daily": 3.28,
            "spending_read": 65,
            "spending_lines": 65,
            "balance_days": 117.9,
        }
    ],
    "notes": HEALTH_NOTES,
}
HEALTH_FINDING_EXAMPLE = example_finding(HEALTH_EXAMPLE, HEALTH_METHOD, sampled=140, of=140)


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

    Lines and what they used come from the read model; the eSIMs of every account are counted by the charging system, a call each.
    Packages are not looked at. The figures are kept for a minute.
    """
    place, account = params.starting_after, params.account_id
    view = await view_fleet(ctx, params, last_whole_days(ctx.now, WEEK_DAYS), account_id=account, listed_is_enough=True)
    # How the lines stand is known without a look into what they used.
    view = view._replace(known=view.known._replace(unjudged=0))
    load = partial(read_health_snapshot, ctx, view)
    found = await cached_result(ctx, view.upstream, load, account, further=place is not None)
    accounts = found.figures["accounts"]
    start = cursor_index([row["account_id"] for row in accounts], place)
    page = accounts[start : start + params.limit]
    if start + len(page) < len(accounts):
        ctx.next_cursor = str(page[-1]["account_id"])
        ctx.note = f"{len(page)} of {len(accounts)} accounts."
    return found.finding({**found.figures, "accounts": page}, HEALTH_METHOD)


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
        "charts": [
            health_factor_chart(data["factors"]),
            bar_chart_of("Issued lines by status", "Lines", {status: float(count) for status, count in data["lines"]["by_status"].items()}),
        ],
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
        {HEALTH_FACTOR_LABELS[factor["name"]]: factor["weight"] for factor in factors},
    )


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
        "What an account spends a day is what its lines were charged in the last seven days, without what packages cost.",
    )
