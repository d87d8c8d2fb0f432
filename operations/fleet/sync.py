"""Keeping the read model of every connected fleet: who reads which fleet now, what is read next, and how politely.

One process at a time reads a fleet, under a lease in the database; a process that dies is noticed when its lease ends, and the next one
goes on with what is still due. Fleets take turns of a few seconds. Every call waits behind those that people and agents wait for, and takes
one of at most half of the token's places.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from clients.ocs.places import in_background
from operations.deps import Deps
from operations.fleet.line_news import store_readings
from operations.fleet.line_reading import LineGone, ReadingTime, read_fleet_line
from operations.fleet.listing import FleetListing
from operations.fleet.wire_rows import NamesKept, stored_packages
from operations.upstream.connection import Upstream, upstream_of_organisation
from registry.errors import OcsError, OcsUnavailable, ProviderError, Refusal, StoreUnavailable
from storage.engine.sql import Connection
from storage.fleet_erasure import erased_lines
from storage.fleet_judgements import next_judge_due
from storage.fleet_line_news import baseline_of_fleet, finish_baseline
from storage.fleet_lines import KnownLine, hide_lines
from storage.fleet_packages import FleetPackageRow
from storage.fleet_readings import LineWork, TimedReading, next_line_due, next_lines, postpone_line
from storage.fleets import (
    BACKFILL,
    MARKED,
    FleetState,
    begin_fleet,
    claim_fleet,
    claim_next_fleet,
    connected_without_fleet,
    end_fleet,
    find_fleet,
    fleet_state,
    give_lease_back,
    is_listing_due,
    make_fleet_due,
    next_fleet_due,
    personal_choice,
    renew_fleet_lease,
)

TURN_SECONDS = 5.0
STEP_SECONDS = 45.0
LEASE_SECONDS = 30.0
LINES_AT_ONCE = 256
READINGS_A_WRITE, KEPT_BACK_SECONDS = 32, 1.0
"""What was read of so many lines is stored at once, and nothing is kept back for longer."""
READERS_A_PLACE = 2
"""While one line is stored, another one has the place at the charging system."""
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
    """Whether customers' names are kept: as an admin has chosen, else as the deployment does it. Waits for the database."""
    return (await names_kept(deps, organisation)).kept


async def names_kept(deps: Deps, organisation: str) -> NamesKept:
    """Whose names are kept in the read model of `organisation`. Waits for the database."""
    chosen, erased = await deps.store.read(read_names_kept, organisation=organisation)
    return NamesKept(deps.keeps_names if chosen < 0 else bool(chosen), erased)


def read_names_kept(connection: Connection, *, organisation: str) -> tuple[int, frozenset[int]]:
    """What an admin has chosen (-1: nothing), and the lines whose names were erased."""
    return personal_choice(connection, organisation=organisation), erased_lines(connection, organisation=organisation)


@dataclass(slots=True)
class TurnFailures:
    """Failures of one turn. `stop`: the charging system, or the database, cannot take more now."""

    in_a_row: int = 0
    stop: bool = False
    last: Refusal | None = None

    def end_turn(self, failure: Refusal) -> None:
        """Notes a failure after which nothing more is asked in this turn."""
        self.last, self.stop = failure, True


class TurnEnd(NamedTuple):
    """What a turn leaves behind; times are Unix seconds, 0.0: none."""

    backoff_until: float
    failures: int
    calls: int
    error: str
    error_at: float


def end_turn(connection: Connection, *, fleet: FleetState, end: TurnEnd, idle_until: float) -> None:
    """Gives the lease back, and says when the fleet is due again: not before `idle_until` where nothing can be read at all.

    The fleet's row is changed first, so that a mark that is made now is either seen here or comes after.
    """
    if not give_lease_back(connection, fleet=fleet.id, token=fleet.lease, **end._asdict()):
        return
    state = fleet_state(connection, fleet=fleet.id)
    if state is None:
        return
    waits = [state.list_due, next_line_due(connection, fleet=fleet.id), next_judge_due(connection, fleet=fleet.id)]
    due = max(idle_until, min(moment for moment in waits if moment is not None))
    make_fleet_due(connection, fleet=fleet.id, due=due)


@dataclass(slots=True)
class TurnLease:
    """The lease under which a turn goes on. It is renewed all the time; where it is lost, nothing more is read or written."""

    deps: Deps
    fleet: FleetState
    until: float = field(init=False)
    lost: bool = False

    def __post_init__(self) -> None:
        self.until = self.fleet.lease_until

    async def hold(self) -> None:
        """Renews the lease until cancelled, or until it is lost. Where the database is away, it is lost when its time is over."""
        while not self.lost:
            await anyio.sleep(LEASE_SECONDS / 3)
            await self.renew()

    async def renew(self, *, at_once: bool = False) -> None:
        """Renews the lease when a third of it is over, or `at_once`."""
        now = self.deps.clock.now()
        if not at_once and self.until - now > LEASE_SECONDS * 2 / 3:
            return
        until = now + LEASE_SECONDS
        try:
            self.lost = not await self.deps.store.write(renew_fleet_lease, fleet=self.fleet.id, token=self.fleet.lease, until=until)
        except StoreUnavailable:
            self.lost = now >= self.until
        else:
            self.until = until


class FleetTurn:
    """One turn of reading one fleet, under a lease."""

    def __init__(
        self, deps: Deps, fleet: FleetState, upstream: Upstream, names: NamesKept, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        """`stopping`: whether this process ends; the turn ends then as one does whose time is over."""
        self._deps, self._fleet, self._upstream, self._names, self._stopping = deps, fleet, upstream, names, stopping
        self._failures, self._lease = TurnFailures(), TurnLease(deps, fleet)
        self._accounts = frozenset[int]()
        self._calls = 0
        self._ends, self._first_look = 0.0, False
        self._readings = list[TimedReading]()
        self._places = anyio.CapacityLimiter(deps.ocs.background_places)
        self._listed, self._cut = fleet.listed, bool(fleet.cut)

    async def run(self, seconds: float = TURN_SECONDS, *, first_look: bool = False) -> None:
        """Lists and reads for `seconds` at most, then gives the lease back. A listing that has begun is finished. Waits for the network.

        A `first_look` ends when every line was read and looked into once.
        """
        self._ends, self._first_look = self._deps.clock.monotonic() + seconds, first_look
        try:
            with in_background():
                async with anyio.create_task_group() as group:
                    group.start_soon(self._lease.hold)
                    await self._guarded_reading()
                    group.cancel_scope.cancel()
        finally:
            # Also where whoever waited has gone: else nobody could read the fleet until the lease ends.
            with anyio.CancelScope(shield=True):
                await self._give_back()

    @property
    def _over(self) -> bool:
        return self._failures.stop or self._lease.lost or self._stopping() or self._deps.clock.monotonic() >= self._ends

    async def _guarded_reading(self) -> None:
        """What fails as a whole ends the turn; no error leaves a group of tasks, which would wrap it."""
        try:
            await self._read()
        except Refusal as failure:
            self._failures.end_turn(failure)

    async def _read(self) -> None:
        clock, store, fleet = self._deps.clock, self._deps.store, self._fleet.id
        self._accounts = frozenset(account.get("id", 0) for account in await self._upstream.accounts())
        if is_listing_due(self._fleet, clock.now()):
            await self._list()
        readers, caught_up = READERS_A_PLACE * int(self._places.total_tokens), False
        while not self._over:
            found = await store.read(next_lines, fleet=fleet, now=clock.now(), most=LINES_AT_ONCE)
            if not caught_up and all(line.rank == BACKFILL for line in found.lines):
                caught_up = True  # whoever waits for a first look sees what is known of each line, before older weeks are read
                while not self._over and await self._judge():
                    pass
                await self._finish_baseline()
                if self._first_look:
                    return
            waiting, judged = iter(found.lines), 0
            async with anyio.create_task_group() as group:
                for _ in range(min(readers, len(found.lines))):
                    group.start_soon(self._lines, waiting, found.waiting)
                judged = await self._judge()
            await self._store()
            if not found.lines and not judged:
                return

    async def _finish_baseline(self) -> None:
        """From now on what changes is new: every line was read and looked into once since the fleet began, or since a gap."""
        known = await self._deps.store.read(baseline_of_fleet, fleet=self._fleet.id)
        if not self._over and (known is None or known.since <= 0):
            await self._deps.store.write(finish_baseline, fleet=self._fleet.id, now=self._deps.clock.now())

    async def _judge(self) -> int:
        """Judges some lines while others are read; how many. What fails here keeps no line from being read."""
        try:
            return await self._deps.judge(self._deps, self._fleet, None)
        except Refusal as failure:
            self._failures.last = failure
            return 0

    async def _list(self) -> None:
        began = self._deps.clock.now()
        listing = FleetListing(self._deps, self._fleet, self._upstream, names=self._names, alive=lambda: not self._lease.lost)
        try:
            self._cut = not await listing.run()
            self._listed = began
        finally:
            self._calls += listing.calls

    async def _lines(self, waiting: Iterator[LineWork], packages: Mapping[int, Sequence[FleetPackageRow]]) -> None:
        for line in waiting:
            if self._over:
                return
            try:
                await self._line(line, packages.get(line.subscriber_id, ()))
                self._failures.in_a_row = 0
            except OcsError as failure:
                await self._failed(line, failure)
            except Refusal as failure:
                self._failures.end_turn(failure)

    async def _line(self, line: LineWork, packages: Sequence[FleetPackageRow]) -> None:
        """Reads what is due of one line, to be stored with some others; hides a line that has left. `packages`: as they are stored."""
        store, fleet = self._deps.store, self._fleet.id
        marked, known = line.rank == MARKED, stored_packages(packages)
        async with self._places:  # whoever waits for a place further down has only so long for it
            if self._over:
                return
            now = self._deps.clock.now()
            # A listing that was cut off may not have shown the line: then its last use is as old as its row.
            time = ReadingTime(now, line.written if self._cut else self._listed)
            found = await read_fleet_line(self._upstream, line, self._accounts, time, names=self._names, known=known, own_row=marked)
        if isinstance(found, LineGone):
            self._calls += 1
            await store.write(hide_lines, fleet=fleet, lines=[KnownLine(line.subscriber_id, 0, line.version, 0)], now=now)
            return
        self._calls += marked + (found.packages is not None) + (found.usage is not None)
        self._readings.append(TimedReading(found, now))
        if len(self._readings) >= READINGS_A_WRITE or self._deps.clock.now() - self._readings[0].at >= KEPT_BACK_SECONDS:
            await self._store()

    async def _store(self) -> None:
        """Stores what was read since the last time, in one transaction, while others read on."""
        readings, self._readings = self._readings, []
        if not readings or self._lease.lost:
            return
        try:
            stored = await self._deps.store.write(
                store_readings,
                fleet=self._fleet.id,
                readings=readings,
                now=self._deps.clock.now(),
                keyring=self._deps.keyring,
                ids=self._deps.ids,
            )
        except StoreUnavailable as outage:
            self._failures.end_turn(outage)
        else:
            if not stored:  # the fleet may have ended
                await self._lease.renew(at_once=True)

    async def _failed(self, line: LineWork, failure: OcsError) -> None:
        """A line that could not be read is tried again later; where the charging system takes no more calls, the turn ends."""
        failures = self._failures
        failures.last, failures.in_a_row = failure, failures.in_a_row + 1
        crowded = isinstance(failure, OcsUnavailable) or failure.before_execution or failure.ocs_code == TRAFFIC_LIMIT_CODE
        failures.stop = failures.stop or crowded or failures.in_a_row >= FAILURES_IN_A_ROW
        if failures.stop:
            return
        due = self._deps.clock.now() + FAILED_LINE_SECONDS
        try:
            await self._deps.store.write(postpone_line, fleet=self._fleet.id, subscriber_id=line.subscriber_id, seen=line.version, due=due)
        except StoreUnavailable as outage:
            failures.end_turn(outage)

    async def _give_back(self) -> None:
        """Ends the turn: says when the fleet is due again, and what went wrong. Where the database is away the lease ends by itself."""
        now, last = self._deps.clock.now(), self._failures.last
        failed, backoff = 0, 0.0
        if self._failures.stop:
            failed = self._fleet.failures + 1
            backoff = now + max(asked_pause(last), min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(failed - 1, 10)))
        error, error_at = ("", 0.0) if last is None else (last.message[:300], now)
        end = TurnEnd(backoff, failed, self._calls, error, error_at)
        with suppress(StoreUnavailable):
            await self._deps.store.write(end_turn, fleet=self._fleet, end=end, idle_until=0.0)


def asked_pause(failure: Refusal | None) -> float:
    """For how many seconds the charging system wants to be left alone; 0.0 where it does not say."""
    return float(failure.headers.get("Retry-After", 0)) if isinstance(failure, ProviderError) else 0.0


class FleetSync:
    """Keeps the fleets of all organisations, as one chore of the worker."""

    def __init__(self, deps: Deps, report: Callable[[str], None], begun: Callable[[], bool] = lambda: True) -> None:
        """`begun`: whether the charging system is to be asked at all; a simulated one in this process is not begun for it alone."""
        self._deps, self._report, self._begun = deps, report, begun
        self._stopping = False
        self._looked_at = ""
        """The last organisation without a fleet: some stay so, since their tokens cannot be opened, and others come after them."""

    def stop(self) -> None:
        """Ends `step` when the lines that are being read are stored: what is left is still due at the next start."""
        self._stopping = True

    async def step(self) -> None:
        """Makes fleets of new connections, and gives each due fleet a turn, until none is due or the time is over."""
        deps = self._deps
        ends = deps.clock.monotonic() + STEP_SECONDS
        if not self._begun():
            return
        await self._find_new()
        while not self._stopping and deps.clock.monotonic() < ends and await self._turn():
            pass

    async def _find_new(self) -> None:
        instance, after = self._deps.network_instance, self._looked_at
        found = await self._deps.store.read(connected_without_fleet, instance=instance, after=after, most=NEW_FLEETS_AT_ONCE)
        self._looked_at = found[-1] if len(found) == NEW_FLEETS_AT_ONCE else ""
        for organisation in found:
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
        await run_turn(deps, fleet, stopping=lambda: self._stopping)
        return True


async def run_turn(
    deps: Deps,
    fleet: FleetState,
    seconds: float = TURN_SECONDS,
    *,
    first_look: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """One turn of the fleet, whose lease the caller has just taken, as `take_turn` says; `stopping` ends it. Waits for the network."""
    try:
        upstream = await upstream_of_organisation(deps, fleet.organisation)
    except OcsError as failure:
        now = deps.clock.now()
        end = TurnEnd(0.0, fleet.failures + 1, 0, failure.message[:300], now)
        await deps.store.write(end_turn, fleet=fleet, end=end, idle_until=now + IDLE_SECONDS)
        return
    if fleet_identity(upstream, deps.network_instance) != fleet.identity:
        # The service has another token, or a call that began before the connection was replaced has made this fleet.
        await deps.store.write(end_fleet, fleet=fleet.id)
        return
    turn = FleetTurn(deps, fleet, upstream, await names_kept(deps, fleet.organisation), stopping)
    await turn.run(seconds, first_look=first_look)


async def take_turn(deps: Deps, fleet: FleetState, seconds: float, *, first_look: bool = False) -> bool:
    """Reads this fleet for `seconds`, whether it is due or not; False while another process reads it. Waits for the network.

    A `first_look` ends when every line was read and looked into once.
    """
    now = deps.clock.now()
    token = deps.ids.new("lse_")
    claimed = await deps.store.write(claim_fleet, fleet=fleet.id, token=token, now=now, until=now + LEASE_SECONDS)
    if claimed is None:
        return False
    await run_turn(deps, claimed, seconds, first_look=first_look)
    return True
