"""Listing a fleet: every line of its accounts is compared with its row, what moved is written, and what has left is hidden.

A listing that was cut off or failed removes nothing. A line that a finished listing does not show is asked for by its number; where too
many are missing for that, they are hidden when the next finished listing does not show them either.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import anyio.lowlevel
import orjson

from clients.ocs.subscribers import Subscriber
from operations.deps import Deps
from operations.event_types.declaration import new_event
from operations.event_types.organisation import ORGANISATION_FLEET_SYNCED, SyncedFleet
from operations.fleet.line_news import store_listed_lines
from operations.fleet.line_reading import reading_after_listing
from operations.fleet.wire_rows import NamesKept, line_rows, row_digest
from operations.upstream.account_lines import PARALLEL_PREFIXES, AccountSweep, read_first_lines, subscriber_number
from operations.upstream.connection import Upstream
from registry.errors import OcsNotFound
from registry.ids import Ids
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.fleet_line_news import is_gap, restart_baseline
from storage.fleet_lines import KnownLine, LineWrite, hide_lines, known_lines, lines_of_fleet, miss_lines
from storage.fleet_readings import work_of_lines
from storage.fleet_tags import end_stray_tags, stray_tags
from storage.fleets import LIST_EVERY_SECONDS, FleetState, note_listing

ROWS_A_TURN = 50
LINES_A_WRITE = 200
LISTING_CALLS_LIMIT = 20_000
LEAST_LISTING_CALLS, CALLS_A_LINE = 200, 5
"""A charging system that says of every list that there is more is not asked for ever: so many calls, and some for each line."""
LOOKED_FOR_LIMIT = 100
"""Lines that a listing does not show, and that are asked for one by one."""
LEAF_ROWS = 400
"""A prefix that lists more lines is asked for in tenths the next time, so that no answer takes long to read."""
CLOCK_LEEWAY = 60.0
"""The clocks of two processes differ by fewer seconds."""
LISTING_SHARE = 20
"""A listing that takes long is repeated after so many times as long."""


class FleetListing:
    """One listing under way."""

    def __init__(self, deps: Deps, fleet: FleetState, upstream: Upstream, *, names: NamesKept, alive: Callable[[], bool]) -> None:
        """`alive`: whether the lease is still held; where it is not, the listing ends and changes nothing more."""
        self._deps, self._fleet, self._upstream, self._names, self._alive = deps, fleet, upstream, names, alive
        self._known: Mapping[int, KnownLine] = {}
        self._seen: set[int] = set()
        self._rows: list[Subscriber] = []
        self._changed: list[tuple[Subscriber, int]] = []
        self._leaves: dict[str, list[str]] = {}
        self._nameless = False
        """Whether a row had no ICCID that could be one: it is no line, and is told to be missing."""
        self.calls = 0
        self.written = 0

    async def run(self) -> bool:
        """Lists all accounts; whether every line was reached. What was written before an OcsError stays. Waits for the network."""
        clock = self._deps.clock
        began, monotonic = clock.now(), clock.monotonic()
        if is_gap(self._fleet.listed, self._fleet.listing_seconds, began):
            await self._deps.store.write(restart_baseline, fleet=self._fleet.id, now=began)
        self._known = await self._deps.store.read(known_lines, fleet=self._fleet.id)
        former = former_leaves(self._fleet.parts)
        complete = True
        for account in await self._upstream.accounts():
            number = account.get("id", 0)
            complete = await self._account(number, former.get(str(number), [])) and complete
        await self._write()
        if not self._alive():
            return False
        if complete:
            await self._remove_missing(began)
        complete = complete and not self._nameless
        seconds = clock.monotonic() - monotonic
        due, parts = clock.now() + max(LIST_EVERY_SECONDS, LISTING_SHARE * seconds), orjson.dumps(self._leaves).decode()
        ended = EndedListing(began, seconds, due, int(not complete), parts)
        await self._deps.store.write(end_listing, fleet=self._fleet, ended=ended, ids=self._deps.ids, now=clock.now())
        if complete:
            await self._end_stray_tags(began - CLOCK_LEEWAY)
        return complete

    async def _end_stray_tags(self, before: float) -> None:
        """Ends tags that were set before a moment (Unix seconds) on lines that have left without anybody seeing it."""
        store, fleet = self._deps.store, self._fleet
        strays = await store.read(stray_tags, organisation=fleet.organisation, before=before)
        if strays:
            await store.write(end_stray_tags, organisation=fleet.organisation, iccids=strays, before=before)

    @property
    def _calls_limit(self) -> int:
        return min(LISTING_CALLS_LIMIT, LEAST_LISTING_CALLS + CALLS_A_LINE * max(len(self._known), len(self._seen)))

    async def _account(self, account: int, prefixes: Sequence[str]) -> bool:
        """Reads one account; whether all of its lines were found."""
        sweep = AccountSweep(self._upstream, account, 0, keep_rows=False, rows=self._rows.extend)
        first = await read_first_lines(self._upstream, account)
        self.calls += 1
        if not first.cut_off:
            self._rows += first.rows
            await self._compare()
            return not first.strangers
        sweep.begin(first, prefixes)
        await self._compare()
        while not sweep.over and self.calls < self._calls_limit and self._alive():
            await sweep.go_on(PARALLEL_PREFIXES)
            self.calls += PARALLEL_PREFIXES - sweep.calls
            await self._compare()
        self._leaves[str(account)] = [
            leaf
            for part in sweep.parts
            for leaf in (
                [part.prefix] if len(part.iccids) <= LEAF_ROWS or len(part.prefix) >= 18 else [f"{part.prefix}{n}" for n in range(10)]
            )
        ]
        return sweep.complete or (first.total is None and sweep.over)

    async def _compare(self) -> None:
        """Holds the rows that have come against what is known, a few at a time; changed ones are written."""
        rows, self._rows[:] = list(self._rows), []
        for start in range(0, len(rows), ROWS_A_TURN):
            for row in rows[start : start + ROWS_A_TURN]:
                self._look(row)
            if len(self._changed) >= LINES_A_WRITE:
                await self._write()
            await anyio.lowlevel.checkpoint()

    def _look(self, row: Subscriber) -> None:
        number = subscriber_number(row)
        if number in self._seen:
            return
        self._seen.add(number)
        known, digest = self._known.get(number), row_digest(row, personal=self._names.of(number))
        if known is None or known.digest != digest or known.missed:
            self._changed.append((row, 0 if known is None else known.version))

    async def _write(self) -> None:
        changed, self._changed = self._changed, []
        if not changed or not self._alive():
            return
        store, now = self._deps.store, self._deps.clock.now()
        numbers = [subscriber_number(row) for row, seen in changed if seen]
        before = {line.subscriber_id: line for line in await store.read(work_of_lines, fleet=self._fleet.id, numbers=numbers)}
        writes: list[LineWrite] = []
        for row, seen in changed:
            number = subscriber_number(row)
            made = line_rows(row, personal=self._names.of(number))
            if made is None:
                self._nameless = True
            else:
                rank, due = reading_after_listing(before.get(number), made[0], now)
                writes.append(LineWrite(number, seen, *made, rank, due))
            if len(writes) % ROWS_A_TURN == 0:
                await anyio.lowlevel.checkpoint()
        deps, fleet = self._deps, self._fleet.id
        self.written += await store.write(store_listed_lines, fleet=fleet, lines=writes, now=now, keyring=deps.keyring, ids=deps.ids)

    async def _remove_missing(self, now: float) -> None:
        """Hides lines that have left. `now`: when this listing began, Unix seconds."""
        store, fleet = self._deps.store, self._fleet.id
        missing = [line for number, line in self._known.items() if number not in self._seen]
        if len(missing) > LOOKED_FOR_LIMIT:
            gone = [line for line in missing if line.missed]
            await store.write(miss_lines, fleet=fleet, lines=[line for line in missing if not line.missed])
        else:
            accounts = {account.get("id") for account in await self._upstream.accounts()}
            gone = [line for line in missing if not await self._is_own(line.subscriber_id, accounts)]
        for start in range(0, len(gone), LINES_A_WRITE):
            await store.write(hide_lines, fleet=fleet, lines=gone[start : start + LINES_A_WRITE], now=now)

    async def _is_own(self, number: int, accounts: set[int | None]) -> bool:
        """Whether a line that no list showed is in one of the caller's accounts all the same: it was moved while the lists were read."""
        self.calls += 1
        try:
            row = await self._upstream.ocs.subscriber.get_single_subscriber(number)
        except OcsNotFound:
            return False
        return row.get("accountId") in accounts


class EndedListing(NamedTuple):
    """How a listing ended, as `note_listing` has it."""

    began: float
    seconds: float
    list_due: float
    cut: int
    parts: str


def end_listing(connection: Connection, *, fleet: FleetState, ended: EndedListing, ids: Ids, now: float) -> None:
    """Notes the end of a listing of `fleet`, as it was before; the first one, and the first one after a gap, is told of. `now`: Unix
    seconds."""
    if not note_listing(connection, fleet=fleet.id, token=fleet.lease, seen=fleet.list_due, **ended._asdict()):
        return
    if fleet.listed == 0 or is_gap(fleet.listed, fleet.listing_seconds, ended.began):
        counts: SyncedFleet = {
            "lines": lines_of_fleet(connection, fleet=fleet.id),
            "complete": not ended.cut,
            "reason": "gap" if fleet.listed else "first",
        }
        event = new_event(ORGANISATION_FLEET_SYNCED, counts, organisation=fleet.organisation, ids=ids, now=now)
        log_event(connection, event=event)


def former_leaves(text: str) -> dict[str, list[str]]:
    """The prefixes that listed the lines of each account the last time."""
    return orjson.loads(text) if text else {}
