"""Days on which a line used, or cost, far more than it does.

The cube root of a day's figure is compared: it makes sums of sessions, which are skewed, nearly normal (Wilson and Hilferty 1931), and a
multiple of all figures changes nothing. What is usual is the median of the line's days of the same class, and the scale is their MAD, both
drawn towards what holds for more days as far as there are few. So it is a Hampel identifier (Hampel 1974) whose scale cannot collapse.
"""

from collections.abc import Hashable, Iterable, Sequence
from math import sqrt
from statistics import median
from typing import NamedTuple

MAD_TO_DEVIATION = 1.4826
"""Makes the MAD of normal values their standard deviation."""


def robust_deviation(distances: Iterable[float]) -> float:
    """The scale of distances from a centre, by their median (Rousseeuw and Croux 1993)."""
    return MAD_TO_DEVIATION * median(abs(distance) for distance in distances)


def pooled_deviation(scale: float, count: int, usual: float, weight: float) -> float:
    """A scale that few values gave, drawn towards the usual one: variances are averaged, the usual one counts for so many values."""
    return sqrt((count * scale**2 + weight * usual**2) / (count + weight))


SPIKE_THRESHOLD = 2.8
"""Robust standard deviations."""
FALSE_SPIKES_PER_1000 = 2.6
"""Of normal days so many in 1,000 lie beyond: the rate that the threshold is chosen by. docs/intelligence.md has what was measured."""
ROOT_ROUNDING = 1e-9
"""Of the median: roots of equal figures may differ by so little once they were averaged."""
SPIKE_DAYS_NEEDED = 6
"""Days with use that a verdict takes."""
DAY_CLASS_WEIGHT = 4.0
"""Days that the median of all days counts for beside those of a class."""
USUAL_SPIKE_SCALE, USUAL_SCALE_WEIGHT = 0.25, 28.0
"""Of the median: the scale that days of sums of sessions have. Choice: it counts as much as a whole window of the line's own days."""


class DaySample(NamedTuple):
    """A day with use: its place in the window, its figure, and the class of days that it belongs to."""

    place: int
    figure: int
    kind: Hashable


class UsageSpike(NamedTuple):
    """A day that stands out, and between what its figure would not."""

    place: int
    figure: int
    least: int
    most: int
    score: float


def find_spikes(samples: Sequence[DaySample], floor: int) -> list[UsageSpike]:
    """The days that stand out by the threshold, and by so much. What one stood out from is measured again without it, until none does."""
    found: dict[int, UsageSpike] = {}
    rest = list(samples)
    while len(rest) >= SPIKE_DAYS_NEEDED:
        new = {spike.place: spike for spike in outlying_days(rest, floor)}
        if not new:
            break
        found |= new
        rest = [sample for sample in rest if sample.place not in new]
    return [found[place] for place in sorted(found)]


def outlying_days(samples: Sequence[DaySample], floor: int) -> list[UsageSpike]:
    """One round."""
    roots = [sample.figure ** (1 / 3) for sample in samples]
    usual = median(roots)
    centres = [usual_of_day(place, samples, roots, usual) for place in range(len(samples))]
    distances = [root - centre for root, centre in zip(roots, centres, strict=True)]
    above = [distance for distance in distances if distance >= -ROOT_ROUNDING * usual]  # a day just as usual is no day below
    scale = pooled_deviation(
        max(robust_deviation(distances), robust_deviation(above) if above else 0.0),
        len(samples),
        USUAL_SPIKE_SCALE * usual,
        USUAL_SCALE_WEIGHT,
    )
    scale = scale or floor ** (1 / 3) / SPIKE_THRESHOLD  # most days had nothing: the floor decides
    found: list[UsageSpike] = []
    for sample, centre, distance in zip(samples, centres, distances, strict=True):
        if distance > SPIKE_THRESHOLD * scale and sample.figure - centre**3 >= floor:
            least = round(max(0.0, centre - SPIKE_THRESHOLD * scale) ** 3)
            most = max(round((centre + SPIKE_THRESHOLD * scale) ** 3), round(centre**3) + floor)
            found.append(UsageSpike(sample.place, sample.figure, least, most, round(distance / scale, 1)))
    return found


def usual_of_day(place: int, samples: Sequence[DaySample], roots: Sequence[float], usual: float) -> float:
    """What is usual on other days of its class; a day is not compared with itself."""
    kind = samples[place].kind
    own = [roots[other] for other, sample in enumerate(samples) if sample.kind == kind and other != place]
    return (len(own) * median(own) + DAY_CLASS_WEIGHT * usual) / (len(own) + DAY_CLASS_WEIGHT) if own else usual
