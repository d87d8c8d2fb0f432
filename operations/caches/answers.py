"""Answers of the charging system that are kept for a minute."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from registry.clock import Clock

CachedAnswer = TypeVar("CachedAnswer")
READ_CACHE_SECONDS = 60.0
READ_CACHE_LIMIT = 4096


class ReadCache:
    """Answers by who asked (a credential's digest) and what was asked. Tenancy is decided by the reader, never here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[object, ...], tuple[float, object]] = {}

    async def get(self, key: tuple[object, ...], load: Callable[[], Awaitable[CachedAnswer]]) -> CachedAnswer:
        """The answer kept under `key` while it is fresh, else that of `load`, which may wait for the network; a failure is not kept."""
        now = self._clock.monotonic()
        found = self._kept.get(key)
        if found is not None and found[0] > now:
            return cast(CachedAnswer, found[1])
        value = await load()
        self._let_go(now)
        self._kept.pop(key, None)  # so that the order is that of age
        self._kept[key] = (now + READ_CACHE_SECONDS, value)
        return value

    def _let_go(self, now: float) -> None:
        """Drop what has expired, since some answers take hundreds of megabytes, and the oldest where there are too many."""
        while self._kept:
            oldest = next(iter(self._kept))
            if self._kept[oldest][0] > now and len(self._kept) < READ_CACHE_LIMIT:
                return
            del self._kept[oldest]

    def forget(self, *beginning: object) -> None:
        """Drop every answer whose key begins so: after a write of ours that changes it."""
        count = len(beginning)
        for key in [key for key in self._kept if key[:count] == beginning]:
            del self._kept[key]
