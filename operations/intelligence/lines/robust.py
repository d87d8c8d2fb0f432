"""Estimates that a few wild days do not move: the MAD as scale, the slope of Theil and Sen.

Plain Python: series of a line are some dozen days, for which numpy's calls cost more than the arithmetic.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import sqrt
from statistics import median

NORMAL = 1.4826
"""Makes the MAD of normal values their standard deviation."""


def mad(distances: Iterable[float]) -> float:
    """The scale of distances from a centre, by their median (Rousseeuw and Croux 1993)."""
    return NORMAL * median(abs(distance) for distance in distances)


def pooled(scale: float, count: int, usual: float, weight: float) -> float:
    """A scale that few values gave, drawn towards the usual one: variances are averaged, the usual one counts for so many values."""
    return sqrt((count * scale**2 + weight * usual**2) / (count + weight))


def slope(values: Sequence[float]) -> float:
    """Change per place: the median of the slopes between all pairs (Theil 1950, Sen 1968)."""
    pairs = combinations(enumerate(values), 2)
    found = [(later - earlier) / (place - before) for (before, earlier), (place, later) in pairs]
    return median(found) if found else 0.0
