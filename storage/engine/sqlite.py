"""The SQLite store: reads inline on the loop, writes in group commits; what is long is done beside the loop, checkpoints as well."""

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Concatenate

from storage.engine.database_signals import DatabaseSignals, PoolLoad
from storage.engine.group_commit import GroupWriter, WriteConnection, WriteJob
from storage.engine.sql import Connection, P, T, is_run_in_thread, sqlite_dialect
from storage.engine.sqlite_file import enable_wal, open_sqlite_file, outage_of, sqlite_code, tune_sqlite

BUSY_WAIT_SECONDS = 5.0
LONG_READS = min(4, max(2, os.cpu_count() or 2))
"""Long reads at once. Every thread that makes rows keeps the loop from the interpreter for a turn; more of them than cores gain nothing."""
IDLE_READERS = 2
"""Connections of long reads that are kept for the next ones."""
READ_BUSY_MS = 250  # readers wait only while another process recovers the log after a crash


CHECKPOINT_LOG = logging.getLogger("storage.engine.checkpointer")
LONG_LOG_PAGES = 4000
RESTART_MS = 200


class Checkpointer:
    """Moves the write-ahead log into the database file on a thread of its own, so that nobody's commit waits for it.

    It sleeps until something is written, waits a little, checkpoints.
    """

    def __init__(self, path: Path, *, every: float = 0.5) -> None:
        self._path = path
        self._every = every
        self._written = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def notice(self) -> None:
        """Something was committed."""
        if self._written.is_set():
            return
        self._written.set()
        if self._thread is None and not self._stop.is_set():
            self._thread = threading.Thread(target=self._run, name="checkpointer", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop; a checkpoint under way is finished."""
        self._stop.set()
        self._written.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        if not self._due():  # closed before the first checkpoint: the file was not opened for it
            return
        raw = open_sqlite_file(self._path, busy_ms=RESTART_MS)
        raw.execute("pragma synchronous=full").close()
        self._checkpoint(raw)
        while self._due():
            self._checkpoint(raw)
        raw.close()

    def _due(self) -> bool:
        """Waits until something was written a little ago; not when it is told to stop."""
        self._written.wait()
        if self._stop.wait(self._every):
            return False
        self._written.clear()
        return not self._stop.is_set()  # told between the two: what woke us was cleared with the rest

    def _checkpoint(self, raw: sqlite3.Connection) -> None:
        """Passive: nobody waits. Under a steady load it never catches up and the log grows for ever, so a long log is begun anew.

        Writers wait for the rest of that checkpoint then, a fifth of a second at most; readers never do.
        """
        try:
            ((_, pages, _),) = raw.execute("pragma wal_checkpoint(passive)").fetchall()
            if pages > LONG_LOG_PAGES:
                raw.execute("pragma wal_checkpoint(restart)").fetchall()
        except sqlite3.Error:
            # The log only grows meanwhile: nothing is lost, so try again with the next round.
            CHECKPOINT_LOG.warning("checkpoint failed", exc_info=True)
            self._written.set()


class SqliteStore:
    """One file, one reading and one writing connection."""

    dialect_name = "sqlite"
    pool_load = PoolLoad()

    def __init__(self, path: Path, *, busy_wait: float = BUSY_WAIT_SECONDS) -> None:
        self.signals = DatabaseSignals()
        self._reader = open_sqlite_file(path, busy_ms=round(busy_wait * 1000))
        enable_wal(self._reader)
        self._path, self._dialect = path, sqlite_dialect()
        self._checkpointer = Checkpointer(path)
        self._writer = GroupWriter(WriteConnection(path, self._dialect, busy_wait=busy_wait), self._checkpointer.notice, self.signals)
        self._reader.execute(f"pragma busy_timeout={READ_BUSY_MS}")
        tune_sqlite(self._reader)
        self._reader.execute("pragma query_only=on")
        self._connection = Connection(self._reader, self._dialect)
        self._looking: asyncio.AbstractEventLoop | None = None
        self._snapshots = 0
        self._idle: list[sqlite3.Connection] = []
        self._long_reads = ThreadPoolExecutor(LONG_READS, thread_name_prefix="long-read")
        self._closed = False

    @property
    def snapshot(self) -> int | None:
        """The number of this tick's snapshot, once a read has begun it."""
        return self._snapshots if self._looking is asyncio.get_running_loop() and self._reader.in_transaction else None

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a reading function here and now: a query by key costs less than a thread hop.

        Reads of one tick of the loop share one snapshot, since taking and leaving it costs as much as a query. What a caller
        has written it reads: it learns of the COMMIT in a later tick, after the snapshot of this one has ended.

        A long one has a thread and a connection of its own, and waits while LONG_READS others run.
        """
        began = self.signals.clock.monotonic()
        try:
            if is_run_in_thread(fn):
                threads, long_read = self._long_reads, partial(self._read_long, lambda connection: fn(connection, *args, **kwargs))
                found = await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, long_read)
            else:
                self._look(asyncio.get_running_loop())
                found = fn(self._connection, *args, **kwargs)
        except sqlite3.Error as error:
            failure = outage_of(error)
            # A write inside a read is a fault of the function ("read only"), not of the database.
            if failure is None or sqlite_code(error) == sqlite3.SQLITE_READONLY:
                raise
            raise failure from error
        self.signals.called("read", began)
        return found

    def _read_long(self, call: Callable[[Connection], T]) -> T:
        """Runs a long read on a connection of its own, one that another long read has left where there is one: it has pages in memory."""
        try:
            raw = self._idle.pop()
        except IndexError:
            raw = open_sqlite_file(self._path, busy_ms=READ_BUSY_MS)
            tune_sqlite(raw)
            raw.execute("pragma query_only=on")
        try:
            raw.execute("begin")
            found = call(Connection(raw, self._dialect))
            raw.execute("rollback")
        except BaseException:
            raw.close()
            raise
        if self._closed or len(self._idle) >= IDLE_READERS:
            raw.close()
        else:
            self._idle.append(raw)
        return found

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin this tick's snapshot, unless it has begun; one whose loop has ended is left first."""
        if self._looking is loop:
            return
        self._look_away()
        self._reader.execute("begin")
        self._looking = loop
        self._snapshots += 1
        loop.call_soon(self._look_away)

    def _look_away(self) -> None:
        """End the snapshot."""
        if self._looking is not None:
            self._looking = None
            if self._reader.in_transaction:  # an error may have ended it
                self._reader.execute("rollback")

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in the next batch; returns after its COMMIT.

        A caller cancelled before the function ran leaves no trace; one cancelled later does not undo it.
        """
        loop, began = asyncio.get_running_loop(), self.signals.clock.monotonic()
        future: asyncio.Future[T] = loop.create_future()
        self._writer.submit(WriteJob(lambda connection: fn(connection, *args, **kwargs), future, long=is_run_in_thread(fn)), loop)
        done = await future
        self.signals.called("write", began)
        return done

    async def aclose(self) -> None:
        """Stop intake, drain, checkpoint, close. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        await self._writer.drain()
        await asyncio.to_thread(self._long_reads.shutdown)
        self._checkpointer.close()
        self._look_away()
        for idle in self._idle:
            idle.close()
        self._reader.close()
        self._writer.close()
