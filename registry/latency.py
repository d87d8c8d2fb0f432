"""Latency histograms of a process, as plain numbers: an observation costs a fifth of a microsecond, and nobody pays for a library at start.

Choice: the library that writes Prometheus' text is imported at the first scrape. Its own histogram takes 4 microseconds to find the one of
some labels and add to it, and its import a quarter of a second.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

ANSWER_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 45.0)
"""Upper bounds for what somebody waits for; an answer has 45 seconds."""
DELAY_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Upper bounds for what should be nothing."""
MOST_SERIES = 4096
OTHER = "other"


class Histogram:
    """How many of something took how long: `within[i]` took at most `bounds[i]` seconds and more than the bound before; the last more."""

    __slots__ = ("bounds", "seconds", "within")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.within, self.seconds = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self.within[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.within)


class Histograms:
    """A histogram for each combination of label values that occurs. Values are of closed sets; should one not be, `most` bounds them."""

    __slots__ = ("_bounds", "_most", "labels", "series")

    def __init__(self, labels: Sequence[str], bounds: Sequence[float] = ANSWER_SECONDS, most: int = MOST_SERIES) -> None:
        self.labels, self._bounds, self._most = tuple(labels), bounds, most
        self.series: dict[tuple[str, ...], Histogram] = {}

    def observe(self, values: tuple[str, ...], seconds: float) -> None:
        """One more with these label values."""
        found = self.series.get(values)
        if found is None:
            found = self._begin(values)
        found.within[bisect_left(found.bounds, seconds)] += 1  # as Histogram.observe does, without the price of a call
        found.seconds += seconds

    def _begin(self, values: tuple[str, ...]) -> Histogram:
        if len(self.series) >= self._most:
            values = (OTHER,) * len(values)
        return self.series.setdefault(values, Histogram(self._bounds))


class Counts:
    """A count for each combination of label values that occurs, bounded in the same way."""

    __slots__ = ("_most", "labels", "series")

    def __init__(self, labels: Sequence[str], most: int = MOST_SERIES) -> None:
        self.labels, self._most = tuple(labels), most
        self.series = Counter[tuple[str, ...]]()

    def add(self, values: tuple[str, ...]) -> None:
        """One more with these label values."""
        if values not in self.series and len(self.series) >= self._most:
            values = (OTHER,) * len(values)
        self.series[values] += 1
