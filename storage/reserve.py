"""Room kept beside a SQLite file for a start on a full disk: without room for the index of its log SQLite cannot even be read."""

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from registry.errors import StoreUnavailable
from storage.outage import primary_code

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
    if cause is None or primary_code(cause) not in NO_ROOM:
        return False
    try:
        reserve_of(database).unlink()
    except OSError:
        return False
    return True
