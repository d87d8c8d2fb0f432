"""One PostgreSQL session: connects when needed, runs a function in a transaction, connects again after a break."""

from collections.abc import Callable
from typing import TypeVar, cast

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from registry.errors import StoreUnavailable
from storage.connection import Connection, Driver
from storage.statement import Dialect

T = TypeVar("T")
Raw = psycopg.Connection[tuple[object, ...]]

CONNECT_SECONDS = 5
LOCK_TIMEOUT = "5s"
TAKEN = psycopg.errors.UniqueViolation
# A unique value that another transaction has just taken is one, too: run again, the function sees it and decides.
COLLISIONS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, TAKEN)


class WholeNumber(Loader):
    """PostgreSQL sums 64-bit integers to NUMERIC; rows are str, int, float and bytes."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


class Session:
    """Used by one thread."""

    def __init__(self, url: str, dialect: Dialect) -> None:
        self._url = url
        self._dialect = dialect
        self._raw: Raw | None = None

    def run(self, call: Callable[[Connection], T], *, read_only: bool) -> T:
        """Run a function in a transaction. A connection that broke while idle is replaced once."""
        fresh = self._raw is None
        try:
            return self._attempt(call, read_only)
        except COLLISIONS:
            raise
        except Committing as broken:
            self.close()
            raise StoreUnavailable("the connection to the database broke during the commit") from broken.__cause__
        except psycopg.OperationalError as error:
            if fresh or not self._broken():
                self._drop_if_broken()
                raise StoreUnavailable(reason(error)) from error
            self.close()
        # Nothing was committed, so the function may run again, on a new connection.
        return self.run(call, read_only=read_only)

    def close(self) -> None:
        """End the session; the next run connects again."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _attempt(self, call: Callable[[Connection], T], read_only: bool) -> T:
        raw = self._raw = self._raw or connect(self._url)
        settle_mode(raw, read_only)
        try:
            value = call(Connection(cast(Driver, raw), self._dialect))
        except BaseException:
            if not raw.broken:
                raw.rollback()
            raise
        if raw.info.transaction_status == TransactionStatus.INERROR:
            # PostgreSQL answers this COMMIT with a silent rollback.
            raw.rollback()
            raise RuntimeError("a storage function went on after a failed statement; write the conflict into the statement instead")
        try:
            raw.commit()
        except psycopg.OperationalError as error:
            if isinstance(error, COLLISIONS):
                raw.rollback()
                raise
            raise Committing from error
        return value

    def _broken(self) -> bool:
        return self._raw is not None and (self._raw.broken or self._raw.closed)

    def _drop_if_broken(self) -> None:
        if self._broken():
            self.close()


class Committing(Exception):
    """The connection broke during COMMIT: whether it took effect is unknown, so the function must not run again."""


def connect(url: str) -> Raw:
    """A connection; autocommit is off, so psycopg sends BEGIN with the first statement."""
    seconds = conninfo_to_dict(url).get("connect_timeout", CONNECT_SECONDS)
    raw = psycopg.connect(url, autocommit=True, connect_timeout=seconds)
    raw.execute(f"set lock_timeout = '{LOCK_TIMEOUT}'")
    raw.autocommit = False
    raw.adapters.register_loader("numeric", WholeNumber)
    return raw


def settle_mode(raw: Raw, read_only: bool) -> None:
    """Reads see one snapshot (REPEATABLE READ, read only): it travels with BEGIN and costs nothing. Writes are READ COMMITTED."""
    if raw.read_only is not read_only:
        raw.read_only = read_only
        raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if read_only else psycopg.IsolationLevel.READ_COMMITTED


def reason(error: psycopg.OperationalError) -> str:
    """What went wrong, without the server's text (it names hosts and users)."""
    if error.sqlstate is None or error.sqlstate.startswith("08"):
        return "the database cannot be reached"
    if error.sqlstate == "55P03":
        return "the database row is locked by another transaction"
    return "the database refused the transaction"
