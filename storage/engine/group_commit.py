"""Group commit: what is pending shares one transaction, and everyone is answered after its COMMIT.

Functions run on the event loop as they come, inside the open batch, each in a savepoint. The batch is closed at the end of the
loop's tick. The writer thread commits it, a batch of one too, while new arrivals wait for the next batch: its fsync takes as long as the
disk likes, a quarter of a second beside a checkpoint, and reads are answered meanwhile.

A long function would hold up the loop: it runs in the writer thread from BEGIN to COMMIT, as a batch of its own.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, Protocol

from registry.errors import StoreUnavailable
from storage.engine.database_signals import DatabaseSignals
from storage.engine.sql import Connection, Dialect, T
from storage.engine.sqlite_file import is_sqlite_busy, open_sqlite_file, outage_of, transaction_refusal, tune_sqlite


class BatchJob(Protocol):
    """A job as a batch sees it: what it returns is between the job and its caller."""

    @property
    def long(self) -> bool:
        """Whether it is to run in the thread, in a batch of its own."""
        ...

    @property
    def abandoned(self) -> bool:
        """Whether the caller has gone."""
        ...

    def perform(self, connection: Connection) -> bool:
        """Run the function; whether its writes are to be kept."""
        ...

    def answer_caller(self, failure: StoreUnavailable | None) -> None:
        """Answer the caller, once the batch is committed or lost."""
        ...


class WriteJob(Generic[T]):
    """A function to run and the future of its caller."""

    __slots__ = ("_call", "_error", "_future", "_value", "long")

    def __init__(self, call: Callable[[Connection], T], future: asyncio.Future[T], *, long: bool = False) -> None:
        self.long = long
        self._call = call
        self._future = future
        self._error: Exception | None = None
        self._value: list[T] = []

    @property
    def abandoned(self) -> bool:
        return self._future.cancelled()

    def perform(self, connection: Connection) -> bool:
        try:
            self._value.append(self._call(connection))
        except Exception as error:  # whatever the function raises is its caller's, and only its caller's
            self._error = outage_of(error) or error
        return self._error is None

    def answer_caller(self, failure: StoreUnavailable | None) -> None:
        if self._future.done():  # a cancelled caller
            return
        error = failure or self._error
        if isinstance(self._error, StoreUnavailable):  # the job that found the disk full knows the reason best
            error = self._error
        if error is None:
            self._future.set_result(self._value[0])
        else:
            self._future.set_exception(error)


class WriteConnection:
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

    def finish(self, job: BatchJob) -> None:
        """The one job of a transaction that was begun for it, and its commit."""
        try:
            self.perform(job)
        except sqlite3.Error:
            self.rollback()
            raise
        self.commit()

    def perform(self, job: BatchJob) -> None:
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
        self._raw = open_sqlite_file(self._path, busy_ms=0)
        tune_sqlite(self._raw)
        self._connection = Connection(self._raw, self._dialect)
        self._broken = False


MOST_IN_BATCH = 256


class GroupWriter:
    """The one writer of a file in this process. Everything but the thread's two tasks happens on the loop."""

    def __init__(self, file: WriteConnection, committed: Callable[[], None], signals: DatabaseSignals) -> None:
        self._file = file
        self._committed, self._signals = committed, signals
        self._lock_asked = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = False
        self._batch: list[BatchJob] = []
        self._waiting: deque[BatchJob] = deque()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._thread_rests = threading.Event()
        self._thread_rests.set()
        self._handed = False
        self._closing = False
        self._drained: asyncio.Future[None] | None = None

    def submit(self, job: BatchJob, loop: asyncio.AbstractEventLoop) -> None:
        """Run a job in the open batch, or queue it for the next one."""
        if self._closing:
            raise StoreUnavailable("the store is closing")
        if loop is not self._loop:
            self._adopt(loop)
        if self._handed:
            self._waiting.append(job)
        else:
            self._take(job)

    async def drain(self) -> None:
        """Take no more jobs; return when all accepted ones are answered."""
        self._closing = True
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._adopt(loop)
        if self._open or self._handed or self._waiting:
            self._drained = loop.create_future()
            await self._drained

    def close(self) -> None:
        """End the thread and close the connection. Call `drain` before."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
        self._file.close()

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serve another loop: the one before has ended (`asyncio.run` twice), and its callers with it."""
        if self._loop is not None and self._loop.is_running():
            raise RuntimeError("one store serves one running event loop")
        self._thread_rests.wait()
        self._file.rollback()
        self._batch.clear()
        self._waiting.clear()
        self._open = self._handed = False
        self._loop = loop

    def _take(self, job: BatchJob) -> None:
        if job.long:
            self._take_long(job)
            return
        if self._open:
            self._perform(job)
            return
        try:
            self._file.begin()
        except (sqlite3.Error, StoreUnavailable) as error:
            if not is_sqlite_busy(error):
                job.answer_caller(transaction_refusal(error))
                return
            # Another process writes. The thread waits for it; the loop does not.
            self._waiting.appendleft(job)
            self._await_lock(self._lock_decided)
            return
        self._opened()
        self._perform(job)

    def _take_long(self, job: BatchJob) -> None:
        self._waiting.appendleft(job)
        if not self._open:
            self._await_lock(self._long_begun)
            return
        self._close_batch()

    def _opened(self) -> None:
        self._open = True
        self._on_loop().call_soon(self._close_batch)

    def _perform(self, job: BatchJob) -> None:
        try:
            self._file.perform(job)
        except sqlite3.Error as error:
            # SQLite has undone the whole transaction (a full disk does that): the batch is lost, not only this job.
            self._batch.append(job)
            self._lose(transaction_refusal(error))
            return
        self._batch.append(job)
        if len(self._batch) >= MOST_IN_BATCH:
            self._close_batch()

    def _close_batch(self) -> None:
        if not self._open or self._handed:  # closed already, by its size or by its loss
            return
        self._open = False
        self._hand_over(self._file.commit, self._commit_decided)

    def _lose(self, failure: StoreUnavailable) -> None:
        self._open = False
        self._file.rollback()
        self._answer(failure)

    def _await_lock(self, decided: Callable[[StoreUnavailable | None], None]) -> None:
        self._lock_asked = self._signals.clock.monotonic()
        self._hand_over(self._file.begin_patiently, decided)

    def _note_lock(self) -> None:
        self._signals.lock_wait.observe(self._signals.clock.monotonic() - self._lock_asked)

    def _lock_decided(self, failure: StoreUnavailable | None) -> None:
        self._handed = False
        self._note_lock()
        if failure is None:
            self._opened()
            self._next()
            return
        self._refuse_waiting(failure)

    def _long_begun(self, failure: StoreUnavailable | None) -> None:
        self._handed = False
        self._note_lock()
        if failure is not None:
            self._refuse_waiting(failure)
            return
        job = self._waiting.popleft()
        if job.abandoned:
            self._file.rollback()
            self._next()
            return
        self._batch.append(job)
        self._hand_over(partial(self._file.finish, job), self._commit_decided)

    def _refuse_waiting(self, failure: StoreUnavailable) -> None:
        """Everyone who waited for the lock: one more wait each would keep the last one for minutes."""
        self._batch.extend(self._waiting)
        self._waiting.clear()
        self._answer(failure)

    def _commit_decided(self, failure: StoreUnavailable | None) -> None:
        self._handed = False
        self._answer(failure)
        self._next()

    def _next(self) -> None:
        while self._waiting and not self._handed:
            job = self._waiting.popleft()
            if not job.abandoned:
                self._take(job)
        self._tell_drained()

    def _answer(self, failure: StoreUnavailable | None) -> None:
        batch, self._batch = self._batch, []
        if failure is None:
            self._committed()
        for job in batch:
            job.answer_caller(failure)
        self._tell_drained()

    def _tell_drained(self) -> None:
        idle = not (self._open or self._handed or self._waiting)
        if idle and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _on_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RuntimeError("no job was submitted yet")
        return self._loop

    def _hand_over(self, task: Callable[[], None], decided: Callable[[StoreUnavailable | None], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="group-commit", daemon=True)
            self._thread.start()
        self._handed = True
        self._thread_rests.clear()
        self._tasks.put(partial(self._in_thread, task, decided, self._on_loop()))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _in_thread(
        self, task: Callable[[], None], decided: Callable[[StoreUnavailable | None], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        failure: StoreUnavailable | None = None
        try:
            task()
        except (sqlite3.Error, StoreUnavailable) as error:
            failure = transaction_refusal(error)
        self._thread_rests.set()
        with suppress(RuntimeError):  # the loop has closed, so nobody waits for the answer; `_adopt` cleans up
            loop.call_soon_threadsafe(decided, failure)
