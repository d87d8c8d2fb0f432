"""Processes that share limits over one database, moved step by step: each report and each answer is a step, and any may be lost."""

import sqlite3
import weakref
from dataclasses import dataclass, field

from registry.limit_lease import LimitLease, PreparedReport
from registry.shared_limits import CountingMode, LimitAnswer, LimitReport, SharedPlaces, bucket_portion
from storage.engine.sql import Connection, sqlite_dialect
from storage.limit_ledger import LIMIT_BUCKET, LIMIT_PLACE, LIMIT_PROCESS, count_report
from tests.clients.clock import ManualClock

RATE, SIZE, LIMIT = 5.0, 20, 4


class Database:
    """The tables of the shared limits, in memory. It is closed when nobody has it any more."""

    def __init__(self) -> None:
        self.raw = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)  # the collector runs in any thread
        weakref.finalize(self, self.raw.close)
        for each in (LIMIT_PROCESS, LIMIT_BUCKET, LIMIT_PLACE):
            columns = ", ".join(f'"{column.name}"' for column in each.columns)
            keys = ", ".join(f'"{column.name}"' for column in each.primary_key.columns)
            self.raw.execute(f"create table {each.name} ({columns}, primary key ({keys}))")
        self.connection = Connection(self.raw, sqlite_dialect())
        self.reports = 0

    async def report(self, report: LimitReport) -> LimitAnswer:
        return self.count(report)

    def count(self, report: LimitReport) -> LimitAnswer:
        self.reports += 1
        self.raw.execute("begin immediate")
        answer = count_report(self.connection, report=report)
        self.raw.execute("commit")
        return answer


class SteppedLease(LimitLease):
    """A lease whose reports a test makes."""

    def touch(self, now: float) -> None:
        self.used_at = now


@dataclass(slots=True)
class LimitProcess:
    """One process, and the answer that is on its way to it."""

    database: Database
    clock: ManualClock
    lease: SteppedLease
    places: SharedPlaces
    waiting: int = 0
    excused: int = 0
    lapsed: bool = False
    pending: tuple[PreparedReport, LimitAnswer] | None = None

    def ask(self) -> None:
        prepared = self.lease.prepare()
        self.pending = prepared, self.database.count(prepared.report)

    def hear(self) -> None:
        if self.pending is not None:
            pending, self.pending = self.pending, None
            self.lease.apply(*pending)
            self.lapsed = self.lapsed and self.clock.monotonic() >= self.lease.lease_end

    def report(self) -> None:
        """As many reports as it takes, and their answers."""
        for _ in range(3):
            self.ask()
            self.hear()

    def leave(self) -> None:
        prepared = self.lease.prepare(leaving=True)
        self.lease.counting = CountingMode.NONE
        self.database.count(prepared.report)

    def spend(self, tokens: int) -> int:
        """How many of so many tokens it gets, without asking in between."""
        taken = 0
        while taken < tokens and self.lease.buckets.take("org:one", RATE, SIZE, self.clock.monotonic()) is None:
            taken += 1
        return taken

    def look(self) -> float | None:
        return self.lease.buckets.wait("org:one", RATE, SIZE, self.clock.monotonic())

    def begin(self, calls: int) -> None:
        for _ in range(calls):
            if not self.places.take():
                self.waiting += 1
        self.places.want(self.waiting)

    def end(self) -> None:
        if self.places.in_use:
            self.excused = max(0, self.excused - 1)
            self.places.give_back()
            self.hand_on()

    def hand_on(self) -> None:
        while self.waiting and self.places.take():
            self.waiting -= 1
            self.places.want(self.waiting)

    def note_lapse(self) -> bool:
        """Whether its lease has ended since the last look while it counted alone; calls under way at that moment are beyond control."""
        now = self.clock.monotonic()
        if now < self.lease.lease_end:
            self.lapsed = False
            return False
        if self.lapsed:
            return False
        self.lapsed, self.excused = True, self.places.in_use
        return self.lease.counting is CountingMode.ALONE


@dataclass(slots=True)
class LimitCluster:
    database: Database = field(default_factory=Database)
    clock: ManualClock = field(default_factory=ManualClock)
    processes: list[LimitProcess] = field(default_factory=list[LimitProcess])
    started: int = 0

    def start(self) -> LimitProcess:
        self.started += 1
        lease = SteppedLease(self.database, f"p{self.started}", self.clock)
        process = LimitProcess(self.database, self.clock, lease, lease.places("network", LIMIT))
        process.places.more = process.hand_on
        self.processes.append(process)
        return process

    @property
    def under_way(self) -> int:
        """Calls, without those of processes that lost their lease while they ran."""
        return sum(each.places.in_use - each.excused for each in self.processes)


PORTION = bucket_portion(SIZE)
