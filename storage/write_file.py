"""The write connection of an SQLite file: BEGIN, savepoints, COMMIT, and what to do when they fail."""

import sqlite3
from pathlib import Path

from storage.connection import Connection
from storage.job import Member
from storage.pragmas import open_file, tune
from storage.statement import Dialect


class WriteFile:
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

    def finish(self, job: Member) -> None:
        """The one job of a transaction that was begun for it, and its commit."""
        try:
            self.perform(job)
        except sqlite3.Error:
            self.rollback()
            raise
        self.commit()

    def perform(self, job: Member) -> None:
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
        self._raw = open_file(self._path, busy_ms=0)
        tune(self._raw)
        self._connection = Connection(self._raw, self._dialect)
        self._broken = False
