"""The one place that reads the machine's clocks."""

import time
from typing import Protocol


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
