"""The service's storage functions over one database in memory, shared by the replicas of an episode; it fails as real ones do."""

import sqlite3
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Concatenate, Literal, ParamSpec, TypeVar

from operations.ledger.issuance import EsimDraw
from registry.errors import StoreUnavailable
from storage.engine.database_signals import DatabaseSignals, PoolLoad
from storage.engine.sql import Connection, sqlite_dialect
from storage.engine.sqlite_file import outage_of
from storage.journal import close_call, conclude_call, open_call, settle_call, settle_call_result
from tests.databases import migrated_file
from tests.simulation.crash_points import CrashPoint, CrashPoints
from tests.simulation.process import Process
from tests.simulation.road import CALLER

P = ParamSpec("P")
T = TypeVar("T")
StoreFault = Literal["busy", "full", "crash_before_commit", "crash_after_commit", "commit_unheard"]
STORE_FAULTS: tuple[StoreFault, ...] = ("busy", "full", "crash_before_commit", "crash_after_commit", "commit_unheard")
DIALECT = sqlite_dialect()
NO_CALLS: Mapping[str, int] = {}
NAMED: Mapping[object, tuple[CrashPoint, CrashPoint]] = {
    open_call: ("before_claim", "after_claim"),
    settle_call: ("before_claim", "after_save"),
    settle_call_result: ("before_claim", "after_save"),
    conclude_call: ("before_save", "after_save"),
    close_call: ("before_save", "after_save"),
    EsimDraw.begin: ("before_claim", "after_claim"),
    EsimDraw.settle: ("before_save", "after_save"),
}
"""The transactions that have a name among the crash points; those of the ledger stand alone where the worker sends."""


def empty_image() -> bytes:
    """A database at HEAD, as bytes."""
    source, copy = sqlite3.connect(migrated_file()), sqlite3.connect(":memory:")
    source.backup(copy)
    image = bytearray(copy.serialize())
    image[18:20] = b"\x01\x01"  # the header says write-ahead log, which memory does not have
    source.close()
    copy.close()
    return bytes(image)


class SimDisk:
    """What survives a crash.

    An episode is one outer transaction that is never committed, and the service's transactions are savepoints within it: to begin
    anew is a rollback, which keeps every statement prepared. (`deserialize` per episode was tried: SQLite crashes on
    statements that were prepared before it.)
    """

    def __init__(self, image: bytes) -> None:
        self.raw = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self.raw.deserialize(image)
        self.raw.execute("pragma foreign_keys=on").close()
        self.connection = Connection(self.raw, DIALECT)

    def renew(self) -> None:
        """Everything is as it was in the image."""
        if self.raw.in_transaction:
            self.raw.execute("rollback").close()
        self.begin()

    def begin(self) -> None:
        self.raw.execute("begin").close()

    def transact(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One transaction, without faults: for preparing an episode and for judging it."""
        self.open()
        try:
            value = fn(self.connection, *args, **kwargs)
        except BaseException:
            self.undo()
            raise
        self.keep()
        return value

    def open(self) -> None:
        self.raw.execute("savepoint one").close()

    def keep(self) -> None:
        self.raw.execute("release one").close()

    def undo(self) -> None:
        self.raw.execute("rollback to one").close()
        self.raw.execute("release one").close()


class StoreFaults:
    def __init__(self, rng: Random, rate: float, kinds: tuple[StoreFault, ...] = STORE_FAULTS) -> None:
        self._rng, self.rate, self._kinds = rng, rate, kinds
        self.counts: dict[str, int] = {}

    def draw(self) -> StoreFault | None:
        if self._rng.random() >= self.rate or not self._kinds:
            return None
        fault = self._kinds[int(self._rng.random() * len(self._kinds))]
        self.counts[fault] = self.counts.get(fault, 0) + 1
        return fault


class SimStore:
    """A replica's way to the disk. Every transaction is one piece; between them anything may happen."""

    dialect_name = "sqlite"
    pool_load = PoolLoad()
    snapshot = None  # of each read its own: what is read again cannot be old

    def __init__(
        self,
        loop: AbstractEventLoop,
        disk: SimDisk,
        process: Process,
        rng: Random,
        faults: StoreFaults,
        *,
        slow_reads: bool = False,
        points: CrashPoints | None = None,
        calls: Mapping[str, int] = NO_CALLS,
    ) -> None:
        """`slow_reads`: as on PostgreSQL others may run while a read waits; on SQLite reads take no turn of the loop.

        `calls`: the numbers of what the worker sends without a call, by its key in the ledger.
        """
        self._calls, self.signals = calls, DatabaseSignals()
        self._loop, self._disk, self._process, self._draw = loop, disk, process, rng.random
        self._faults, self._slow_reads, self._points = faults, slow_reads, points or CrashPoints({})

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._process.check()
        if self._slow_reads:
            await self._pause()
        try:
            return fn(self._disk.connection, *args, **kwargs)
        except sqlite3.Error as error:
            raise outage_of(error) or error from error

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run and commit, or fail as the seed says."""
        self._process.check()
        await self._pause()
        meant = fn.func if isinstance(fn, partial) else fn
        draw = getattr(meant, "__self__", None)
        points = NAMED.get(getattr(meant, "__func__", meant))
        if points is not None:
            self._points.reach(points[0], self._process)
        value = self._transact(self._faults.draw(), lambda connection: fn(connection, *args, **kwargs))
        if isinstance(draw, EsimDraw) and meant == draw.begin:
            CALLER.set(self._calls.get(draw.row.key, 0))
        if points is not None:
            self._points.reach(points[1], self._process)
        await self._pause()
        return value

    async def aclose(self) -> None:
        """Nothing is held."""

    def _transact(self, fault: StoreFault | None, call: Callable[[Connection], T]) -> T:
        disk, process = self._disk, self._process
        if fault == "busy":
            raise StoreUnavailable("another process is writing to the database")
        disk.open()
        try:
            value = call(disk.connection)
            if fault == "full":
                raise StoreUnavailable("the database's disk is full")
            if fault == "crash_before_commit":
                process.die()
        except sqlite3.Error as error:
            disk.undo()
            raise outage_of(error) or error from error
        except BaseException:
            disk.undo()
            raise
        disk.keep()
        if fault == "crash_after_commit":
            process.die()
        if fault == "commit_unheard":
            raise StoreUnavailable("the connection to the database broke during the commit")
        return value

    async def _pause(self) -> None:
        """Others run: for a turn of the loop, or for some milliseconds."""
        turn: Future[None] = self._loop.create_future()
        draw = self._draw()
        if draw < 0.4:
            self._loop.call_soon(wake, turn)
        else:
            self._loop.call_later((draw - 0.4) * 0.05, wake, turn)
        await turn
        self._process.check()


def wake(turn: Future[None]) -> None:
    """The pause is over, unless whoever paused has gone."""
    if not turn.done():
        turn.set_result(None)
