"""The way to the read model of the caller's fleet: which rows the credential may see, the first look at a new connection, and how old
what is known is."""

from typing import Protocol

import anyio

from operations.deps import Ctx
from operations.fleet.line_refresh import OwnFleet, refresh_lines
from operations.fleet.sync import open_fleet, take_turn
from operations.upstream.connection import connect_upstream
from registry.clock import limit_reading_time, rfc3339_utc, seconds_left
from registry.errors import NotFound, Restricted
from storage.fleet_lines import lines_of_fleet
from storage.fleet_search import (
    FleetBounds,
    FleetKnowledge,
    FleetProgress,
    changed_lines,
    fleet_knowledge,
    fleet_progress,
    has_unjudged_line,
)
from storage.fleets import FleetState, fleet_state, is_dated_ahead, is_held_up, is_listing_asked_for

FIRST_LOOK_SECONDS = 20.0
FIRST_LOOK_SHARE = 20
"""While more than one line of so many has never been read, whoever asks waits; a line that was added later is not waited for."""
LATE_SECONDS = 60.0
"""A fleet that is due for so long is read by nobody: then whoever asks reads for a while."""
CATCH_UP_SECONDS = 5.0
TURN_OF_LOOK_SECONDS = 2.0
LOOK_SECONDS = 0.2
FIRST_LOOKS = round(FIRST_LOOK_SECONDS / LOOK_SECONDS)
CHANGED_LINES_READ = 20
"""Lines that calls of the organisation have just changed and that are read before the next question is answered."""


async def own_fleet(ctx: Ctx, params: object) -> OwnFleet:
    """The access rule of operations on the fleet as a whole. Waits for the database, and at a first look for the network."""
    del params
    held = ctx.row_bounds()
    upstream = await connect_upstream(ctx)
    state = await open_fleet(ctx.deps, upstream)
    return OwnFleet(upstream, state, FleetBounds(held.iccids, held.account_ids, held.tags))


class AccountAsked(Protocol):
    """An input that may ask for one account."""

    @property
    def account_id(self) -> int | None: ...


async def own_fleet_or_account(ctx: Ctx, params: AccountAsked) -> OwnFleet:
    """The access rule where an account may be named, too: it must be the caller's. Raises NotFound."""
    fleet = await own_fleet(ctx, params)
    await require_account_in_fleet(fleet, params.account_id)
    return fleet


async def require_account_in_fleet(fleet: OwnFleet, account_id: int | None) -> None:
    """Raises NotFound for an account that is not the caller's, and Restricted where the credential may see some lines alone."""
    if account_id is not None and (fleet.bounds.iccids is not None or fleet.bounds.tags is not None):
        lines = "named lines" if fleet.bounds.iccids is not None else "lines with certain tags"
        raise Restricted(f"This API key is restricted to {lines}, so it asks for no account: leave accountId out and it sees its lines")
    if account_id is not None and fleet.bounds.accounts is not None and account_id not in fleet.bounds.accounts:
        raise Restricted("accountId: this API key is restricted to named accounts, and this is none of them", param="accountId")
    if account_id is not None and not await fleet.upstream.owns_account(account_id):
        raise NotFound("You have no account with this id", param="accountId", hint="list_reseller_accounts shows yours")


async def look_at_fleet(ctx: Ctx, fleet: OwnFleet) -> OwnFleet:
    """The fleet after it has been read once: the first look at a new connection waits for that, 20 seconds at most, and tells progress.

    A fleet that nobody reads in the background, as where no worker runs, is read for a moment. Lines that calls of the organisation have
    just changed are read. Waits for the network.
    """
    limit_reading_time()
    now, state = ctx.deps.clock.now(), fleet.state
    known = await read_progress(ctx, state)
    if is_first_look(fleet, known):
        fleet = await read_for_first_time(ctx, fleet)
    elif (state.due < now - LATE_SECONDS or is_dated_ahead(state, now)) and state.lease_until < now and not is_held_up(state, now):
        await take_turn(ctx.deps, state, min(CATCH_UP_SECONDS, seconds_left(CATCH_UP_SECONDS)))
    state = await ctx.deps.store.read(fleet_state, fleet=state.id) or fleet.state
    if not is_held_up(state, now):
        changed = await ctx.deps.store.read(changed_lines, fleet=state.id, bounds=fleet.bounds, most=CHANGED_LINES_READ)
        if changed:
            await refresh_lines(ctx, fleet, changed, whole=True)
    return fleet._replace(state=state)


async def read_progress(ctx: Ctx, state: FleetState) -> FleetProgress:
    """How far the whole fleet has been read, whoever asks."""
    return await ctx.deps.store.read(fleet_progress, fleet=state.id, bounds=FleetBounds(), now=ctx.deps.clock.now())


def is_first_look(fleet: OwnFleet, known: FleetProgress) -> bool:
    """Whether so much has never been read, or a call of ours has changed a line that was never listed, that whoever asks should wait.

    Of such a line a caller who sees some lines alone learns nothing.
    """
    asked_for = sees_all(fleet) and is_listing_asked_for(fleet.state)
    return not fleet.state.listed or asked_for or known.due * FIRST_LOOK_SHARE > known.lines


def sees_all(fleet: OwnFleet) -> bool:
    """Whether the credential may see every line: else neither counts nor sentences about the whole fleet are told."""
    return fleet.bounds == FleetBounds()


async def read_for_first_time(ctx: Ctx, fleet: OwnFleet) -> OwnFleet:
    """Reads the fleet, or waits for whoever reads it, and tells progress. Waits for the network."""
    deps, state = ctx.deps, fleet.state
    ends = deps.clock.monotonic() + min(FIRST_LOOK_SECONDS, max(0.0, seconds_left(FIRST_LOOK_SECONDS + 2) - 2))
    for _ in range(FIRST_LOOKS):
        left = ends - deps.clock.monotonic()
        if left <= 0 or is_held_up(state, deps.clock.now()):
            break
        taken = False
        with anyio.move_on_after(left):  # a listing that has begun would be finished, however long it takes
            taken = await take_turn(deps, state, min(TURN_OF_LOOK_SECONDS, left), first_look=True)
        if not taken:
            await anyio.sleep(LOOK_SECONDS)
        known = await read_progress(ctx, state)
        state = await deps.store.read(fleet_state, fleet=state.id) or state
        lines = known.lines or await deps.store.read(lines_of_fleet, fleet=state.id)
        if sees_all(fleet):
            await ctx.progress(lines - known.unread, lines or None, f"Read {lines - known.unread} of {lines} lines")
        if not is_first_look(fleet._replace(state=state), known) and not known.due and not await has_unjudged(ctx, state):
            break
    return fleet._replace(state=state)


async def has_unjudged(ctx: Ctx, state: FleetState) -> bool:
    return await ctx.deps.store.read(has_unjudged_line, fleet=state.id, now=ctx.deps.clock.now())


async def look_at_weeks(ctx: Ctx, fleet: OwnFleet, first: int) -> OwnFleet:
    """The fleet after its days from `first` (an ordinal) on have been read: a first look waits for that, 20 seconds at most in all.

    Waits for the network.
    """
    deps, state, known = ctx.deps, fleet.state, await read_knowledge(ctx, fleet.state, first)
    ends = deps.clock.monotonic() + min(FIRST_LOOK_SECONDS, max(0.0, seconds_left(FIRST_LOOK_SECONDS + 2) - 2))
    for _ in range(FIRST_LOOKS):
        left = ends - deps.clock.monotonic()
        waiting = known.days_missing + known.unjudged
        if left <= 0 or is_held_up(state, deps.clock.now()) or waiting * FIRST_LOOK_SHARE <= known.lines:
            break
        if not await take_turn(deps, state, min(TURN_OF_LOOK_SECONDS, left)):
            await anyio.sleep(LOOK_SECONDS)
        state = await deps.store.read(fleet_state, fleet=state.id) or state
        known = await read_knowledge(ctx, state, first)
        waiting = known.days_missing + known.unjudged
        if sees_all(fleet):
            told = f"Read the days of {known.lines - waiting} of {known.lines} lines"
            await ctx.progress(known.lines - waiting, known.lines or None, told)
    return fleet._replace(state=state)


async def read_knowledge(ctx: Ctx, state: FleetState, first: int) -> FleetKnowledge:
    """How far the whole fleet is known from the day `first` on, whoever asks."""
    return await ctx.deps.store.read(fleet_knowledge, fleet=state.id, account=None, first=first, now=ctx.deps.clock.now())


def missing_knowledge(fleet: OwnFleet, known: FleetKnowledge, now: float) -> list[str]:
    """What verdicts and figures lack, a sentence each: what `missing_sentences` says, days of use, and a look at what was read."""
    sentences = missing_sentences(fleet, known.progress, now)
    if known.days_missing:
        sentences.append(
            f"The last weeks of {known.days_missing} of {known.lines} lines have not been read yet, so that causes "
            "which compare weeks may be missing; that goes on now."
        )
    if known.unjudged:
        sentences.append(f"{lines_have(known.unjudged)} not been looked into since they were read; that goes on now.")
    return sentences


def missing_lines(known: FleetKnowledge) -> int:
    """Of how many lines something is missing."""
    return min(known.lines, known.progress.unread + known.progress.changed + known.days_missing + known.unjudged)


def lines_have(count: int) -> str:
    """The beginning of a sentence about so many lines."""
    return "1 line has" if count == 1 else f"{count} lines have"


def missing_sentences(fleet: OwnFleet, known: FleetProgress, now: float) -> list[str]:
    """What the model lacks, a sentence each, and when it will be there."""
    sentences: list[str] = []
    state = fleet.state
    if not state.listed:
        sentences.append("The lines have not been listed yet; ask again in a minute.")
    if sees_all(fleet) and is_listing_asked_for(state):
        sentences.append("A call of yours has changed lines that have not been listed yet; the next listing, in a minute, shows them.")
    if state.cut:
        sentences.append("The charging system's lists did not show every line; those it left out are in no figure.")
    if known.unread:
        sentences.append(f"The packages and use of {known.unread} of {known.lines} lines have not been read yet; that goes on now.")
    if known.changed:
        told = "changed and could not be read again yet: filters by packages and use may miss them; they are next"
        sentences.append(f"{lines_have(known.changed)} {told}.")
    if is_held_up(state, now):
        again = rfc3339_utc(state.backoff_until)
        sentences.append(f"The charging system could not be read ({state.error.rstrip('.')}); it is asked again at {again}.")
    return sentences
