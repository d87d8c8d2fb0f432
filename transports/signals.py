"""What a process counts of itself beside its calls: HTTP requests, deliveries, chores, and by how much its event loop is late."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio

from operations.deps import Deps
from registry.clock import Clock
from registry.signals import DELAY_BOUNDS, CallSignals, Histogram, Histograms, call_outcome

if TYPE_CHECKING:
    from transports.log_output import LogOutput
    from transports.logs import RequestLine


LOOP_TICK_SECONDS = 0.1
OPERATIONS_LABEL, NOWHERE_LABEL = "operations", "none"


class HttpSignals:
    """Requests at the HTTP door by what they reached: `operations` for all of them together, a path of ours, or `none`."""

    def __init__(self) -> None:
        self.seconds = Histograms(("path", "outcome"))

    def answered(self, line: "RequestLine") -> None:
        path = OPERATIONS_LABEL if line.surface == "http" and line.operation else NOWHERE_LABEL if line.path == "-" else line.path
        self.seconds.observe((path, call_outcome(line.status)), line.ms / 1000)


class LoopDelay:
    """By how many seconds the event loop runs late callbacks: all requests wait that long."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.seconds = clock, Histogram(DELAY_BOUNDS)

    async def watch(self) -> None:
        """Look ten times a second, until cancelled."""
        while True:
            due = self._clock.monotonic() + LOOP_TICK_SECONDS
            await anyio.sleep(LOOP_TICK_SECONDS)
            self.seconds.observe(max(0.0, self._clock.monotonic() - due))

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.watch)
            yield
            tasks.cancel_scope.cancel()


class ProcessSignals(NamedTuple):
    """What the process itself tells: its calls, the stocks and the build that `deps` know, how late its loop is, what its log lost."""

    calls: CallSignals
    deps: Deps
    delay: LoopDelay
    log: "LogOutput"


ATTEMPT_SECONDS_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0)


class WorkerTally:
    """Attempts by class of outcome and by seconds, and when each chore last succeeded."""

    def __init__(self, chores: tuple[str, ...] = ()) -> None:
        self.attempts = Counter[str]()
        self.seconds = Histogram(ATTEMPT_SECONDS_BOUNDS)
        self.chores = dict.fromkeys(chores, 0.0)

    def attempt(self, outcome: str, seconds: float) -> None:
        few = f"{outcome[:8]}xx" if outcome.startswith("status:") else outcome  # receivers choose among 500 statuses
        self.attempts[few] += 1
        self.seconds.observe(seconds)

    def chore(self, name: str, at: float) -> None:
        self.chores[name] = at
