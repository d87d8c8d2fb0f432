"""Wall clocks that jump and names that repeat, over the loop's time."""

from asyncio import AbstractEventLoop
from random import Random

from registry.clock import Clock
from registry.ids import SystemIds
from tests.world import NOON


class SimClock:
    """One machine's clock: the wall may be set, the monotonic one only runs."""

    def __init__(self, loop: AbstractEventLoop, start: float = NOON) -> None:
        self._time, self.start = loop.time, start

    def now(self) -> float:
        return self.start + self._time()

    def monotonic(self) -> float:
        return 1000.0 + self._time()

    def set(self, ahead: float) -> None:
        """Somebody sets the wall clock, so far from what it should be."""
        self.start = NOON + ahead


class SimIds(SystemIds):
    """The service's own ids, over a seed in place of the system's random source."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        super().__init__(clock)
        self._rng = rng

    def _take(self, count: int) -> bytes:
        return self._rng.randbytes(count)

    def fraction(self) -> float:
        return self._rng.random()
