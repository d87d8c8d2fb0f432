"""The PostgreSQL sessions of a process, which its threads share."""

import threading
from collections import deque
from collections.abc import Callable

from storage.engine.session import NoConnectionLeft, Session

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
