"""An SQLite file: how it is opened and copied, and the room that is kept beside it for a start on a full disk.

Without room for the index of its log SQLite cannot even be read.
"""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from registry.errors import StoreUnavailable

BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
OUTAGE_REASONS = {
    sqlite3.SQLITE_BUSY: "another process is writing to the database",
    sqlite3.SQLITE_LOCKED: "another process is writing to the database",
    sqlite3.SQLITE_NOMEM: "the database ran out of memory",
    sqlite3.SQLITE_READONLY: "the database cannot be written",
    sqlite3.SQLITE_IOERR: "the database's disk failed",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged",
    sqlite3.SQLITE_FULL: "the database's disk is full",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
    sqlite3.SQLITE_PROTOCOL: "the database is locked by a start or a shutdown",
    sqlite3.SQLITE_NOTADB: "the file is not a database",
}


def sqlite_code(error: BaseException) -> int | None:
    """SQLite's result code without its extension bits."""
    code: object = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def is_sqlite_busy(error: Exception) -> bool:
    """Whether somebody else holds the lock."""
    return sqlite_code(error) in BUSY_CODES


def outage_of(error: Exception) -> StoreUnavailable | None:
    """The refusal for an error of the database itself; nothing for an error of the statement or the function."""
    if not isinstance(error, sqlite3.Error):
        return None
    reason = OUTAGE_REASONS.get(sqlite_code(error) or 0)
    if reason is None:
        return None
    unavailable = StoreUnavailable(reason)
    unavailable.__cause__ = error
    return unavailable


def transaction_refusal(error: sqlite3.Error | StoreUnavailable) -> StoreUnavailable:
    """The refusal for a transaction that could not be opened or committed, whatever the reason."""
    if isinstance(error, StoreUnavailable):
        return error
    refusal = outage_of(error)
    if refusal is None:
        refusal = StoreUnavailable("the database refused the transaction")
        refusal.__cause__ = error
    return refusal


WAL_ATTEMPTS = 100


def open_sqlite_file(path: Path, *, busy_ms: int) -> sqlite3.Connection:
    """A plain connection; we own BEGIN."""
    try:
        create_private(path)
        raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
        raw.execute(f"pragma busy_timeout={busy_ms}")
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise transaction_refusal(error) from error
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
            if not is_sqlite_busy(error) or attempt == WAL_ATTEMPTS:
                raise transaction_refusal(error) from error
            raw.execute("begin immediate").close()  # waits for the other starter
            raw.execute("rollback").close()


def tune_sqlite(raw: sqlite3.Connection) -> None:
    """The pragmas of every serving connection."""
    for pragma in (
        "synchronous=full",  # Choice: everything is durable when answered; NORMAL for notes and caches can come later
        "foreign_keys=on",
        "temp_store=memory",
        "cache_size=-16384",  # 16 MiB of each connection: reads come from the mapped file, and 64 MiB made nothing faster
        "mmap_size=2147418112",  # the most that SQLite takes: a scan beyond what is mapped copies every page, and takes four times as long
        "wal_autocheckpoint=0",  # the checkpointer's own thread pays for the fsync
        "journal_size_limit=67108864",
    ):
        raw.execute(f"pragma {pragma}").close()


def copy_database(source: Path, target: Path) -> None:
    """Write a whole, consistent copy: it appears under its name only when it is complete."""
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(open_sqlite_file(source, busy_ms=5000)) as reader, closing(open_sqlite_file(unfinished, busy_ms=5000)) as writer:
            reader.backup(writer)
            # A copy is one file: without a log beside it.
            writer.execute("pragma journal_mode=delete")
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


RESERVE_BYTES = 1 << 20

ROOM_BYTES = 8 * RESERVE_BYTES
"""A reserve is made only where so much is free."""

NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})


def reserve_of(database: Path) -> Path:
    """The file that keeps the room."""
    return database.with_name(f"{database.name}-reserve")


def keep_reserve(database: Path) -> None:
    """Make the reserve where it is missing and there is room. It is real bytes: a file with holes keeps nothing."""
    reserve = reserve_of(database)
    if reserve.exists() or shutil.disk_usage(database.parent).free < ROOM_BYTES:
        return
    try:
        descriptor = os.open(reserve, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(RESERVE_BYTES))
    except OSError:  # the disk has filled up meanwhile, or another process was faster: there is none, or there is one
        with suppress(OSError):
            if reserve.stat().st_size < RESERVE_BYTES:
                reserve.unlink()


def spend_reserve(database: Path, failure: StoreUnavailable) -> bool:
    """Give the reserve up where the database could not be opened for want of room; whether it is worth while to try again."""
    cause = failure.__cause__
    if cause is None or sqlite_code(cause) not in NO_ROOM:
        return False
    try:
        reserve_of(database).unlink()
    except OSError:
        return False
    return True
