"""Forgetting in steps what has had its time: there may be a million rows, and nobody else writes while a step goes."""

from typing import Protocol

from storage.connection import Connection
from storage.store import Store

AT_ONCE = 500


class Sweep(Protocol):
    """Forgets the oldest rows, no more than it is told; how many they were."""

    def __call__(self, connection: Connection, *, before: float, most: int) -> int:
        """In one transaction."""
        ...


async def swept(store: Store, sweep: Sweep, *, before: float) -> int:
    """All that is older, others writing in between; how many rows that were."""
    total = 0
    while True:
        gone = await store.write(sweep, before=before, most=AT_ONCE)
        total += gone
        if gone < AT_ONCE:
            return total
