"""Traffic, errors and latency of the calls of a process, whatever door they came through, and the histograms that hold them.

An observation costs a fifth of a microsecond, and nobody pays for a library at start.

Choice: the library that writes Prometheus' text is imported at the first scrape. Its own histogram takes 4 microseconds to find the one of
some labels and add to it, and its import a quarter of a second.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from registry.call import Call, Reply

ANSWER_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 45.0)
"""Upper bounds for what somebody waits for; an answer has 45 seconds."""
DELAY_BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Upper bounds for what should be nothing."""
SERIES_LIMIT = 4096
OTHER_LABEL = "other"


class Histogram:
    """How many of something took how long: `within[i]` took at most `bounds[i]` seconds and more than the bound before; the last more."""

    __slots__ = ("bounds", "seconds", "within")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.within, self.seconds = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, seconds: float) -> None:
        self.within[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.within)


class Histograms:
    """A histogram for each combination of label values that occurs. Values are of closed sets; should one not be, `most` bounds them."""

    __slots__ = ("_bounds", "_most", "labels", "series")

    def __init__(self, labels: Sequence[str], bounds: Sequence[float] = ANSWER_BOUNDS, most: int = SERIES_LIMIT) -> None:
        self.labels, self._bounds, self._most = tuple(labels), bounds, most
        self.series: dict[tuple[str, ...], Histogram] = {}

    def observe(self, values: tuple[str, ...], seconds: float) -> None:
        found = self.series.get(values)
        if found is None:
            found = self._begin(values)
        found.within[bisect_left(found.bounds, seconds)] += 1  # as Histogram.observe does, without the price of a call
        found.seconds += seconds

    def _begin(self, values: tuple[str, ...]) -> Histogram:
        if len(self.series) >= self._most:
            values = (OTHER_LABEL,) * len(values)
        return self.series.setdefault(values, Histogram(self._bounds))


class Counts:
    """A count for each combination of label values that occurs, bounded in the same way."""

    __slots__ = ("_most", "labels", "series")

    def __init__(self, labels: Sequence[str], most: int = SERIES_LIMIT) -> None:
        self.labels, self._most = tuple(labels), most
        self.series = Counter[tuple[str, ...]]()

    def add(self, values: tuple[str, ...]) -> None:
        if values not in self.series and len(self.series) >= self._most:
            values = (OTHER_LABEL,) * len(values)
        self.series[values] += 1


class CallSignals:
    """Counts calls when their answer is known. What is streamed has been answered when its first piece can be asked for.

    Labels are the operation's name, the door and the outcome, and for errors their codes: nothing that a caller chooses.
    """

    def __init__(self) -> None:
        self.seconds = Histograms(("operation", "door", "outcome"))
        self.errors = Counts(("door", "code"))

    def answered(self, call: Call, reply: Reply, seconds: float) -> None:
        """A call has its answer, after so many seconds."""
        self.seconds.observe((call.operation.id, call.surface, call_outcome(reply.status)), seconds)
        if reply.refusal is not None and reply.status >= 400:
            self.errors.add((call.surface, reply.refusal.error_code))

    def abandoned(self, call: Call, seconds: float) -> None:
        """A call was given up before it had an answer: its client has hung up."""
        self.seconds.observe((call.operation.id, call.surface, "abandoned"), seconds)


def call_outcome(status: int) -> str:
    """`refused` is up to the caller, `failed` up to the service or an outside system."""
    return "ok" if status < 400 else "refused" if status < 500 else "failed"
