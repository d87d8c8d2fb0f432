"""The state of a fleet, read once for all pages of the answer."""

from collections import defaultdict
from typing import NamedTuple

from clients.ocs.wire.reseller import Account
from operations.deps import Ctx
from operations.intelligence.finding import UNLISTED, Incomplete
from operations.intelligence.fleet.lines import MONTH, Counts, counted
from operations.intelligence.fleet.money import Spending, Spendings, Stock, lasts, spendings, stocks
from operations.intelligence.fleet.reading import FleetLine, Lines, fleet_of
from operations.intelligence.fleet.score import Score, Supply, scored
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.use import MICRO
from operations.services.network.reached import Upstream
from operations.services.network.windows import today

NO_SPENDING = Spending(None, 0, 0)


class AccountHealth(NamedTuple):
    """One account."""

    account: Account
    counts: Counts
    free: int
    supply: Supply
    spending: Spending


class Health(NamedTuple):
    """All of it. `at`: when it was made."""

    at: float
    lines: int
    counts: Counts
    accounts: list[AccountHealth]
    score: Score
    incomplete: Incomplete | None


async def health_of(ctx: Ctx, upstream: Upstream, account_id: int | None, *, further: bool) -> Health:
    """The fleet as it was less than a minute ago."""

    async def load() -> Health:
        return await read_health(ctx, upstream, account_id)

    return await kept_finding(upstream, ("fleet_health", ctx.organisation, account_id), load, further=further)


async def read_health(ctx: Ctx, upstream: Upstream, account_id: int | None) -> Health:
    """The list, the stocks, and some lines' spending."""
    fleet = await fleet_of(upstream, account_id)
    accounts = [row for row in await upstream.accounts() if account_id is None or row.get("id") == account_id]
    stock = await stocks(upstream, [row.get("id", 0) for row in accounts], fleet.lines)
    spent = await spendings(ctx, upstream, fleet.lines)
    own: defaultdict[int, list[FleetLine]] = defaultdict(list)
    for line in fleet.lines:
        own[line.account_id].append(line)
    day = today(ctx.now)
    rows = [account_health(row, counted(own[row.get("id", 0)], day), stock, spent) for row in accounts]
    counts = counted(fleet.lines, day)
    score = scored(counts, [row.supply for row in rows])
    return Health(ctx.now, len(fleet.lines), counts, rows, score, gaps(fleet, stock, spent))


def account_health(account: Account, counts: Counts, stock: Stock, spent: Spendings) -> AccountHealth:
    """An account with how long it lasts. One without a balance of its own cannot run out of it."""
    number = account.get("id", 0)
    free, spending, balance = stock.free[number], spent.of.get(number, NO_SPENDING), account.get("balance")
    spends = spending.daily is not None and balance is not None and not account.get("packageOnly")
    balance_days = lasts((balance or 0.0) * MICRO, spending.daily or 0) if spends else None
    supply = Supply(number, lasts(free, counts.issued_month / MONTH), balance_days)
    return AccountHealth(account, counts, free, supply, spending)


def gaps(fleet: Lines, stock: Stock, spent: Spendings) -> Incomplete | None:
    """What is missing. Only lines that no list shows are missing from the counts; the others from estimates."""
    reasons = [UNLISTED] if fleet.incomplete else []
    if stock.failed:
        reasons.append(f"The eSIMs of {stock.failed} accounts could not be counted; theirs are those that the list shows as free.")
    if spent.failed:
        reasons.append(f"The use of {spent.failed} lines of the sample could not be read; what accounts spend is of fewer lines.")
    return {"lines": spent.failed, "reasons": reasons} if reasons else None
