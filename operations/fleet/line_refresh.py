"""Reading some lines live into the model, while somebody waits for them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import anyio

from clients.ocs.packages import PackageList
from operations.deps import Ctx
from operations.fleet.line_news import store_readings
from operations.fleet.line_reading import LineGone, LineReading, ReadingTime, look_at_line, read_fleet_line
from operations.fleet.sync import names_kept
from operations.fleet.wire_rows import NamesKept
from operations.upstream.connection import Upstream
from registry.errors import OcsError, StoreUnavailable
from storage.fleet_lines import KnownLine, hide_lines
from storage.fleet_readings import LineWork, TimedReading, work_of_lines
from storage.fleet_search import FleetBounds
from storage.fleets import MARKED, FleetState

PARALLEL_REFRESHES = 4
NO_PACKAGES: PackageList = {}


class OwnFleet(NamedTuple):
    """The caller's fleet, the way to its charging system, and the rows that the credential may see."""

    upstream: Upstream
    state: FleetState
    bounds: FleetBounds


async def refresh_lines(ctx: Ctx, fleet: OwnFleet, numbers: Sequence[int], *, whole: bool) -> None:
    """Reads the lines with these subscriber ids: their own rows, and with `whole` packages and use, too. Waits for the network.

    A line that cannot be read stays as it was known.
    """
    store = ctx.deps.store
    try:
        accounts = frozenset(account.get("id", 0) for account in await fleet.upstream.accounts())
    except OcsError:
        return
    refresh = LineRefresh(ctx, fleet, accounts, await names_kept(ctx.deps, ctx.organisation), whole=whole)
    waiting = iter(await store.read(work_of_lines, fleet=fleet.state.id, numbers=numbers))
    async with anyio.create_task_group() as group:
        for _ in range(min(PARALLEL_REFRESHES, len(numbers))):
            group.start_soon(refresh.run, waiting)
    if refresh.outage is not None:
        raise refresh.outage
    await ctx.deps.judge(ctx.deps, fleet.state, numbers)


class LineRefresh:
    """A reading of some lines under way. `outage`: why it could not be stored."""

    def __init__(self, ctx: Ctx, fleet: OwnFleet, accounts: frozenset[int], names: NamesKept, *, whole: bool) -> None:
        self._ctx, self._fleet, self._accounts, self._names, self._whole = ctx, fleet, accounts, names, whole
        self.outage: StoreUnavailable | None = None

    async def run(self, waiting: Iterator[LineWork]) -> None:
        """Reads lines of `waiting` until there are none."""
        for line in waiting:
            try:
                await self._line(line)
            except OcsError:
                continue
            except StoreUnavailable as outage:
                self.outage = outage
                return

    async def _line(self, line: LineWork) -> None:
        store, fleet, now = self._ctx.deps.store, self._fleet.state.id, self._ctx.deps.clock.now()
        upstream, accounts, names = self._fleet.upstream, self._accounts, self._names
        found: LineReading | LineGone
        if self._whole:
            marked, time = line._replace(rank=MARKED), ReadingTime(now, now)
            found = await read_fleet_line(upstream, marked, accounts, time, names=names, known=NO_PACKAGES, own_row=True)
        else:
            found = await look_at_line(upstream, line, accounts, now, names=names)
        if isinstance(found, LineGone):
            await store.write(hide_lines, fleet=fleet, lines=[KnownLine(line.subscriber_id, 0, line.version, 0)], now=now)
        else:
            deps, readings = self._ctx.deps, [TimedReading(found, now)]
            await store.write(store_readings, fleet=fleet, readings=readings, now=now, keyring=deps.keyring, ids=deps.ids)
