"""The PostgreSQL store: psycopg in threads, as many sessions as threads, so that no thread waits for another's connection.

A thread that waits for a server cannot be ended, but its connection can. So the store looks after its calls: when nothing at all was
answered for a second, it asks the server on a connection of its own. A server that says nothing either is taken for gone: the calls
under way are cut off, and new ones are refused at once, until it answers again.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import Concatenate, Generic, cast

import psycopg

from registry.errors import CommitUnknown, StoreUnavailable
from storage.engine.database_signals import DatabaseSignals, PoolLoad
from storage.engine.database_url import conninfo, has_no_connection_left
from storage.engine.session import COLLISION_ERRORS, END_BACKEND, NO_ANSWER, UNIQUE_VIOLATION, Backend, Session, SessionPool
from storage.engine.sql import Connection, Dialect, P, Statement, T, is_run_in_thread, postgresql_dialect


class PostgresCall(Generic[T]):
    """`answer` is its caller's, who may be told before the thread comes back: from then on nothing of the call is committed."""

    __slots__ = (
        "_lock",
        "_session",
        "alone",
        "answer",
        "began",
        "begun",
        "call",
        "collisions",
        "is_refused",
        "long",
        "loop",
        "may_be_committed",
        "placed",
        "read_only",
    )

    def __init__(
        self,
        call: Callable[[Connection], T],
        loop: AbstractEventLoop,
        *,
        read_only: bool,
        long: bool,
        began: float = 0.0,
        alone: bool = False,
    ) -> None:
        """`began`: monotonic seconds, as are those of `placed`. `alone`: it is one SELECT, and needs no transaction."""
        self.call, self.loop, self.read_only, self.long, self.alone = call, loop, read_only, long, alone
        self.answer: Future[T] = loop.create_future()
        self.begun = loop.time()
        self.began = began
        self.placed: float | None = None
        """When a thread had a connection for it."""
        self.collisions = 0
        self.is_refused = False
        self.may_be_committed = False
        """Its COMMIT was sent, whatever came of it."""
        self._lock = threading.Lock()
        self._session: Session | None = None

    @property
    def is_running(self) -> bool:
        """Whether a thread has taken it."""
        return self._session is not None

    @property
    def is_over(self) -> bool:
        """Whether its caller has gone, or was told: a thread that has not begun it leaves it alone."""
        return self.is_refused or self.answer.cancelled()

    def run(self, session: Session) -> T:
        """Run it on a session, in a thread."""
        with self._lock:
            self._session = session
            self.may_be_committed = False
            self._require_wanted()
        return session.run(self.call, read_only=self.read_only, long=self.long, alone=self.alone, before_commit=self._before_commit)

    def cut(self) -> Backend | None:
        """End it, which its caller hears from the thread; returns the server's process that may still have it."""
        with self._lock:
            self.is_refused = True
            session = self._session
        if session is None:
            self.tell_unavailable()
            return None
        backend = session.backend
        session.cut()
        return backend

    def refuse(self, refusal: StoreUnavailable) -> None:
        """Tell the caller of a call that no thread has taken."""
        self.is_refused = True
        if not self.answer.done():
            self.answer.set_exception(refusal)

    def tell_unavailable(self) -> None:
        """Tell the caller of a call that was cut, without its thread. What was being committed may have been."""
        if not self.answer.done():
            self.answer.set_exception(CommitUnknown() if self.may_be_committed else StoreUnavailable(NO_ANSWER))

    def answer_caller(self, done: "futures.Future[T]") -> None:
        """Tell the caller what the thread says, in the loop."""
        if self.answer.done():
            return
        error = done.exception()
        if error is None:
            self.answer.set_result(done.result())
        else:
            self.answer.set_exception(error)

    def _before_commit(self) -> None:
        with self._lock:
            self._require_wanted()
            self.may_be_committed = not self.read_only

    def _require_wanted(self) -> None:
        if self.is_refused:
            raise StoreUnavailable(NO_ANSWER)


RETRIES_POSTGRES = 5

RETRY_SECONDS = 0.004

LOOK_SECONDS = 0.25

SILENCE_SECONDS = 1.0
"""Without any answer to any call before the server is asked whether it is there."""

PROBE_SECONDS = 1.0

PROBE_END_MS = 500

GRACE_SECONDS = 0.25
"""For threads whose connections were cut to come back; their callers are told without them then."""

QUEUE_SECONDS = 20.0

MOST_CALL_SECONDS = 60.0

MOST_LONG_CALL_SECONDS = 600.0
"""For one call, all its statements together."""

PROBE_NAME = "reseller probe"

ABANDONED_SECONDS = 30.0
"""For processes of the server to end whose outcome nobody heard."""

RECOVERY_PAUSES = (0.1, 0.2, 0.4, 0.8)

ALL_CONNECTIONS_BUSY = "all connections of this process to the database are busy (SERVICE_DATABASE_POOL); nothing was done"


class PostgresStore:
    """A pool of threads and of sessions. `report` is told when the server is away, and when it is back."""

    dialect_name = "postgresql"
    snapshot = None

    def __init__(self, url: str, pool: int, report: Callable[[str], None]) -> None:
        self._url, self._report, self.signals = url, report, DatabaseSignals()
        self._dialect = postgresql_dialect()
        self._sessions = SessionPool(partial(Session, url, self._dialect))
        self._closing = False
        self._threads = futures.ThreadPoolExecutor(pool, thread_name_prefix="postgres", initializer=self._start_thread)
        self._pool, self._local, self._started = pool, threading.local(), 0
        self._calls: dict[PostgresCall[object], None] = {}
        """Those whose thread has not come back, the oldest first."""
        self._answered = 0.0
        self._alive = 0.0
        self._look_due: asyncio.TimerHandle | None = None
        self._probe: asyncio.Task[None] | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._away, self._away_since = False, 0.0
        self._abandoned: dict[Backend, None] = {}

    @property
    def pool_load(self) -> PoolLoad:
        """Its threads, of which each has a connection while it runs a call."""
        busy = sum(call.is_running for call in self._calls)
        return PoolLoad(self._pool, busy, len(self._calls) - busy)

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a reading function in a thread; all its statements see one snapshot."""
        alone = is_one_select(fn, self._dialect)
        return await self._submit(
            lambda connection: fn(connection, *args, **kwargs), read_only=True, long=is_run_in_thread(fn), alone=alone
        )

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread and commit. It may run again after a deadlock: it is a pure database function.

        CommitUnknown when nobody heard whether it was committed; whoever reads afterwards sees how it ended.
        """
        return await self._submit(lambda connection: fn(connection, *args, **kwargs), read_only=False, long=is_run_in_thread(fn))

    async def aclose(self) -> None:
        """Finish what is under way, close the sessions."""
        self._closing = True
        try:
            await asyncio.to_thread(self._threads.shutdown)
        finally:
            self._sessions.close_idle()
            for task in (self._probe, self._recovery):
                if task is not None:
                    task.cancel()
            if self._look_due is not None:
                self._look_due.cancel()

    async def _submit(self, call: Callable[[Connection], T], *, read_only: bool, long: bool, alone: bool = False) -> T:
        if self._closing:
            raise StoreUnavailable("the store is closing")
        loop = asyncio.get_running_loop()
        if self._away:
            self._keep_recovering(loop)
            raise StoreUnavailable(NO_ANSWER)
        submitted = PostgresCall(call, loop, read_only=read_only, long=long, began=self.signals.clock.monotonic(), alone=alone)
        self._calls[cast("PostgresCall[object]", submitted)] = None
        self._threads.submit(self._run, submitted).add_done_callback(partial(self._come_back, submitted))
        self._look_later(loop)
        return await submitted.answer

    # In the threads.

    def _start_thread(self) -> None:
        self._started += 1
        # Choice: retries are staggered by the thread's place in the pool instead of a random jitter; it is as good and repeatable.
        self._local.stagger = self._started / self._pool

    def _run(self, submitted: PostgresCall[T]) -> T:
        if submitted.is_over:
            raise StoreUnavailable(NO_ANSWER)
        session = self._sessions.take()
        submitted.placed = self.signals.clock.monotonic()
        try:
            return self._run_on(session, submitted)
        except CommitUnknown:
            if session.backend is not None and not session.is_cut:  # else whoever cut it has it
                self._abandoned[session.backend] = None
                self._in_loop(submitted.loop, partial(self._begin_outage, submitted.loop))
            raise
        finally:
            self._sessions.give_back(session)

    def _run_on(self, session: Session, submitted: PostgresCall[T]) -> T:
        for attempt in range(RETRIES_POSTGRES):
            try:
                return submitted.run(session)
            except COLLISION_ERRORS:
                submitted.collisions += 1
                pause: float = RETRY_SECONDS * (1 << attempt) * (1 + self._local.stagger)
                threading.Event().wait(pause)
        try:
            return submitted.run(session)
        except UNIQUE_VIOLATION:  # not by a transaction of just now: the function did not look, which is a fault of ours
            raise
        except COLLISION_ERRORS as error:
            raise StoreUnavailable("the transaction kept colliding with others") from error

    def _come_back(self, submitted: PostgresCall[T], done: "futures.Future[T]") -> None:
        self._in_loop(submitted.loop, partial(self._finish, submitted, done))

    def _in_loop(self, loop: asyncio.AbstractEventLoop, then: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has closed, so nobody waits for it
            loop.call_soon_threadsafe(then)

    # In the loop.

    def _finish(self, submitted: PostgresCall[T], done: "futures.Future[T]") -> None:
        self._calls.pop(cast("PostgresCall[object]", submitted), None)
        if not isinstance(done.exception(), StoreUnavailable):
            self._answered = submitted.loop.time()
        signals = self.signals
        if submitted.placed is not None:
            signals.pool_wait.observe(submitted.placed - submitted.began)
            signals.called("read" if submitted.read_only else "write", submitted.began)
            signals.collisions += submitted.collisions
        submitted.answer_caller(done)

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look after the calls for as long as there are any."""
        if loop is not self._loop:  # the one before has ended (`asyncio.run` twice), and its callers with it
            self._loop, self._look_due = loop, None
            self._calls = {call: None for call in self._calls if call.loop is loop}
        if self._look_due is None:
            self._look_due = loop.call_later(LOOK_SECONDS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look_due = None
        now = loop.time()
        for call in [each for each in self._calls if now - each.begun > QUEUE_SECONDS]:
            self._limit(call, now - call.begun)
        oldest = next(iter(self._calls), None)
        if oldest is None:
            return
        self._look_later(loop)
        probing = self._probe is not None and not self._probe.done()
        if not (probing or self._away) and now - max(oldest.begun, self._answered, self._alive) > SILENCE_SECONDS:
            self._probe = loop.create_task(self._examine(loop))

    def _limit(self, call: PostgresCall[object], age: float) -> None:
        """End a call that takes too long although the server answers."""
        if not call.is_running:
            call.refuse(StoreUnavailable(ALL_CONNECTIONS_BUSY))
        elif not call.is_refused and age > (MOST_LONG_CALL_SECONDS if call.long else MOST_CALL_SECONDS):
            self._cut(call)
            call.loop.call_later(GRACE_SECONDS, call.tell_unavailable)
            if call.may_be_committed:
                self._begin_outage(call.loop)

    def _cut(self, call: PostgresCall[object]) -> None:
        backend = call.cut()
        if backend is not None:
            self._abandoned[backend] = None

    async def _examine(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ask the server whether it is there. One that is full answers too."""
        silent = True
        try:
            await self._ask()
            silent = False
        except psycopg.Error as error:
            silent = not has_no_connection_left(str(error))
        except (TimeoutError, OSError):
            pass
        if not silent:
            self._alive = loop.time()
        elif self._calls and loop.time() - self._answered > SILENCE_SECONDS:  # else somebody was answered meanwhile
            self._begin_outage(loop)

    async def _ask(self) -> None:
        """One question on a connection of its own. Raises where no answer comes in time, or while an abandoned process has not ended."""
        async with asyncio.timeout(PROBE_SECONDS):
            connection = await psycopg.AsyncConnection.connect(conninfo(self._url, application_name=PROBE_NAME), autocommit=True)
            try:
                await connection.execute(b"select 1")
                for backend in list(self._abandoned):
                    await end_backend(connection, backend)
                    self._abandoned.pop(backend, None)
            finally:
                await connection.close()

    def _begin_outage(self, loop: asyncio.AbstractEventLoop) -> None:
        """The server is away: end every call that waits for it, and wait for it to come back."""
        if self._away:
            return
        self._away, self._away_since = True, loop.time()
        self._report("the database does not answer; calls are refused until it does")
        for call in list(self._calls):
            self._cut(call)
            loop.call_later(GRACE_SECONDS, call.tell_unavailable)
        self._sessions.close_idle()
        self._keep_recovering(loop)

    def _keep_recovering(self, loop: asyncio.AbstractEventLoop) -> None:
        task = self._recovery
        if task is None or task.done() or task.get_loop() is not loop:
            self._recovery = loop.create_task(self._recover(loop))

    async def _recover(self, loop: asyncio.AbstractEventLoop) -> None:
        """Until the server answers, and has ended the processes whose outcome nobody heard: what is read next is how they ended."""
        pauses = iter(RECOVERY_PAUSES)
        while not await self._is_back():
            if self._abandoned and loop.time() - self._away_since > ABANDONED_SECONDS:
                self._report("processes of the database that were abandoned do not end; calls are taken all the same")
                self._abandoned.clear()
            await asyncio.sleep(next(pauses, RECOVERY_PAUSES[-1]))
        self._away = False
        self._report("the database answers again")

    async def _is_back(self) -> bool:
        try:
            await self._ask()
        except psycopg.Error as error:
            return has_no_connection_left(str(error)) and not self._abandoned
        except (TimeoutError, OSError):
            return False
        return True


def is_one_select(fn: object, dialect: Dialect) -> bool:
    """Whether a storage function is one SELECT, which sees one snapshot without a transaction around it."""
    statement = getattr(fn, "statement", None)
    return isinstance(statement, Statement) and statement.text(dialect).sql.startswith("SELECT ")


async def end_backend(connection: psycopg.AsyncConnection[tuple[object, ...]], backend: Backend) -> None:
    """Have a process of the server end. Raises TimeoutError when it does not."""
    cursor = await connection.execute(END_BACKEND, {**backend._asdict(), "wait_ms": PROBE_END_MS})
    row = await cursor.fetchone()
    if row is None or row[0] != 0:
        raise TimeoutError
