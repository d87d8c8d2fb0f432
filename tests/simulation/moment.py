"""Times as the wire writes them."""

from datetime import UTC, datetime
from functools import lru_cache


def stamp(seconds: float) -> str:
    return _stamp(int(seconds))


@lru_cache(maxsize=4096)
def _stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=64)
def seconds_of(text: str) -> float:
    """A time of the wire, back again."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
