"""Keeping the read model of every connected fleet: who reads which fleet now, what is read next, and how politely.

One process at a time reads a fleet, under a lease in the database; a process that dies is noticed when its lease ends, and the next one
goes on with what is still due. Fleets take turns of a few seconds. Every call waits behind those that people and agents wait for, and takes
one of at most half of the token's places.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio

from clients.ocs.places import in_background
from operations.deps import Deps
from operations.fleet.line_reading import LineGone, read_line
from operations.fleet.listing import FleetListing
from operations.fleet.wire_rows import NamesKept
from operations.upstream.connection import Upstream, upstream_of_organisation
from registry.errors import OcsError, OcsUnavailable, Refusal
from storage.fleet_erasure import erased_lines
from storage.fleet_judgements import next_judge_due
from storage.fleet_lines import KnownLine, LineWork, hide_lines, next_line_due, next_lines, postpone_line, record_reading
from storage.fleets import (
    MARKED,
    FleetState,
    begin_fleet,
    claim_fleet,
    claim_next_fleet,
    connected_without_fleet,
    find_fleet,
    finish_fleet_turn,
    fleet_state,
    has_fleet_tables,
    next_fleet_due,
    personal_choice,
    renew_fleet_lease,
)

TURN_SECONDS = 5.0
STEP_SECONDS = 45.0
LEASE_SECONDS = 30.0
LINES_AT_ONCE = 64
FAILURES_IN_A_ROW = 8
FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 5.0, 300.0
FAILED_LINE_SECONDS = 900.0
IDLE_SECONDS = 3600.0
NEW_FLEETS_AT_ONCE = 20
TRAFFIC_LIMIT_CODE = 100


def fleet_identity(upstream: Upstream, instance: str) -> str:
    """What a fleet is known by beside its organisation: which token shows it, which account, and which simulated network."""
    return f"{upstream.identity[:32]}:{upstream.account_id or ''}:{instance}"


async def open_fleet(deps: Deps, upstream: Upstream) -> FleetState:
    """The fleet that `upstream` shows, made where there is none yet. Waits for the database."""
    identity = fleet_identity(upstream, deps.network_instance)
    known = await deps.store.read(find_fleet, organisation=upstream.organisation, identity=identity)
    if known is not None:
        return known
    named = {"organisation": upstream.organisation, "identity": identity, "instance": deps.network_instance}
    return await deps.store.write(begin_fleet, **named, now=deps.clock.now())


async def keeps_names(deps: Deps, organisation: str) -> bool:
    """Whether customers' names are kept: as an admin has chosen, else as the deployment does it."""
    chosen = await deps.store.read(personal_choice, organisation=organisation)
    return deps.keeps_names if chosen < 0 else bool(chosen)


async def names_kept(deps: Deps, organisation: str) -> NamesKept:
    """Whose names are kept in the read model of `organisation`. Waits for the database."""
    return NamesKept(await keeps_names(deps, organisation), await deps.store.read(erased_lines, organisation=organisation))


@dataclass(slots=True)
class TurnFailures:
    """Failures of one turn. `stop`: the charging system cannot take more now."""

    in_a_row: int = 0
    stop: bool = False
    last: Refusal | None = None


class FleetTurn:
    """One turn of reading one fleet, under a lease."""

    def __init__(self, deps: Deps, fleet: FleetState, upstream: Upstream, names: NamesKept) -> None:
        self._deps, self._fleet, self._upstream, self._names = deps, fleet, upstream, names
        self._failures = TurnFailures()
        self._accounts = frozenset[int]()
        self._calls = 0
        self._leased_until = fleet.lease_until
        self._lost = False

    async def run(self, seconds: float = TURN_SECONDS, progress: Callable[[int], None] | None = None) -> None:
        """Lists and reads for `seconds` at most, then gives the lease back. A listing that has begun is finished. Waits for the network."""
        ends = self._deps.clock.monotonic() + seconds
        try:
            with in_background():
                await self._read(ends, progress)
        except Refusal as failure:
            self._failures.last, self._failures.stop = failure, True
        await self._give_back()

    async def _read(self, ends: float, progress: Callable[[int], None] | None) -> None:
        clock, store, fleet = self._deps.clock, self._deps.store, self._fleet.id
        self._accounts = frozenset(account.get("id", 0) for account in await self._upstream.accounts())
        if self._fleet.list_due <= clock.now():
            listing = FleetListing(self._deps, self._fleet, self._upstream, names=self._names, alive=lambda: not self._lost)
            async with anyio.create_task_group() as group:
                group.start_soon(self._hold_lease)
                try:
                    await listing.run()
                finally:
                    self._calls += listing.calls
                    group.cancel_scope.cancel()
        while clock.monotonic() < ends and not self._failures.stop and not self._lost:
            lines = await store.read(next_lines, fleet=fleet, now=clock.now(), most=LINES_AT_ONCE)
            judged = await self._deps.judge(self._deps, self._fleet, None)
            if not lines and not judged:
                return
            await self._renew()
            waiting = iter(lines)
            async with anyio.create_task_group() as group:
                for _ in range(min(self._deps.ocs.background_places, len(lines))):
                    group.start_soon(self._lines, waiting)
            if progress is not None:
                progress(len(lines))

    async def _lines(self, waiting: Iterator[LineWork]) -> None:
        for line in waiting:
            if self._failures.stop or self._lost:
                return
            try:
                await self._line(line)
                self._failures.in_a_row = 0
            except OcsError as failure:
                await self._failed(line, failure)

    async def _line(self, line: LineWork) -> None:
        """Reads what is due of one line and stores it; hides a line that has left."""
        store, fleet, now = self._deps.store, self._fleet.id, self._deps.clock.now()
        marked = line.rank == MARKED
        found = await read_line(self._upstream, line, self._accounts, now, names=self._names, own_row=marked)
        if isinstance(found, LineGone):
            self._calls += 1
            await store.write(hide_lines, fleet=fleet, lines=[KnownLine(line.subscriber_id, 0, line.version, 0)], now=now)
            return
        self._calls += marked + (found.packages is not None) + (found.usage is not None)
        await store.write(record_reading, fleet=fleet, reading=found, now=now)

    async def _failed(self, line: LineWork, failure: OcsError) -> None:
        """A line that could not be read is tried again later; where the charging system takes no more calls, the turn ends."""
        failures = self._failures
        failures.last, failures.in_a_row = failure, failures.in_a_row + 1
        crowded = isinstance(failure, OcsUnavailable) or failure.ocs_code == TRAFFIC_LIMIT_CODE
        failures.stop = failures.stop or crowded or failures.in_a_row >= FAILURES_IN_A_ROW
        if not failures.stop:
            due = self._deps.clock.now() + FAILED_LINE_SECONDS
            await self._deps.store.write(postpone_line, fleet=self._fleet.id, subscriber_id=line.subscriber_id, seen=line.version, due=due)

    async def _hold_lease(self) -> None:
        while True:
            await anyio.sleep(LEASE_SECONDS / 3)
            await self._renew()

    async def _renew(self) -> None:
        now, until = self._deps.clock.now(), self._deps.clock.now() + LEASE_SECONDS
        if self._leased_until - now < LEASE_SECONDS * 2 / 3:
            self._lost = not await self._deps.store.write(renew_fleet_lease, fleet=self._fleet.id, token=self._fleet.lease, until=until)
            self._leased_until = until

    async def _give_back(self) -> None:
        """Ends the turn: says when the fleet is due again, and what went wrong."""
        clock, store, fleet, failures = self._deps.clock, self._deps.store, self._fleet, self._failures
        now, failed, backoff = clock.now(), 0, 0.0
        if failures.stop:
            failed = fleet.failures + 1
            pause = getattr(failures.last, "retry_after", None) or 0
            backoff = now + max(float(pause), min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(failed - 1, 10)))
        state = await store.read(fleet_state, fleet=fleet.id)
        waits = [state.list_due if state is not None else now + IDLE_SECONDS]
        for due in (await store.read(next_line_due, fleet=fleet.id), await store.read(next_judge_due, fleet=fleet.id)):
            waits += [] if due is None else [due]
        await store.write(
            finish_fleet_turn,
            fleet=fleet.id,
            token=fleet.lease,
            due=min(waits),
            backoff_until=backoff,
            failures=failed,
            calls=self._calls,
            error="" if failures.last is None else failures.last.message[:300],
            error_at=0.0 if failures.last is None else now,
        )


class FleetSync:
    """Keeps the fleets of all organisations, as one chore of the worker."""

    def __init__(self, deps: Deps, report: Callable[[str], None], begun: Callable[[], bool] = lambda: True) -> None:
        """`begun`: whether the charging system is to be asked at all; a simulated one in this process is not begun for it alone."""
        self._deps, self._report, self._begun = deps, report, begun

    async def step(self) -> None:
        """Makes fleets of new connections, and gives each due fleet a turn, until none is due or the time is over."""
        deps = self._deps
        ends = deps.clock.monotonic() + STEP_SECONDS
        if not self._begun() or not await deps.store.read(has_fleet_tables):
            return
        await self._find_new()
        while deps.clock.monotonic() < ends and await self._turn():
            pass

    async def _find_new(self) -> None:
        for organisation in await self._deps.store.read(
            connected_without_fleet, instance=self._deps.network_instance, most=NEW_FLEETS_AT_ONCE
        ):
            try:
                await open_fleet(self._deps, await upstream_of_organisation(self._deps, organisation))
            except OcsError:  # its token is missing or cannot be opened: whoever asks is told so
                continue

    async def _turn(self) -> bool:
        """Reads the due fleet that was served longest ago; False where none is due."""
        deps, instance = self._deps, self._deps.network_instance
        now = deps.clock.now()
        if not await deps.store.read(next_fleet_due, now=now, instance=instance):
            return False
        token = deps.ids.new("lse_")
        fleet = await deps.store.write(claim_next_fleet, token=token, now=now, until=now + LEASE_SECONDS, instance=instance)
        if fleet is None:
            return False
        await run_turn(deps, fleet)
        return True


async def run_turn(deps: Deps, fleet: FleetState, seconds: float = TURN_SECONDS, progress: Callable[[int], None] | None = None) -> None:
    """One turn of the fleet, whose lease the caller has just taken. Waits for the network."""
    try:
        upstream = await upstream_of_organisation(deps, fleet.organisation)
    except OcsError as failure:
        now = deps.clock.now()
        await deps.store.write(
            finish_fleet_turn,
            fleet=fleet.id,
            token=fleet.lease,
            due=now + IDLE_SECONDS,
            backoff_until=0.0,
            failures=fleet.failures + 1,
            calls=0,
            error=failure.message[:300],
            error_at=now,
        )
        return
    await FleetTurn(deps, fleet, upstream, await names_kept(deps, fleet.organisation)).run(seconds, progress)


async def take_turn(deps: Deps, fleet: FleetState, seconds: float, progress: Callable[[int], None] | None = None) -> bool:
    """Reads this fleet for `seconds`, whether it is due or not; False while another process reads it. Waits for the network."""
    now = deps.clock.now()
    token = deps.ids.new("lse_")
    claimed = await deps.store.write(claim_fleet, fleet=fleet.id, token=token, now=now, until=now + LEASE_SECONDS)
    if claimed is None:
        return False
    await run_turn(deps, claimed, seconds, progress)
    return True
