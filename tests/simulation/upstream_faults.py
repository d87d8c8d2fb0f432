"""What goes wrong between us and the charging system, drawn from the seed per call."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal, NamedTuple

UpstreamFault = Literal[
    "refused",
    "reset_before",
    "reset_after",
    "lost",
    "late_reply",
    "late_effect",
    "hanging",
    "duplicate",
    "http_before",
    "http_after",
    "garbage_before",
    "garbage_after",
    "truncated",
    "empty_before",
    "empty_after",
    "code18_before",
    "code18_after",
    "code100",
    "code3",
    "code6",
    "code14",
]
WITHOUT_EFFECT = frozenset(
    {
        "refused",
        "hanging",
        "reset_before",
        "http_before",
        "garbage_before",
        "empty_before",
        "code18_before",
        "code100",
        "code3",
        "code6",
        "code14",
    }
)
"""The call does nothing there."""
CODES: Mapping[str, int] = {"code18_before": 18, "code18_after": 18, "code100": 100, "code3": 3, "code6": 6, "code14": 14}
WEIGHTS: Mapping[UpstreamFault, int] = {
    "refused": 2,
    "reset_before": 3,
    "reset_after": 5,
    "lost": 4,
    "late_reply": 4,
    "late_effect": 3,
    "duplicate": 3,
    "http_before": 2,
    "http_after": 3,
    "garbage_before": 1,
    "garbage_after": 2,
    "truncated": 2,
    "empty_before": 1,
    "empty_after": 2,
    "code18_before": 2,
    "code18_after": 3,
    "code100": 2,
    "code3": 2,
    "code6": 1,
    "code14": 1,
}
# Choice: a call takes effect there within ten minutes or never; fifteen minutes of unchanged state are then evidence that it did not.
LATEST_EFFECT = 600.0
LATEST_REPLY = 3600.0


class Outage(NamedTuple):
    """A time in which no call is answered, by the episode's seconds: each is refused, or hangs without an effect."""

    begins: float
    ends: float
    fault: UpstreamFault


def draw_outages(rng: Random) -> list[Outage]:
    """Half of the episodes have one in their first minutes."""
    if rng.random() < 0.5:
        return []
    begins = rng.random() * 30
    return [Outage(begins, begins + 3 + rng.random() * 60, "refused" if rng.random() < 0.5 else "hanging")]


class UpstreamFaults:
    """Draws a fault per call; reads fail more rarely than writes, or nothing would ever be tried. In an outage all fail."""

    def __init__(self, rng: Random, rate: float, weights: Mapping[UpstreamFault, int] = WEIGHTS, outages: Sequence[Outage] = ()) -> None:
        self.rng, self.rate, self.outages = rng, rate, outages
        self._kinds: list[UpstreamFault] = [*weights]
        self._weights = list(weights.values())
        self.counts: dict[str, int] = {}

    def only(self, fault: UpstreamFault) -> None:
        self.rate, self._weights = 1.0, [1]
        self._kinds[:] = [fault]

    def draw(self, write: bool, now: float = 0.0) -> UpstreamFault | None:
        for outage in self.outages:
            if outage.begins <= now < outage.ends:
                self.counts["outage"] = self.counts.get("outage", 0) + 1
                return outage.fault
        if self.rng.random() >= (self.rate if write else self.rate / 4):
            return None
        fault = self.rng.choices(self._kinds, self._weights)[0]
        self.counts[fault] = self.counts.get(fault, 0) + 1
        return fault
