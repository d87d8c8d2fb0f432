"""The PostgreSQL store: psycopg in threads, one connection per thread, so that no thread ever waits for a connection."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from registry.errors import StoreUnavailable
from storage.connection import Connection
from storage.session import COLLISIONS, TAKEN, Session
from storage.statement import postgresql_dialect

P = ParamSpec("P")
T = TypeVar("T")

RETRIES = 5
RETRY_SECONDS = 0.004


class PostgresStore:
    """A pool of threads, each with its own session."""

    dialect_name = "postgresql"

    def __init__(self, url: str, pool: int) -> None:
        self._url = url
        self._dialect = postgresql_dialect()
        self._local = threading.local()
        self._sessions: list[Session] = []
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(pool, thread_name_prefix="postgres", initializer=self._start_thread)
        self._pool = pool

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a reading function in a thread; all its statements see one snapshot."""
        return await self._submit(lambda connection: fn(connection, *args, **kwargs), read_only=True)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread and commit. It may run again after a deadlock: it is a pure database function."""
        return await self._submit(lambda connection: fn(connection, *args, **kwargs), read_only=False)

    async def aclose(self) -> None:
        """Finish what is under way, close the sessions."""
        self._closing.set()
        await asyncio.to_thread(self._threads.shutdown)
        for session in self._sessions:
            session.close()

    async def _submit(self, call: Callable[[Connection], T], *, read_only: bool) -> T:
        if self._closing.is_set():
            raise StoreUnavailable("the store is closing")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, call, read_only)

    def _start_thread(self) -> None:
        self._local.session = session = Session(self._url, self._dialect)
        self._sessions.append(session)
        # Choice: retries are staggered by the thread's place in the pool instead of a random jitter; it is as good and repeatable.
        self._local.stagger = len(self._sessions) / self._pool

    def _run(self, call: Callable[[Connection], T], read_only: bool) -> T:
        session: Session = self._local.session
        for attempt in range(RETRIES):
            try:
                return session.run(call, read_only=read_only)
            except COLLISIONS:
                pause: float = RETRY_SECONDS * (1 << attempt) * (1 + self._local.stagger)
                threading.Event().wait(pause)
        try:
            return session.run(call, read_only=read_only)
        except TAKEN:  # not by a transaction of just now: the function did not look, which is a fault of ours
            raise
        except COLLISIONS as error:
            raise StoreUnavailable("the transaction kept colliding with others") from error
