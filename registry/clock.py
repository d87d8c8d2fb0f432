"""The one place that reads the machine's clocks; how moments are written; and how long the request that is answered may take."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

DAY_SECONDS = 86_400


def rfc3339_utc(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC, such as 2026-11-20T09:00:00Z; fractions of a second are cut off."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds)))


class Clock(Protocol):
    """Wall time for stamps and windows, monotonic time for durations."""

    def now(self) -> float:
        """Unix seconds, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks, without a frame of Python's between: durations are measured several times in a call."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


REQUEST_SECONDS = 45.0
"""From its beginning to its answer. What is streamed has left the request behind: its pieces have times of their own."""
COMPOSITE_SECONDS = 40.0
"""How long an answer of many reads goes on reading: then it is made of what has been read."""


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


ACTIVE_REQUEST: ContextVar[ActiveRequest | None] = ContextVar("active_request", default=None)
"""None: no request is being answered, as in the worker, whose work has times of its own."""


def seconds_left(most: float) -> float:
    """`most`, or what is left of the active request where that is less; 0 when its time is over."""
    request = ACTIVE_REQUEST.get()
    return most if request is None else max(0.0, min(most, request.left()))


def limit_reading_time() -> None:
    """From now on nothing that the active request waits for lasts longer than COMPOSITE_SECONDS from its beginning."""
    request = ACTIVE_REQUEST.get()
    if request is not None:
        request.ends = min(request.ends, request.began + COMPOSITE_SECONDS)


@contextmanager
def request_scope(clock: Clock) -> Generator[None]:
    """Everything in the block is one request; inside another one it is a part of that."""
    if ACTIVE_REQUEST.get() is not None:
        yield
        return
    token = ACTIVE_REQUEST.set(ActiveRequest(clock))
    try:
        yield
    finally:
        ACTIVE_REQUEST.reset(token)
