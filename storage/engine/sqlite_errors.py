"""Which SQLite errors mean that the database, not the function, is at fault."""

import sqlite3

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
