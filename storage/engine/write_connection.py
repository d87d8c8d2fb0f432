"""The write connection of an SQLite file, and the jobs that run on it: BEGIN, savepoints, COMMIT, and what to do when they fail."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol

from registry.errors import StoreUnavailable
from storage.engine.connection import Connection, T
from storage.engine.sqlite_errors import outage_of
from storage.engine.sqlite_file import open_sqlite_file, tune_sqlite
from storage.engine.statement import Dialect


class BatchJob(Protocol):
    """A job as a batch sees it: what it returns is between the job and its caller."""

    @property
    def long(self) -> bool:
        """Whether it is to run in the thread, in a batch of its own."""
        ...

    @property
    def abandoned(self) -> bool:
        """Whether the caller has gone."""
        ...

    def perform(self, connection: Connection) -> bool:
        """Run the function; whether its writes are to be kept."""
        ...

    def answer_caller(self, failure: StoreUnavailable | None) -> None:
        """Answer the caller, once the batch is committed or lost."""
        ...


class WriteJob(Generic[T]):
    """A function to run and the future of its caller."""

    __slots__ = ("_call", "_error", "_future", "_value", "long")

    def __init__(self, call: Callable[[Connection], T], future: asyncio.Future[T], *, long: bool = False) -> None:
        self.long = long
        self._call = call
        self._future = future
        self._error: Exception | None = None
        self._value: list[T] = []

    @property
    def abandoned(self) -> bool:
        return self._future.cancelled()

    def perform(self, connection: Connection) -> bool:
        try:
            self._value.append(self._call(connection))
        except Exception as error:  # whatever the function raises is its caller's, and only its caller's
            self._error = outage_of(error) or error
        return self._error is None

    def answer_caller(self, failure: StoreUnavailable | None) -> None:
        if self._future.done():  # a cancelled caller
            return
        error = failure or self._error
        if isinstance(self._error, StoreUnavailable):  # the job that found the disk full knows the reason best
            error = self._error
        if error is None:
            self._future.set_result(self._value[0])
        else:
            self._future.set_exception(error)


class WriteConnection:
    """Used by the loop and by the writer thread in turns, never at once."""

    def __init__(self, path: Path, dialect: Dialect, *, busy_wait: float) -> None:
        self._path = path
        self._dialect = dialect
        self._busy_ms = max(1, round(busy_wait * 1000))
        self._connect()

    def begin(self) -> None:
        """Open the transaction at once, or raise busy."""
        if self._broken:
            self._connect()
        self._raw.execute("begin immediate")

    def begin_patiently(self) -> None:
        """Open the transaction, waiting for another process's."""
        if self._broken:
            self._connect()
        self._raw.execute(f"pragma busy_timeout={self._busy_ms}")
        try:
            self._raw.execute("begin immediate")
        finally:
            self._raw.execute("pragma busy_timeout=0")

    def finish(self, job: BatchJob) -> None:
        """The one job of a transaction that was begun for it, and its commit."""
        try:
            self.perform(job)
        except sqlite3.Error:
            self.rollback()
            raise
        self.commit()

    def perform(self, job: BatchJob) -> None:
        """Run a job in a savepoint. Raises when SQLite has undone the whole transaction."""
        self._raw.execute("savepoint job")
        kept = False
        try:
            kept = job.perform(self._connection)
        finally:
            if not kept:
                self._raw.execute("rollback to job")
            self._raw.execute("release job")

    def commit(self) -> None:
        """Make the batch durable, or undo it and raise."""
        try:
            self._raw.execute("commit")
        except sqlite3.Error:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Undo whatever is open; a connection that cannot even do that is closed, which undoes it, and replaced by the next begin."""
        if self._broken or not self._raw.in_transaction:
            return
        try:
            self._raw.execute("rollback")
        except sqlite3.Error:
            self._broken = True
            self._raw.close()

    def close(self) -> None:
        """Move the log into the file and close."""
        self.rollback()
        if self._broken:
            return
        try:
            self._raw.execute("pragma wal_checkpoint(truncate)").fetchall()
        finally:
            self._raw.close()

    def _connect(self) -> None:
        self._raw = open_sqlite_file(self._path, busy_ms=0)
        tune_sqlite(self._raw)
        self._connection = Connection(self._raw, self._dialect)
        self._broken = False
