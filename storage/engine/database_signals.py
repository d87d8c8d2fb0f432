"""How long the storage calls of a process take, and how long they wait before: for a connection, or for a lock."""

from typing import Literal, NamedTuple

from registry.clock import Clock, SystemClock
from registry.signals import DELAY_BOUNDS, Histogram, Histograms

StoreCallKind = Literal["read", "write"]
CALL_DURATION_BUCKETS = (0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)


class PoolLoad(NamedTuple):
    """Connections that the pool of a store may have, calls that have one now, and calls that wait for one; all 0 where there is no pool."""

    size: int = 0
    busy: int = 0
    waiting: int = 0


class DatabaseSignals:
    """Counted by one store, in its loop. `clock` measures durations alone."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.calls = Histograms(("kind",), CALL_DURATION_BUCKETS)
        """Calls by the seconds until they are done, committed where they write; waits included."""
        self.pool_wait = Histogram(DELAY_BOUNDS)
        """Waits of calls for a thread and a connection; SQLite has neither."""
        self.lock_wait = Histogram(DELAY_BOUNDS)
        """Waits for the write lock of an SQLite file that another process held; those of PostgreSQL are seen at the server."""
        self.collisions = 0
        """Transactions of PostgreSQL that ran again, because others had changed the same rows."""

    def called(self, kind: StoreCallKind, began: float) -> None:
        """A call is done that began then (monotonic seconds)."""
        self.calls.observe((kind,), self.clock.monotonic() - began)
