"""What the accounts of a fleet have: free eSIMs, balances, and how long they last.

Choice: the charging system tells no account's spending, so it is estimated from the last seven days of some of the lines that charge it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import anyio

from clients.ocs.wire.reseller import AccountStock
from operations.deps import Ctx
from operations.intelligence.fleet.lines import in_stock, used_since
from operations.intelligence.fleet.reading import AT_ONCE, FleetLine, read_each
from operations.intelligence.lines.use import use_of
from operations.services.network.reached import Upstream
from operations.services.network.usage_weeks import LineUse
from operations.services.network.windows import WEEK, Window, today
from registry.errors import OcsError

FREE_NUMBER = 0
OF_ACCOUNT, IN_ALL = 40, 160


class Stock(NamedTuple):
    """Free eSIMs by account, and how many accounts could not be counted and were counted by the list instead."""

    free: Mapping[int, int]
    failed: int


class Spending(NamedTuple):
    """What an account pays a day, in micro-euros: None where nothing could be read. Of how many lines it was read, and how many pay."""

    daily: int | None
    read: int
    lines: int


class Spendings(NamedTuple):
    """By account; `failed`: lines of the sample that could not be read."""

    of: Mapping[int, Spending]
    failed: int


async def stocks(upstream: Upstream, accounts: Sequence[int], lines: Sequence[FleetLine]) -> Stock:
    """Free eSIMs, as the charging system counts them."""
    found: dict[int, int] = {}
    failed = Counter[int]()
    waiting = iter(accounts)

    async def work() -> None:
        for account in waiting:
            try:
                rows = await upstream.ocs.reseller.esim_status_per_account(account_id=account)
                found[account] = free_in(row for row in rows if row.get("id") == account)
            except OcsError:
                failed[account] += 1

    async with anyio.create_task_group() as group:
        for _ in range(min(AT_ONCE, len(accounts))):
            group.start_soon(work)
    listed = Counter(line.account_id for line in lines if in_stock(line) and line.row.get("sim", {}).get("esim", True))
    return Stock({account: found.get(account, listed[account]) for account in accounts}, len(failed))


def free_in(rows: Iterable[AccountStock]) -> int:
    """The free ones of an account."""
    statuses = (status for row in rows for sponsor in row.get("sponsor", []) for status in sponsor.get("esim", {}).get("status", []))
    return sum(status.get("count", 0) for status in statuses if status.get("statusNum") == FREE_NUMBER)


async def spendings(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine]) -> Spendings:
    """What the accounts pay a day for use outside of packages."""
    last = today(ctx.now) - timedelta(days=1)
    week = Window(last - timedelta(days=WEEK - 1), last)
    paying: defaultdict[int, list[FleetLine]] = defaultdict(list)
    for line in lines:
        if line.row.get("useAccountForCharging", True) and used_since(line, week.first):
            paying[line.account_id].append(line)
    most = min(OF_ACCOUNT, max(1, IN_ALL // max(1, len(paying))))
    chosen = {account: spread(own, most) for account, own in paying.items()}
    sample = [line for own in chosen.values() for line in own]

    async def read(line: FleetLine) -> LineUse:
        return await use_of(upstream, line, week, ctx.deps.weeks, ctx.now)

    try:
        reading = await read_each(sample, read, clock=ctx.deps.clock, tell=ctx.progress)
    except OcsError:
        return Spendings({account: Spending(None, 0, len(own)) for account, own in paying.items()}, len(sample))
    found = {account: spending(own, reading.found, len(paying[account])) for account, own in chosen.items()}
    return Spendings(found, reading.missing)


def spending(sample: Sequence[FleetLine], found: Mapping[int, LineUse], lines: int) -> Spending:
    """Of the lines that were read, for all that pay."""
    costs = [found[line.subscriber_id].subscriber_cost for line in sample if line.subscriber_id in found]
    daily = None if not costs else sum(costs) * lines // (len(costs) * WEEK)
    return Spending(daily, len(costs), lines)


def spread(lines: Sequence[FleetLine], most: int) -> list[FleetLine]:
    """So many of them, evenly over the list; the same ones every time."""
    count = len(lines)
    return list(lines) if count <= most else [lines[place * count // most] for place in range(most)]


def lasts(amount: float, daily: float) -> float | None:
    """Days until it is used up, to a tenth; None where nothing is used."""
    return round(max(0.0, amount) / daily, 1) if daily > 0 else None
