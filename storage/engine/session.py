"""One PostgreSQL session: connects when needed, runs a function in a transaction, connects again after a break."""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import LiteralString, NamedTuple, cast

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from registry.errors import CommitUnknown, StoreUnavailable
from storage.engine.database_url import conninfo, cut_socket, has_no_connection_left, require_utf8
from storage.engine.drivers import DeferredCommand, DriverConnection
from storage.engine.sql import Connection, Dialect, T

RawConnection = psycopg.Connection[tuple[object, ...]]

LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "30s"
IDLE_TIMEOUT = "30s"
"""For a transaction whose process stands still or cannot be reached: its locks are let go then."""
LONG_TIMEOUT = "300s"
PREPARE_SESSION = f"""
select set_config('lock_timeout', '{LOCK_TIMEOUT}', false),
    set_config('statement_timeout', %(statement)s, false),
    set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT}', false),
    pid, extract(epoch from backend_start)::text
from pg_stat_activity where pid = pg_backend_pid()"""
LONG_TIMEOUTS = f"set local statement_timeout = '{LONG_TIMEOUT}'; set local idle_in_transaction_session_timeout = '{LONG_TIMEOUT}'"
END_BACKEND = """
select count(*) filter (where not pg_terminate_backend(pid, %(wait_ms)s)) from pg_stat_activity
where pid = %(pid)s and extract(epoch from backend_start)::text = %(started)s"""
"""Tells a process of the server to end and waits for it; 0 when it has: its transaction has ended then, one way or the other."""
BACKEND_END_MS = 2000
UNIQUE_VIOLATION = psycopg.errors.UniqueViolation
# A unique value that another transaction has just taken is one, too: run again, the function sees it and decides.
COLLISION_ERRORS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, UNIQUE_VIOLATION)
BREAK_ERRORS = (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout)
# At BEGIN, or at a statement that was planned before a table changed, it is the second one: a new session has neither.
READ_ONLY_ERRORS = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.FeatureNotSupported)
NO_ANSWER = "the database does not answer"


class WholeNumber(Loader):
    """PostgreSQL sums 64-bit integers to NUMERIC; rows are str, int, float and bytes."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


class Backend(NamedTuple):
    """The server's process of a session. `started` (Unix seconds, as text) tells it from a later one with the same number."""

    pid: int
    started: str


class NoConnectionLeft(StoreUnavailable):
    """The server has as many connections as it may (53300)."""

    def __init__(self) -> None:
        super().__init__("the database has no connection left (53300)")


class Session:
    """Used by one thread at a time; `cut` may be called by any."""

    def __init__(self, url: str, dialect: Dialect) -> None:
        self._url, self._dialect = url, dialect
        self._raw: RawConnection | None = None
        self._wire: socket.socket | None = None
        self._lock = threading.Lock()
        self.is_cut = False
        self.backend: Backend | None = None
        """The server's process of the last connection, for as long as nobody knows that it has ended."""

    @property
    def is_open(self) -> bool:
        """Whether it has a connection that may be used again."""
        return self._raw is not None and not self.is_cut and not self._broken()

    def open(self) -> None:
        """Connect, unless it is connected. StoreUnavailable says why not; NoConnectionLeft when the server is full."""
        try:
            self._connected()
        except psycopg.OperationalError as error:
            self.close()
            raise session_refusal(error) from error

    def run(
        self,
        call: Callable[[Connection], T],
        *,
        read_only: bool,
        long: bool = False,
        alone: bool = False,
        before_commit: Callable[[], None] = lambda: None,
    ) -> T:
        """Run a function in a transaction. A connection that broke while idle is replaced once. `before_commit` may refuse the commit.

        `alone`: the function is one SELECT, which needs neither BEGIN nor COMMIT, two round trips of three.
        CommitUnknown when it broke during the COMMIT; by then the server's process of it has ended, or `backend` names it still.
        """
        fresh = self._raw is None
        try:
            if alone and not long:
                return self._select(call)
            return self._attempt(call, read_only, long, before_commit)
        except COLLISION_ERRORS:
            raise
        except CommitBroken as broken:
            self.close()
            if read_only:
                raise StoreUnavailable("the connection to the database broke") from broken.__cause__
            self._end_backend()
            raise CommitUnknown from broken.__cause__
        except READ_ONLY_ERRORS as error:
            if read_only:
                raise
            self.close()
            raise session_refusal(error) from error
        except BREAK_ERRORS as error:
            if self.is_cut:
                self.close()
                raise StoreUnavailable(NO_ANSWER) from error
            if fresh or not self._broken():
                self._drop_if_broken()
                raise session_refusal(error) from error
            self.close()
        # Nothing was committed, so the function may run again, on a new connection.
        return self.run(call, read_only=read_only, long=long, alone=alone, before_commit=before_commit)

    def cut(self) -> None:
        """End the connection from another thread: whoever waits for the server in `run` hears that it broke. It is not used again."""
        with self._lock:
            self.is_cut = True
            if self._wire is not None:
                cut_socket(self._wire)

    def close(self) -> None:
        """End the session; the next run connects again."""
        with self._lock:
            raw, self._raw = self._raw, None
            wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
        if raw is not None:
            raw.close()

    def _connected(self) -> RawConnection:
        if self._raw is None:
            # Known to `cut` from here on: whatever comes next may wait for the server.
            self._raw = raw = psycopg.connect(conninfo(self._url), autocommit=True)
            with self._lock:
                self._wire = socket.socket(fileno=os.dup(raw.fileno()))
            try:
                if self.is_cut:
                    raise psycopg.OperationalError(NO_ANSWER)
                self.backend = prepare_session(raw, self._url)
            except BaseException:
                self.close()
                raise
        return self._raw

    def _select(self, call: Callable[[Connection], T]) -> T:
        raw = self._connected()
        with each_by_itself(raw):
            return call(Connection(cast(DriverConnection, raw), self._dialect))

    def _attempt(self, call: Callable[[Connection], T], read_only: bool, long: bool, before_commit: Callable[[], None]) -> T:
        raw = self._connected()
        set_transaction_mode(raw, read_only)
        try:
            if long:
                raw.execute(LONG_TIMEOUTS)
            deferred = list[DeferredCommand]()
            value = call(Connection(cast(DriverConnection, raw), self._dialect, None if read_only else deferred))
            if raw.info.transaction_status == TransactionStatus.INERROR:  # PostgreSQL answers a COMMIT then with a silent rollback
                raise RuntimeError("a storage function went on after a failed statement; write the conflict into the statement instead")
            before_commit()
        except BaseException:
            if not raw.broken:
                raw.rollback()
            raise
        try:
            commit_with(raw, [each for each in deferred if not each.after])
        except BREAK_ERRORS as error:
            if isinstance(error, COLLISION_ERRORS):
                raw.rollback()
                raise
            raise CommitBroken from error
        except psycopg.Error:  # of what was deferred: nothing was committed
            raw.rollback()
            raise
        run_after_commit(raw, [each for each in deferred if each.after])
        return value

    def _end_backend(self) -> None:
        """Have the server end the process whose COMMIT went unheard, so that what is read next is how it ended.

        Where that fails, as when the server is away, `backend` stays: who owns the session lets nobody in before it has ended.
        """
        if self.is_cut or self.backend is None:
            return
        with suppress(psycopg.Error), psycopg.connect(conninfo(self._url), autocommit=True) as other:
            other.execute(f"set statement_timeout = '{LOCK_TIMEOUT}'")
            row = other.execute(END_BACKEND, {**self.backend._asdict(), "wait_ms": BACKEND_END_MS}).fetchone()
            if row is not None and row[0] == 0:
                self.backend = None

    def _broken(self) -> bool:
        return self._raw is not None and (self._raw.broken or self._raw.closed)

    def _drop_if_broken(self) -> None:
        if self._broken():
            self.close()


def commit_with(raw: RawConnection, deferred: Sequence[DeferredCommand]) -> None:
    """Commit, with the deferred writes before it in the same message.

    A statement, not psycopg's own `commit`: that one waits for its answer within a pipeline, and the end of the pipeline for another one.
    """
    if not deferred:
        raw.commit()
        return
    with raw.pipeline():
        for each in deferred:
            raw.execute(cast("LiteralString", each.sql), each.values)
        raw.execute("COMMIT", prepare=False)


def run_after_commit(raw: RawConnection, commands: Sequence[DeferredCommand]) -> None:
    """Carry out what is of use behind the COMMIT alone.

    By now the call has been done, so a fault here does not make it fail; a connection that broke is replaced by the next run.
    """
    if not commands:
        return
    with suppress(psycopg.Error), each_by_itself(raw):
        for each in commands:
            raw.execute(cast("LiteralString", each.sql), each.values)


@contextmanager
def each_by_itself(raw: RawConnection) -> Generator[None]:
    """Statements within have no transaction around them: neither BEGIN nor COMMIT is sent."""
    raw.autocommit = True
    try:
        yield
    finally:
        if not raw.closed:  # that it broke says the error which is under way
            raw.autocommit = False


class CommitBroken(Exception):
    """The connection broke during COMMIT: whether it took effect is unknown, so the function must not run again."""


def prepare_session(raw: RawConnection, url: str) -> Backend:
    """What every session begins with; returns which process of the server it has. Autocommit ends, so psycopg sends BEGIN by itself.

    Choice: a statement_timeout in the address's `options` stands.
    """
    require_utf8(raw)
    options = str(conninfo_to_dict(url).get("options") or "")
    statement = raw.execute("show statement_timeout").fetchone() if "statement_timeout" in options else (STATEMENT_TIMEOUT,)
    row = raw.execute(PREPARE_SESSION, {"statement": statement[0] if statement else STATEMENT_TIMEOUT}).fetchone()
    raw.autocommit = False
    raw.adapters.register_loader("numeric", WholeNumber)
    assert row is not None  # every session is in the view
    return Backend(cast(int, row[3]), cast(str, row[4]))


def set_transaction_mode(raw: RawConnection, read_only: bool) -> None:
    """Reads see one snapshot (REPEATABLE READ, read only): it travels with BEGIN and costs nothing. Writes are READ COMMITTED."""
    if raw.read_only is not read_only:
        raw.read_only = read_only
        raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if read_only else psycopg.IsolationLevel.READ_COMMITTED


def session_refusal(error: psycopg.Error) -> StoreUnavailable:
    """What went wrong, without the server's text (it names hosts and users)."""
    if error.sqlstate == "53300" or (error.sqlstate is None and has_no_connection_left(str(error))):
        return NoConnectionLeft()
    if error.sqlstate is None or error.sqlstate.startswith("08"):
        return StoreUnavailable("the database cannot be reached")
    if error.sqlstate == "55P03":
        return StoreUnavailable("the database row is locked by another transaction")
    if error.sqlstate == "57014":
        return StoreUnavailable("the database took too long for a statement")
    if isinstance(error, READ_ONLY_ERRORS):
        return StoreUnavailable(f"the database takes no writes at present ({error.sqlstate}): it is a standby, or a table has just changed")
    return StoreUnavailable("the database refused the transaction")


FULL_SERVER_SECONDS = 0.5
"""How long a server that had no connection left is not asked for another."""
FULL_SERVER_ROUNDS = 4


class SessionWaiter:
    """A thread that waits for another's session."""

    def __init__(self) -> None:
        self.given = threading.Event()
        self.session: Session | None = None


class SessionPool:
    """As many sessions as threads take at once, made when they are needed. The one used last is taken first: a quiet process holds few.

    While the server has no connection left, threads take turns on the sessions that there are, the first that waits first.
    """

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._idle: list[Session] = []
        self._all: set[Session] = set()
        self._waiting: deque[SessionWaiter] = deque()
        self._lock = threading.Lock()
        self._full = False

    def take(self) -> Session:
        """A session that is connected. Waits at most 2 s for another thread's; StoreUnavailable when there is none."""
        for round_number in range(FULL_SERVER_ROUNDS):
            session = self._next()
            if session is None:
                continue
            try:
                session.open()
            except NoConnectionLeft:
                # Where several ask at once the server may refuse them all: it counts those that it refuses.
                if not self._turned_away(session) and round_number > 0:
                    raise
            except BaseException:
                self.give_back(session)
                raise
            else:
                return session
        raise NoConnectionLeft

    def give_back(self, session: Session) -> None:
        """Let the next thread have it; one that has no connection any more is closed and forgotten."""
        is_open = session.is_open
        if not is_open:
            session.close()
        with self._lock:
            if not is_open:
                self._all.discard(session)
            elif self._waiting:
                waiter = self._waiting.popleft()
                waiter.session = session
                waiter.given.set()
            else:
                self._idle.append(session)

    def close_idle(self) -> None:
        """End the sessions that no thread has."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._all.difference_update(idle)
        for session in idle:
            session.close()

    def _next(self) -> Session | None:
        """One that is idle, or a new one; None when the server was full, and nobody gave one back for a while."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if not self._full:
                session = self._make()
                self._all.add(session)
                return session
            waiter = SessionWaiter()
            self._waiting.append(waiter)
        waiter.given.wait(FULL_SERVER_SECONDS)
        with self._lock:
            if waiter.session is None:
                self._waiting.remove(waiter)
                self._full = False
            return waiter.session

    def _turned_away(self, session: Session) -> bool:
        """Forget a session that the server had no room for; whether there are others to wait for."""
        session.close()
        with self._lock:
            self._all.discard(session)
            self._full = True
            return bool(self._all)
