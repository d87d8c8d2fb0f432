"""Four weeks of a fleet, read line by line: habits of every line, packages of some, and the catalogue."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from operations.deps import Ctx
from operations.intelligence.finding import Incomplete, gaps
from operations.intelligence.fleet.lines import in_stock
from operations.intelligence.fleet.money import spread
from operations.intelligence.fleet.reading import FleetLine, fleet_of, read_each
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.habits import Habits, habits
from operations.intelligence.lines.use import use_of
from operations.intelligence.packages.uptake import Held, held_of
from operations.intelligence.packages.wares import Ware, wares_of
from operations.services.network.reached import Upstream
from operations.services.network.windows import Window, today
from registry.errors import OcsError

DAYS = 28
PRICELESS = "The catalogue could not be read: there are no prices, and nothing is said of what could be sold."
MOST_PACKAGE_LINES = 2_000
"""Choice: lines whose packages are read; for a larger fleet they are a sample, since each takes a call that cannot be kept."""


class Seen(NamedTuple):
    """What was read of a line; no packages where it was not in the sample."""

    habits: Habits
    packages: tuple[Held, ...] | None


class Market(NamedTuple):
    """All that was read. `at`: when."""

    at: float
    window: Window
    lines: list[FleetLine]
    stock: int
    seen: dict[int, Seen]
    wares: Mapping[int, Ware]
    incomplete: Incomplete | None

    @property
    def packages(self) -> dict[int, tuple[Held, ...]]:
        """The packages of the lines that were in the sample."""
        return {line: seen.packages for line, seen in self.seen.items() if seen.packages is not None}


def last_days(now: float) -> Window:
    """The last 28 whole days."""
    end = today(now) - timedelta(days=1)
    return Window(end - timedelta(days=DAYS - 1), end)


def middle(window: Window) -> date:
    """The first day of its second half."""
    return window.first + timedelta(days=DAYS // 2)


async def market_of(ctx: Ctx, upstream: Upstream, account_id: int | None) -> Market:
    """The market as it was less than a minute ago."""

    async def load() -> Market:
        return await read_market(ctx, upstream, account_id)

    return await kept_finding(upstream, ("marketing_intelligence", ctx.organisation, account_id), load, further=False)


async def read_market(ctx: Ctx, upstream: Upstream, account_id: int | None) -> Market:
    """Read all issued lines."""
    fleet, window = await fleet_of(upstream, account_id), last_days(ctx.now)
    wares, priceless = await catalogue(upstream)
    lines = [line for line in fleet.lines if not in_stock(line)]
    sample = {line.subscriber_id for line in spread(lines, MOST_PACKAGE_LINES)}

    async def read(line: FleetLine) -> Seen:
        use = await use_of(upstream, line, window, ctx.deps.weeks, ctx.now)
        held = None
        if line.subscriber_id in sample:
            held = held_of(await upstream.ocs.packages.list_packages(line.subscriber_id), ctx.now)
        return Seen(habits(use, middle(window)), held)

    reading = await read_each(lines, read, clock=ctx.deps.clock, tell=ctx.progress)
    incomplete = gaps(failed=reading.failed, left=reading.left, unlisted=fleet.incomplete, others=priceless)
    return Market(ctx.now, window, lines, len(fleet.lines) - len(lines), reading.found, wares, incomplete)


async def catalogue(upstream: Upstream) -> tuple[Mapping[int, Ware], tuple[str, ...]]:
    """The templates, or why there are none: what lines did is worth telling without prices."""
    try:
        return await wares_of(upstream), ()
    except OcsError:
        return {}, (PRICELESS,)
