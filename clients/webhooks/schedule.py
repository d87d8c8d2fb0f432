"""When a failed delivery is tried again."""

from collections.abc import Callable

SECOND, MINUTE, HOUR = 1.0, 60.0, 3600.0
DELAYS = (
    0.0,
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
)
"""Seconds to wait before attempt 1, 2, ... 10: 75 h 35 m 05 s in all."""
ATTEMPTS = len(DELAYS)
JITTER = 0.2
LONGEST_RETRY_AFTER = 24 * HOUR


def next_delay(attempt: int, jitter: Callable[[], float], retry_after: float | None = None) -> float | None:
    """Seconds until the attempt after number `attempt` (0: none made yet), or None when all ten are spent.

    `jitter` draws from [0, 1), as `random.Random().random` does.
    """
    if attempt >= ATTEMPTS:
        return None
    delay = DELAYS[attempt] * (1 - JITTER + 2 * JITTER * jitter())
    # Choice: Retry-After may put an attempt off, never bring it forward.
    return max(delay, min(retry_after or 0.0, LONGEST_RETRY_AFTER))
