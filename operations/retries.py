"""The pause before a worker tries something again."""

from collections.abc import Sequence


def retry_pause(pauses: Sequence[int], tries: int) -> int:
    """Seconds to wait after `tries` tries: `pauses` in their order, the last of them from then on."""
    return pauses[min(tries, len(pauses) - 1)]
