"""The seven moments of a call at which a crash would be worst, by name. An episode's seed chooses which of them are its last."""

from collections.abc import Callable
from random import Random
from typing import Literal, get_args

from tests.simulation.process import Process

CrashPoint = Literal["before_claim", "after_claim", "before_send", "after_send", "after_reply", "before_save", "after_save"]
POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)
MOST_PASSED = 4


class CrashPoints:
    """Which points kill the process that reaches them, and at which time of reaching."""

    def __init__(self, fatal: dict[CrashPoint, int], note: Callable[[CrashPoint, str], None] | None = None) -> None:
        """`fatal`: how often a point is passed before it kills."""
        self._left, self._note = fatal, note

    def reach(self, point: CrashPoint, process: Process) -> None:
        left = self._left.get(point)
        if left is None:
            return
        if left > 0:
            self._left[point] = left - 1
            return
        del self._left[point]
        if self._note is not None:
            self._note(point, process.name)
        process.die()

    def spare(self) -> None:
        self._left.clear()


def draw_points(rng: Random, count: int) -> dict[CrashPoint, int]:
    """So many of them, each at its first time or a later one."""
    return {POINTS[int(rng.random() * len(POINTS))]: int(rng.random() ** 2 * MOST_PASSED) for _ in range(count)}
