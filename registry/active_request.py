"""The request that is being answered, known to all that runs for it: until when it is answered, and which outside systems it waits for."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from registry.clock import Clock

REQUEST_SECONDS = 45.0
"""From its beginning to its answer. What is streamed has left the request behind: its pieces have times of their own."""
COMPOSITE_SECONDS = 40.0
"""How long an answer of many reads goes on reading: then it is made of what has been read."""

MOMENT = 0.05


class ActiveRequest:
    """One request. `ends` is monotonic time; `waits` counts its calls under way, by outside system, from the first on."""

    __slots__ = ("_clock", "began", "ends", "waits")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began = began = clock.monotonic()
        self.ends = began + REQUEST_SECONDS
        self.waits: dict[str, int] | None = None

    def left(self) -> float:
        """Seconds; none or fewer when its time is over."""
        return self.ends - self._clock.monotonic()


ACTIVE: ContextVar[ActiveRequest | None] = ContextVar("active_request", default=None)
"""None: no request is being answered, as in the worker, whose work has times of its own."""


def seconds_left(most: float) -> float:
    """`most`, or what is left of the active request where that is less; 0 when its time is over."""
    request = ACTIVE.get()
    return most if request is None else max(0.0, min(most, request.left()))


def is_over() -> bool:
    """There is an active request, and its time is over. Loops count in milliseconds, so that one may end a call a moment too early."""
    request = ACTIVE.get()
    return request is not None and request.left() <= MOMENT


def read_until(seconds: float = COMPOSITE_SECONDS) -> None:
    """From now on nothing that the active request waits for lasts longer than so many seconds from its beginning."""
    request = ACTIVE.get()
    if request is not None:
        request.ends = min(request.ends, request.began + seconds)


@contextmanager
def one_request(clock: Clock) -> Generator[None]:
    """Everything in the block is one request; inside another one it is a part of that."""
    if ACTIVE.get() is not None:
        yield
        return
    token = ACTIVE.set(ActiveRequest(clock))
    try:
        yield
    finally:
        ACTIVE.reset(token)
