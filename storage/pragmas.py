"""How an SQLite file is opened: permissions, write-ahead log, pragmas."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from registry.errors import StoreUnavailable
from storage.outage import is_busy, unavailable

WAL_ATTEMPTS = 100


def open_file(path: Path, *, busy_ms: int) -> sqlite3.Connection:
    """A plain connection; we own BEGIN."""
    try:
        create_private(path)
        raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
        raw.execute(f"pragma busy_timeout={busy_ms}")
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise unavailable(error) from error
    return raw


def create_private(path: Path) -> None:
    """A new file is readable by its owner only: it holds personal data."""
    # An existing file must not be opened here: closing it would drop the locks of every SQLite connection of this process to it
    # (POSIX), and another process would then take the log away from under them.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))


def enable_wal(raw: sqlite3.Connection) -> None:
    """Turn the write-ahead log on, once, before other connections work ("database is locked" otherwise)."""
    for attempt in range(1, WAL_ATTEMPTS + 1):
        try:
            if raw.execute("pragma journal_mode").fetchone() == ("wal",):
                return
            raw.execute("pragma journal_mode=wal")
        except sqlite3.OperationalError as error:
            # Several starters change the mode at once: SQLite answers busy without asking its busy handler.
            if not is_busy(error) or attempt == WAL_ATTEMPTS:
                raise unavailable(error) from error
            raw.execute("begin immediate").close()  # waits for the other starter
            raw.execute("rollback").close()


def tune(raw: sqlite3.Connection) -> None:
    """The pragmas of every serving connection."""
    for pragma in (
        "synchronous=full",  # Choice: everything is durable when answered; NORMAL for notes and caches can come later
        "foreign_keys=on",
        "temp_store=memory",
        "cache_size=-16384",  # 16 MiB of each connection: reads come from the mapped file, and 64 MiB made nothing faster
        "mmap_size=268435456",
        "wal_autocheckpoint=0",  # the checkpointer's own thread pays for the fsync
        "journal_size_limit=67108864",
    ):
        raw.execute(f"pragma {pragma}").close()
