"""Machines that run the service: each starts it, sees it die, and starts it again after a while; its wall clock may be set."""

from asyncio import Task
from collections.abc import Coroutine

import anyio

from tests.simulation.clock import SimClock
from tests.simulation.replica import Outside, SimulatedReplica

LONGEST_DOWN = 45.0
LONGEST_JUMP = 600.0


class SimulatedMachine:
    """One of them. What it runs changes; who it is stays."""

    def __init__(self, outside: Outside, name: str) -> None:
        self._outside, self.name = outside, name
        self.clock = SimClock(outside.loop)
        self.replica: SimulatedReplica | None = None
        self.starts = 0

    async def run(self) -> None:
        """Keep the service running until cancelled."""
        rng = self._outside.rng
        while True:
            await self.start().live()
            self.replica = None
            await anyio.sleep(rng.random() * LONGEST_DOWN)

    def start(self) -> SimulatedReplica:
        self.starts += 1
        self.replica = SimulatedReplica(self._outside, self.clock, f"{self.name}.{self.starts}")
        return self.replica

    def crash(self) -> None:
        if self.replica is not None:
            self.replica.process.crash()


class SimulatedMachines:
    """All of them, behind one address."""

    def __init__(self, outside: Outside, count: int) -> None:
        self._outside = outside
        self.all = [SimulatedMachine(outside, f"m{number}") for number in range(count)]
        self._keepers: list[Task[None]] = []

    def begin(self) -> None:
        self._keepers = [self._task(machine.run()) for machine in self.all]

    async def any(self) -> SimulatedReplica:
        """One that is up; waits while all are down."""
        while True:
            up = [machine.replica for machine in self.all if machine.replica is not None and machine.replica.ready]
            if up:
                return up[int(self._outside.rng.random() * len(up))]
            await anyio.sleep(1)

    async def trouble(self, *, crashes: int, jumps: int) -> None:
        """Crashes and clock jumps at random moments of the first minutes."""
        rng = self._outside.rng
        moments = sorted([(rng.random() * 90, "crash") for _ in range(crashes)] + [(rng.random() * 90, "jump") for _ in range(jumps)])
        began = self._outside.loop.time()
        for moment, what in moments:
            await anyio.sleep(max(0.0, began + moment - self._outside.loop.time()))
            machine = self.all[int(rng.random() * len(self.all))]
            if what == "crash":
                machine.crash()
            else:
                machine.clock.set(LONGEST_JUMP * (2 * rng.random() - 1))

    async def round(self) -> None:
        """Once all of what living processes do by themselves: each renews its lease, then all work at once."""
        up = [machine.replica for machine in self.all if machine.replica is not None]
        for replica in up:
            await replica.process.request(replica.renew())
        async with anyio.create_task_group() as group:
            for replica in up:
                group.start_soon(replica.process.request, replica.work())

    def heal(self) -> None:
        """From now on they do by themselves what `round` asks for, and nothing else. Some live on, the others begin anew."""
        for keeper in self._keepers:
            keeper.cancel()
        for machine in self.all:
            replica = machine.replica
            if replica is not None and replica.ready and self._outside.rng.random() < 0.5:
                replica.rest()
            else:
                machine.crash()
                machine.start()

    def end(self) -> None:
        """Switch them off, whatever they do."""
        for keeper in self._keepers:
            keeper.cancel()
        for machine in self.all:
            machine.crash()

    def _task(self, work: Coroutine[object, object, None]) -> Task[None]:
        return self._outside.loop.create_task(work)
