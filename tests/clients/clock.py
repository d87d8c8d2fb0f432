"""A clock that moves when a test says so."""


class ManualClock:
    """Wall and monotonic time in step; the wall clock may be set wrong by some seconds."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.time = now
        self.ahead = 0.0

    def now(self) -> float:
        return self.time + self.ahead

    def monotonic(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds
