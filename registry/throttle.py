"""Token buckets in memory: the burst limit of an organisation, of its upstream writes, and of an address on public routes."""

import math
from typing import NamedTuple

CAPACITY = 20_000


class Wait(NamedTuple):
    """How long until the next token, in seconds."""

    seconds: float


class Throttle:
    """One bucket a key. A bucket that is full again carries no information, so full ones are the first to be forgotten."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, rate: float, size: float, now: float) -> Wait | None:
        """Take one token, or say how long to wait. `now` is monotonic seconds."""
        tokens, then = self._buckets.get(key, (size, now))
        tokens = min(size, tokens + max(0.0, now - then) * rate)
        if tokens < 1:
            return Wait((1 - tokens) / rate)
        self._buckets[key] = (tokens - 1, now)
        if len(self._buckets) > CAPACITY:
            self._forget(rate, size, now)
        return None

    def _forget(self, rate: float, size: float, now: float) -> None:
        refill = math.ceil(size / rate) if rate else 0
        for key, (_, then) in list(self._buckets.items()):
            if now - then > refill:
                del self._buckets[key]
        while len(self._buckets) > CAPACITY:
            del self._buckets[next(iter(self._buckets))]
