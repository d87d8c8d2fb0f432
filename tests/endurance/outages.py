"""Each system outside is away for a while in the middle of a run, one after the other: it takes connections, and answers nothing."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

BEGIN, END = 0.4, 0.9
"""Of the run's time: when the first outage begins, and when the last system has been back for as long as it was away."""
LONGEST = 45.0
"""Seconds; less than the 60 for which this command itself waits for an answer of the simulated systems."""


class System(Protocol):
    def hang(self) -> None: ...

    def go_on(self) -> None:
        """All is answered again, what was asked meanwhile first."""
        ...


class SimulatedSystem:
    """A process of its own, which is stopped."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def hang(self) -> None:
        """The system still takes its connections."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self._pid, signal.SIGCONT)


class Outages:
    """One after the other. `past`: the systems that were away and are back, with the seconds that each was away."""

    def __init__(self, systems: Mapping[str, System], seconds: float) -> None:
        self._systems, self._seconds = systems, seconds
        self._each = min(LONGEST, seconds * (END - BEGIN) / 2 / max(1, len(systems)))
        self.past: dict[str, float] = {}

    async def run(self, stop: asyncio.Event) -> None:
        await rest(self._seconds * BEGIN, stop)
        loop = asyncio.get_running_loop()
        for name, system in self._systems.items():
            if stop.is_set():
                return
            began = loop.time()
            system.hang()
            try:
                await rest(self._each, stop)
            finally:
                system.go_on()
            self.past[name] = round(loop.time() - began, 1)
            await rest(self._each, stop)


async def rest(seconds: float, stop: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
