"""The room that is kept for a start on a full disk."""

import sqlite3
from pathlib import Path

from registry.errors import StoreUnavailable
from storage.engine.sqlite_file import RESERVE_BYTES, keep_reserve, outage_of, reserve_of, spend_reserve


def failed(code: int) -> StoreUnavailable:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    found = outage_of(error)
    assert found is not None
    return found


def test_the_reserve_is_real_bytes_that_are_given_up_once_for_want_of_room_and_for_nothing_else(tmp_path: Path) -> None:
    database = tmp_path / "service.db"
    keep_reserve(database)
    keep_reserve(database)
    kept = reserve_of(database).stat()
    assert (kept.st_size, kept.st_mode & 0o777) == (RESERVE_BYTES, 0o600)
    assert kept.st_blocks * 512 >= RESERVE_BYTES
    assert not spend_reserve(database, failed(sqlite3.SQLITE_CORRUPT))
    assert not spend_reserve(database, StoreUnavailable("the store is closing"))
    assert [spend_reserve(database, failed(sqlite3.SQLITE_FULL)) for _ in range(2)] == [True, False]
    assert not reserve_of(database).exists()
