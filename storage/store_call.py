"""A storage function on its way through a thread, and the caller who waits for it."""

import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from concurrent import futures
from typing import Generic, TypeVar

from registry.errors import CommitUnknown, StoreUnavailable
from storage.connection import Connection
from storage.session import NO_ANSWER, Backend, Session

T = TypeVar("T")


class StoreCall(Generic[T]):
    """`answer` is its caller's, who may be told before the thread comes back: from then on nothing of the call is committed."""

    __slots__ = (
        "_lock",
        "_session",
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
        self, call: Callable[[Connection], T], loop: AbstractEventLoop, *, read_only: bool, long: bool, began: float = 0.0
    ) -> None:
        """`began`: monotonic seconds, as are those of `placed`."""
        self.call, self.loop, self.read_only, self.long = call, loop, read_only, long
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
        return session.run(self.call, read_only=self.read_only, long=self.long, before_commit=self._before_commit)

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

    def settle(self, done: "futures.Future[T]") -> None:
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
