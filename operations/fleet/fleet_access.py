"""The way to the read model of the caller's fleet: which rows the credential may see, the first look at a new connection, and how old
what is known is."""

from typing import NamedTuple

import anyio

from operations.deps import Ctx
from operations.fleet.sync import open_fleet, take_turn
from operations.upstream.connection import Upstream, connect_upstream
from registry.clock import limit_reading_time, rfc3339_utc, seconds_left
from registry.errors import NotFound, StoreUnavailable
from registry.operation import Input
from storage.fleet_search import FleetBounds, FleetProgress, fleet_progress
from storage.fleets import FleetState, fleet_state, has_fleet_tables

FIRST_LOOK_SECONDS = 20.0
LATE_SECONDS = 60.0
"""A fleet that is due for so long is read by nobody: then whoever asks reads for a while."""
CATCH_UP_SECONDS = 5.0
LOOK_SECONDS = 0.2
FIRST_LOOKS = round(FIRST_LOOK_SECONDS / LOOK_SECONDS)


class OwnFleet(NamedTuple):
    """The caller's fleet, the way to its charging system, and the rows that the credential may see."""

    upstream: Upstream
    state: FleetState
    bounds: FleetBounds


async def own_fleet(ctx: Ctx, params: Input) -> OwnFleet:
    """The access rule of operations on the fleet as a whole. Waits for the database, and at a first look for the network."""
    del params
    held = ctx.row_bounds()
    upstream = await connect_upstream(ctx)
    if not await ctx.deps.store.read(has_fleet_tables):
        raise StoreUnavailable("The database has not been upgraded for this yet: whoever runs the service runs `reseller db upgrade`")
    state = await open_fleet(ctx.deps, upstream)
    return OwnFleet(upstream, state, FleetBounds(held.iccids, held.account_ids))


async def require_account_in_fleet(fleet: OwnFleet, account_id: int | None) -> None:
    """Raises NotFound for an account that is not the caller's. Waits for the network."""
    if account_id is not None and not await fleet.upstream.owns_account(account_id):
        raise NotFound("You have no account with this id", param="accountId", hint="list_reseller_accounts shows yours")


async def look_at_fleet(ctx: Ctx, fleet: OwnFleet) -> OwnFleet:
    """The fleet after it has been read once: the first look at a new connection waits for that, 20 seconds at most, and tells progress.

    A fleet that nobody reads in the background, as where no worker runs, is read for a moment. Waits for the network.
    """
    limit_reading_time()
    clock, deps = ctx.deps.clock, ctx.deps
    state, began = fleet.state, clock.monotonic()
    known = await deps.store.read(fleet_progress, fleet=state.id, bounds=FleetBounds(), now=clock.now())
    if state.listed and not known.unread:
        if state.due < clock.now() - LATE_SECONDS and state.lease_until < clock.now() and state.backoff_until < clock.now():
            await take_turn(deps, state, min(CATCH_UP_SECONDS, seconds_left(CATCH_UP_SECONDS)))
        return fleet._replace(state=await deps.store.read(fleet_state, fleet=state.id) or state)
    ends = began + min(FIRST_LOOK_SECONDS, max(0.0, seconds_left(FIRST_LOOK_SECONDS + 2) - 2))
    for _ in range(FIRST_LOOKS):
        if clock.monotonic() >= ends:
            break
        if not await take_turn(deps, state, min(2.0, ends - clock.monotonic())):
            await anyio.sleep(LOOK_SECONDS)
        known = await deps.store.read(fleet_progress, fleet=state.id, bounds=FleetBounds(), now=clock.now())
        state = await deps.store.read(fleet_state, fleet=state.id) or state
        await ctx.progress(known.lines - known.unread, known.lines or None, f"Read {known.lines - known.unread} of {known.lines} lines")
        if (state.listed and not known.unread) or state.backoff_until > clock.now():
            break
    return fleet._replace(state=state)


def missing_sentences(state: FleetState, known: FleetProgress, now: float) -> list[str]:
    """What the model lacks, a sentence each, and when it will be there."""
    sentences: list[str] = []
    if not state.listed:
        sentences.append("The lines have not been listed yet; ask again in a minute.")
    if state.cut:
        sentences.append("The charging system's lists did not show every line; those it left out are in no figure.")
    if known.unread:
        sentences.append(f"The packages and use of {known.unread} of {known.lines} lines have not been read yet; that goes on now.")
    if state.backoff_until > now:
        again = rfc3339_utc(state.backoff_until)
        sentences.append(f"The charging system could not be read ({state.error.rstrip('.')}); it is asked again at {again}.")
    return sentences


def marked_sentences(left: int) -> list[str]:
    """What is said of `left` lines that were written to, or told of, and are not read again yet."""
    return [f"{left} lines have just changed and are read again now: their packages and use may be older than as_of."] if left else []
