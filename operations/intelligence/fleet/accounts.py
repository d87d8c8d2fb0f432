"""What the accounts of a fleet have: free eSIMs, balances, and how long they last.

Choice: the charging system tells no account's spending, so it is estimated from the last seven days of some of the lines that charge it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import anyio

from clients.ocs.wire.reseller import AccountStock
from operations.caches.usage import LineUse
from operations.deps import Ctx
from operations.intelligence.lines.fleet_lines import PARALLEL_LINES, FleetLine, read_each_line, sample_evenly
from operations.intelligence.lines.line_state import is_in_stock, was_used_since
from operations.intelligence.lines.usage import read_line_use
from operations.times import WEEK_DAYS, DayWindow, utc_today
from operations.upstream.connection import Upstream
from registry.errors import OcsError

FREE_ESIM_STATUS = 0
SPENDING_LINES_PER_ACCOUNT, SPENDING_LINES_IN_ALL = 40, 160


class FreeEsims(NamedTuple):
    """Free eSIMs by account, and how many accounts could not be counted and were counted by the list instead."""

    free: Mapping[int, int]
    failed: int


class AccountSpending(NamedTuple):
    """What an account pays a day, in micro-euros: None where nothing could be read. Of how many lines it was read, and how many pay."""

    daily: int | None
    read: int
    lines: int


class FleetSpending(NamedTuple):
    """By account; `failed`: lines of the sample that could not be read."""

    of: Mapping[int, AccountSpending]
    failed: int


async def read_free_esims(upstream: Upstream, accounts: Sequence[int], lines: Sequence[FleetLine]) -> FreeEsims:
    """Free eSIMs, as the charging system counts them."""
    found: dict[int, int] = {}
    failed = Counter[int]()
    waiting = iter(accounts)

    async def work() -> None:
        for account in waiting:
            try:
                rows = await upstream.ocs.reseller.esim_status_per_account(account_id=account)
                found[account] = free_esim_count(row for row in rows if row.get("id") == account)
            except OcsError:
                failed[account] += 1

    async with anyio.create_task_group() as group:
        for _ in range(min(PARALLEL_LINES, len(accounts))):
            group.start_soon(work)
    listed = Counter(line.account_id for line in lines if is_in_stock(line) and line.row.get("sim", {}).get("esim", True))
    return FreeEsims({account: found.get(account, listed[account]) for account in accounts}, len(failed))


def free_esim_count(rows: Iterable[AccountStock]) -> int:
    """The free ones of an account."""
    statuses = (status for row in rows for sponsor in row.get("sponsor", []) for status in sponsor.get("esim", {}).get("status", []))
    return sum(status.get("count", 0) for status in statuses if status.get("statusNum") == FREE_ESIM_STATUS)


async def read_fleet_spending(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine]) -> FleetSpending:
    """What the accounts pay a day for use outside of packages."""
    last = utc_today(ctx.now) - timedelta(days=1)
    week = DayWindow(last - timedelta(days=WEEK_DAYS - 1), last)
    paying: defaultdict[int, list[FleetLine]] = defaultdict(list)
    for line in lines:
        if line.row.get("useAccountForCharging", True) and was_used_since(line, week.first):
            paying[line.account_id].append(line)
    most = min(SPENDING_LINES_PER_ACCOUNT, max(1, SPENDING_LINES_IN_ALL // max(1, len(paying))))
    chosen = {account: sample_evenly(own, most) for account, own in paying.items()}
    sample = [line for own in chosen.values() for line in own]

    async def read(line: FleetLine) -> LineUse:
        return await read_line_use(upstream, line, week, ctx.deps.weeks, ctx.now)

    try:
        reading = await read_each_line(sample, read, clock=ctx.deps.clock, tell=ctx.progress)
    except OcsError:
        return FleetSpending({account: AccountSpending(None, 0, len(own)) for account, own in paying.items()}, len(sample))
    found = {account: account_spending(own, reading.found, len(paying[account])) for account, own in chosen.items()}
    return FleetSpending(found, reading.missing)


def account_spending(sample: Sequence[FleetLine], found: Mapping[int, LineUse], lines: int) -> AccountSpending:
    """Of the lines that were read, for all that pay."""
    costs = [found[line.subscriber_id].subscriber_cost for line in sample if line.subscriber_id in found]
    daily = None if not costs else sum(costs) * lines // (len(costs) * WEEK_DAYS)
    return AccountSpending(daily, len(costs), lines)


def days_left(amount: float, daily: float) -> float | None:
    """Days until it is used up, to a tenth; None where nothing is used."""
    return round(max(0.0, amount) / daily, 1) if daily > 0 else None
