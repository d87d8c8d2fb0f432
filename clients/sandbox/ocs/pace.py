"""How simulated time relates to the time outside."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """Frozen: only the control API moves the world's clock. Following: it keeps its distance to the clock outside."""

    wall: Callable[[], float]
    following: bool = False
    offset: float | None = None
    """Simulated minus outside time; None is settled by the first look at the world."""
    step: int = 1
    """Seconds the world may lag behind."""

    def target(self, now: int) -> int:
        """Where the world's clock should stand, given where it stands."""
        if not self.following:
            return now
        if self.offset is None:
            self.settle(now)
        wanted = int(self.wall() + (self.offset or 0.0))
        return wanted if wanted - now >= self.step else now

    def settle(self, now: int) -> None:
        """Go on from here: somebody moved the world's clock."""
        self.offset = now - self.wall()
