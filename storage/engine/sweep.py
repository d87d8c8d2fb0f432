"""Forgetting in steps what has had its time: there may be a million rows, and nobody else writes while a step goes."""

from typing import Protocol

from storage.engine.sql import Connection, runs_in_thread
from storage.engine.store import Store

SWEPT_AT_ONCE = 500
# Choice: a run ends after this many steps and the next one goes on: a chore has its time limit, and others wait for their turn.
SWEEP_STEPS = 200


class Sweep(Protocol):
    """Forgets the oldest rows, no more than it is told; how many they were."""

    def __call__(self, connection: Connection, /, *, before: float, most: int) -> int:
        """In one transaction."""
        ...


async def sweep_in_steps(store: Store, sweep: Sweep, *, before: float, steps: int = SWEEP_STEPS) -> int:
    """What is older, others writing in between, in so many steps at most; how many rows that were."""
    total = 0
    for _ in range(steps):
        gone = await store.write(runs_in_thread(sweep), before=before, most=SWEPT_AT_ONCE)
        total += gone
        if gone < SWEPT_AT_ONCE:
            break
    return total
