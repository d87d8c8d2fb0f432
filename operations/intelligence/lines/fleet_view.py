"""The caller's fleet in the read model, as answers about all of its lines look at it: how far it is known, how old it is, what is missing.

An answer is made of figures that were stored with each line, so that it takes one look at the database, however many lines there are.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import NamedTuple, TypeVar

from operations.deps import Ctx
from operations.fleet.fleet_access import look_at_fleet, look_at_weeks, missing_knowledge, own_fleet, require_account_in_fleet
from operations.fleet.line_refresh import OwnFleet
from operations.intelligence.lines.fleet_lines import Figures, FleetResult
from operations.intelligence.reports.sheet import Incomplete
from operations.times import DayWindow
from operations.upstream.connection import Upstream
from registry.errors import OcsError
from registry.operation import Input
from storage.fleet_search import FleetKnowledge, fleet_knowledge

One = TypeVar("One")
Other = TypeVar("Other")


class FleetView(NamedTuple):
    """A fleet as it was known when somebody looked. `account`: the one that was asked for; None: all of them."""

    fleet: OwnFleet
    known: FleetKnowledge
    account: int | None

    @property
    def upstream(self) -> Upstream:
        return self.fleet.upstream

    def result(self, ctx: Ctx, figures: Figures, *, sampled: int, missing: int, others: Sequence[str] = ()) -> FleetResult[Figures]:
        """`figures`, made of `sampled` lines; `missing` ones would belong to them. `others`: sentences on what else is missing."""
        now, known, state = ctx.deps.clock.now(), self.known, self.fleet.state  # the first look may have taken a while
        reasons = [*missing_knowledge(self.fleet, known, now), *others]
        incomplete: Incomplete | None = {"lines": missing, "reasons": reasons} if reasons else None
        return FleetResult(now, figures, sampled, known.lines, incomplete, state.listed or None)


async def view_fleet(
    ctx: Ctx, params: Input, window: DayWindow, *, account_id: int | None = None, listed_is_enough: bool = False
) -> FleetView:
    """The fleet of the caller, or what of it is in one account, after the days from `window` on are known.

    The first look at a new connection waits for that, 20 seconds at most. Waits for the network; raises NotFound for a strange account, and
    OcsError where nothing of any line could be read, `listed_is_enough` or not even listed.
    """
    fleet = await own_fleet(ctx, params)
    await require_account_in_fleet(fleet, account_id)
    fleet = await look_at_weeks(ctx, await look_at_fleet(ctx, fleet), window.first.toordinal())
    first = window.first.toordinal()
    known = await ctx.deps.store.read(fleet_knowledge, fleet=fleet.state.id, account=account_id, first=first, now=ctx.now)
    nothing_read = not known.some_read and known.progress.unread > 0 and not listed_is_enough
    if fleet.state.error and (nothing_read or not fleet.state.listed):
        raise OcsError(fleet.state.error)
    return FleetView(fleet, known, account_id)


async def at_once(one: Coroutine[object, object, One], other: Coroutine[object, object, Other]) -> tuple[One, Other]:
    """What both give, which wait at the same time. What one of them raises is raised, and ends the other."""
    beside = asyncio.ensure_future(other)
    try:
        return await one, await beside
    finally:
        beside.cancel()
        await asyncio.gather(beside, return_exceptions=True)
