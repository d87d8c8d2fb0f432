"""What goes wrong between us and the charging system, drawn from the seed per call."""

from collections.abc import Mapping
from random import Random
from typing import Literal

UpstreamFault = Literal[
    "refused",
    "reset_before",
    "reset_after",
    "lost",
    "late_reply",
    "late_effect",
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
    {"refused", "reset_before", "http_before", "garbage_before", "empty_before", "code18_before", "code100", "code3", "code6", "code14"}
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


class UpstreamFaults:
    """Draws a fault per call; reads fail more rarely than writes, or nothing would ever be tried."""

    def __init__(self, rng: Random, rate: float, weights: Mapping[UpstreamFault, int] = WEIGHTS) -> None:
        self.rng, self.rate = rng, rate
        self._kinds: list[UpstreamFault] = [*weights]
        self._weights = list(weights.values())
        self.counts: dict[str, int] = {}

    def only(self, fault: UpstreamFault) -> None:
        """Every call meets this one."""
        self.rate, self._weights = 1.0, [1]
        self._kinds[:] = [fault]

    def draw(self, write: bool) -> UpstreamFault | None:
        """The fault of the next call."""
        if self.rng.random() >= (self.rate if write else self.rate / 4):
            return None
        fault = self.rng.choices(self._kinds, self._weights)[0]
        self.counts[fault] = self.counts.get(fault, 0) + 1
        return fault
