"""The PostgreSQL sessions of a process, which its threads share."""

import threading
from collections.abc import Callable

from storage.session import NoConnectionLeft, Session

FULL_SECONDS = 0.5
"""How long a server that had no connection left is not asked for another."""
FULL_ROUNDS = 4


class SessionPool:
    """As many sessions as threads take at once, made when they are needed. The one used last is taken first: a quiet process holds few.

    While the server has no connection left, threads take turns on the sessions that there are.
    """

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._idle: list[Session] = []
        self._all: set[Session] = set()
        self._changed = threading.Condition()
        self._full = False

    def take(self) -> Session:
        """A session that is connected. Waits at most 2 s for another thread's; StoreUnavailable when there is none."""
        for _ in range(FULL_ROUNDS):
            session = self._next()
            if session is None:
                continue
            try:
                session.open()
            except NoConnectionLeft:
                if not self._turned_away(session):
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
        with self._changed:
            if is_open:
                self._idle.append(session)
            else:
                self._all.discard(session)
            self._changed.notify()

    def close_idle(self) -> None:
        """End the sessions that no thread has."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._all.difference_update(idle)
        for session in idle:
            session.close()

    def _next(self) -> Session | None:
        """One that is idle, or a new one where there may be one more; None when there was none for a while."""
        with self._changed:
            if not self._idle and self._full:
                self._full = self._changed.wait(FULL_SECONDS)
            if self._idle:
                return self._idle.pop()
            if self._full:
                return None
            session = self._make()
            self._all.add(session)
            return session

    def _turned_away(self, session: Session) -> bool:
        """Forget a session that the server had no room for; whether there are others to wait for."""
        session.close()
        with self._changed:
            self._all.discard(session)
            self._full = bool(self._all)
            return self._full
