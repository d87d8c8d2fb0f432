"""Reading some lines live into the model, while somebody waits for them."""

from collections.abc import Iterator, Sequence

import anyio

from operations.deps import Ctx
from operations.fleet.fleet_access import OwnFleet
from operations.fleet.line_reading import LineGone, read_line
from operations.fleet.sync import names_kept
from operations.fleet.wire_rows import NamesKept
from registry.errors import OcsError
from storage.fleet_lines import KnownLine, LineWork, hide_lines, record_reading, work_of_lines
from storage.fleet_search import marked_lines
from storage.fleets import MARKED

PARALLEL_REFRESHES = 4
MARKED_AT_ONCE = 20
"""Marked lines that are read while somebody waits."""


async def refresh_lines(ctx: Ctx, fleet: OwnFleet, numbers: Sequence[int], *, whole: bool) -> None:
    """Reads the lines with these subscriber ids: their own rows, and with `whole` packages and use, too. Waits for the network.

    A line that cannot be read stays as it was known.
    """
    refresh = LineRefresh(ctx, fleet, whole=whole)
    waiting = iter(await ctx.deps.store.read(work_of_lines, fleet=fleet.state.id, numbers=numbers))
    async with anyio.create_task_group() as group:
        for _ in range(min(PARALLEL_REFRESHES, len(numbers))):
            group.start_soon(refresh.run, waiting)
    await ctx.deps.judge(ctx.deps, fleet.state, numbers)


async def refresh_marked_lines(ctx: Ctx, fleet: OwnFleet) -> int:
    """Reads lines that a call of ours or a push has marked, so that every filter and count sees what was done; how many were left over.

    In a service with a worker they are read within a second anyway. Waits for the network.
    """
    marked = await ctx.deps.store.read(marked_lines, fleet=fleet.state.id, bounds=fleet.bounds, most=MARKED_AT_ONCE, now=ctx.now)
    if marked.numbers:
        await refresh_lines(ctx, fleet, marked.numbers, whole=True)
    return marked.lines - len(marked.numbers)


class LineRefresh:
    """A reading of some lines under way."""

    def __init__(self, ctx: Ctx, fleet: OwnFleet, *, whole: bool) -> None:
        self._ctx, self._fleet, self._whole = ctx, fleet, whole

    async def run(self, waiting: Iterator[LineWork]) -> None:
        """Reads lines of `waiting` until there are none."""
        accounts = frozenset(account.get("id", 0) for account in await self._fleet.upstream.accounts())
        names = await names_kept(self._ctx.deps, self._ctx.organisation)
        for line in waiting:
            try:
                await self._line(line._replace(rank=MARKED) if self._whole else line, accounts, names)
            except OcsError:
                continue

    async def _line(self, line: LineWork, accounts: frozenset[int], names: NamesKept) -> None:
        store, fleet, now = self._ctx.deps.store, self._fleet.state.id, self._ctx.deps.clock.now()
        found = await read_line(self._fleet.upstream, line, accounts, now, names=names, own_row=True, parts=self._whole)
        if isinstance(found, LineGone):
            await store.write(hide_lines, fleet=fleet, lines=[KnownLine(line.subscriber_id, 0, line.version, 0)], now=now)
        else:
            await store.write(record_reading, fleet=fleet, reading=found, now=now)
