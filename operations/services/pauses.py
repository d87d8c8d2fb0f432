"""How long a worker waits before it tries something again: a row of pauses, the last of them for ever."""

from collections.abc import Sequence


def pause(pauses: Sequence[int], tries: int) -> int:
    """Seconds after so many tries."""
    return pauses[min(tries, len(pauses) - 1)]
