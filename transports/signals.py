"""What a process counts of itself beside its calls: HTTP requests, and by how much its event loop is late."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio

from operations.deps import Build
from operations.services.issuing.stock import StockRoom
from registry.call_signals import CallSignals, outcome_of
from registry.clock import Clock
from registry.latency import DELAY_SECONDS, Histogram, Histograms

if TYPE_CHECKING:
    from transports.logs import RequestLine

TICK_SECONDS = 0.1
OPERATIONS, NOWHERE = "operations", "none"


class HttpSignals:
    """Requests at the HTTP door by what they reached: `operations` for all of them together, a path of ours, or `none`."""

    def __init__(self) -> None:
        self.seconds = Histograms(("path", "outcome"))

    def answered(self, line: "RequestLine") -> None:
        """A request was answered."""
        path = OPERATIONS if line.surface == "http" and line.operation else NOWHERE if line.path == "-" else line.path
        self.seconds.observe((path, outcome_of(line.status)), line.ms / 1000)


class LoopDelay:
    """By how much the event loop is late for what is due: whatever holds it, everybody waits so long."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.seconds = clock, Histogram(DELAY_SECONDS)

    async def watch(self) -> None:
        """Look ten times a second, until cancelled."""
        while True:
            due = self._clock.monotonic() + TICK_SECONDS
            await anyio.sleep(TICK_SECONDS)
            self.seconds.observe(max(0.0, self._clock.monotonic() - due))

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Looked at for the length of a block."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.watch)
            yield
            tasks.cancel_scope.cancel()


class ProcessSignals(NamedTuple):
    """What any process of the service knows of itself."""

    calls: CallSignals
    stock: StockRoom
    delay: LoopDelay
    build: Build
