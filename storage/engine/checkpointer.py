"""Moves the write-ahead log into the database file on a thread of its own, so that nobody's commit waits for it."""

import logging
import sqlite3
import threading
from pathlib import Path

from storage.engine.sqlite_file import open_sqlite_file

CHECKPOINT_LOG = logging.getLogger(__name__)
LONG_LOG_PAGES = 4000
RESTART_MS = 200


class Checkpointer:
    """Sleeps until something is written, waits a little, checkpoints."""

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
