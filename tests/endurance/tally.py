"""What was answered: every status, how long it took, and what of it an organisation has to be charged for."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SPECIFIED = (501, 502, 503)
"""Answers of 500 and more that the specification knows."""


class Status(NamedTuple):
    """How a kind of call was answered; `code` is that of the error body."""

    kind: str
    status: int
    code: str


@dataclass(slots=True)
class Tally:
    """Counts of one engine; the calls of a warm-up are counted as well, since the ledgers hold them."""

    statuses: Counter[Status] = field(default_factory=Counter[Status])
    charged: Counter[str] = field(default_factory=Counter[str])
    """Calls that count against the quota, by organisation."""
    done: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Calls that were carried out, by organisation and operation; a replay is none."""
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    minutes: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    latest: float = 0.0
    """The most seconds that a call was sent after it was due, since too many others were under way."""
    broken: list[str] = field(default_factory=list[str])
    """What an answer showed to be wrong at once."""

    def forget_times(self) -> None:
        """The measurement begins: what was answered stays counted, what it took does not."""
        self.seconds.clear()
        self.minutes.clear()

    def time(self, kind: str, taken: float, minute: int) -> None:
        """How long a call took, from when it was due."""
        self.seconds[kind].append(taken)
        self.minutes[minute].append(taken)

    def break_(self, text: str) -> None:
        """Something is wrong; of a flood the first ones are kept."""
        if len(self.broken) < 100:
            self.broken.append(text)

    def faults(self) -> dict[str, int]:
        """Answers that nobody specified, and calls without any."""
        return {
            f"{found.kind} {found.status} {found.code}": count
            for found, count in self.statuses.items()
            if found.status == 0 or (found.status >= 500 and found.status not in SPECIFIED)
        }


def part(ordered: Sequence[float], share: float) -> float:
    """A percentile of sorted seconds, as milliseconds."""
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 2) if ordered else 0.0
