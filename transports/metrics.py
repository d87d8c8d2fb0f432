"""What Prometheus reads: depth and lag from the database, and what this process has counted: traffic, errors, latency, saturation."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import anyio

from clients.outside_system import OutsideSystem
from registry.clock import Clock
from registry.errors import StoreUnavailable
from storage.backlog import Backlog, measure_backlog
from storage.engine.store import Store
from transports.http.concurrency import LargeAnswers, RequestTurns
from transports.http.connections import Connections
from transports.signals import HttpSignals, ProcessSignals, WorkerTally

METRICS_STORE_SECONDS = 2.0
"""For the database to say what waits; what is left of a scrape's own time limit is for the answer."""
METRICS_MEDIA_TYPE = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"


class HttpServerState(NamedTuple):
    """What a process that serves HTTP counts beside its tally."""

    large: LargeAnswers
    connections: Connections
    requests: HttpSignals
    turns: RequestTurns


class Metrics:
    """The metrics of a process; `served` only where it serves HTTP."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        tally: WorkerTally,
        served: HttpServerState | None = None,
        systems: Sequence[OutsideSystem] = (),
        process: ProcessSignals | None = None,
    ) -> None:
        self._store, self._clock, self._tally, self._served, self._systems = store, clock, tally, served, systems
        self._process = process

    async def text(self) -> bytes:
        """All of them, in Prometheus' words. Without the database, those of this process."""
        from transports import metric_families as families  # it imports the library

        now = self._clock.now()
        found: Backlog | None = None
        with suppress(StoreUnavailable), anyio.move_on_after(METRICS_STORE_SECONDS):
            found = await self._store.read(measure_backlog, now_ms=int(now * 1000))
        known = [
            *families.database_metrics(found, now),
            *families.worker_metrics(self._tally),
            *families.outside_system_metrics(self._systems),
            *families.upstream_call_metrics(self._systems),
        ]
        known += families.store_metrics(self._store.signals, self._store.pool_load)
        if self._process is not None:
            calls, stock, delay, build = self._process
            known += [*families.call_metrics(calls), *families.stock_metrics(stock.free_counts())]
            known += families.process_metrics(delay.seconds, build)
        if self._served is not None:
            known += families.http_server_metrics(*self._served)
        return families.prometheus_text(known)
