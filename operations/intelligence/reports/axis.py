"""The scale of a chart: which numbers stand beside it, and how high a value stands between them."""

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

STEPS = 4
LOWEST_SPAN = 1e-9
HIGHEST = 1e300


class Scale(NamedTuple):
    """From the lowest number to the highest."""

    low: float
    high: float
    ticks: Sequence[float]

    def at(self, value: float) -> float:
        """How far up it is, 0 to 1."""
        share = value / (self.high - self.low) - self.low / (self.high - self.low)
        return min(1.0, max(0.0, share))


def scale_of(values: Sequence[float], *, whole: bool) -> Scale:
    """Round numbers around all of them, nothing among them; `whole`: nothing between whole numbers is counted."""
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    low, high = max(low, -HIGHEST), min(high, HIGHEST)
    if high - low < LOWEST_SPAN:
        high = low + 1
    step = step_of((high - low) / STEPS, whole=whole)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Scale(first * step, last * step, [number * step for number in range(first, last + 1)])


def span_of(values: Sequence[float]) -> Scale:
    """From the lowest to the highest, without numbers beside it."""
    low, high = max(min(values), -HIGHEST), min(max(values), HIGHEST)
    return Scale(low, high if high - low >= LOWEST_SPAN else low + 1, ())


def step_of(rough: float, *, whole: bool) -> float:
    """The next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(rough))
    step = next((factor * power for factor in (1, 2, 2.5, 5) if rough <= factor * power * (1 + 1e-9)), 10 * power)
    return max(1.0, float(ceil(step))) if whole and step < 10 else step


def finite(value: float | None) -> float | None:
    """A number that can be drawn."""
    return None if value is None or not isfinite(value) else float(max(-HIGHEST, min(HIGHEST, value)))
