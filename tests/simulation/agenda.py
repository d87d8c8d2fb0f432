"""What the outside world will do by itself at a time: it comes whoever has died, and it is known what is still to come."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable

from tests.simulation.road import OUTSIDE


class Agenda:
    """Everything that is planned in an episode."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._planned: dict[int, TimerHandle] = {}
        self._count = 0

    def plan(self, delay: float, do: Callable[[], object]) -> None:
        self._count += 1
        self._planned[self._count] = self._loop.call_later(delay, self._do, self._count, do, context=OUTSIDE)

    @property
    def next(self) -> float | None:
        """In how many seconds the next thing comes."""
        return min((timer.when() for timer in self._planned.values()), default=None)

    def end(self) -> None:
        for timer in self._planned.values():
            timer.cancel()
        self._planned.clear()

    def _do(self, number: int, do: Callable[[], object]) -> None:
        del self._planned[number]
        do()
