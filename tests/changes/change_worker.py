"""Processes that plan changes and send their rows on a virtual clock, until they die: at a named step, or when a test says so."""

from asyncio import Task
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

import anyio

from clients.http import HttpReply
from clients.ocs.client import OcsPool
from operations.changes.sending.change_work import ChangeWork
from operations.deps import Deps
from simulators.network.simulated_network import SimulatedNetwork
from tests.fleet.history_stage import ChoreWatch, NetworkOutbound, is_outage
from tests.network_facts import OWN_TOKEN
from tests.simulation.clock import SimClock
from tests.simulation.process import Process
from tests.simulation.replica import WIRE, Outside, SimulatedReplica
from tests.simulation.store import StoreFault, StoreFaults
from transports.worker.chores import Chore, recovery_chore


@dataclass(slots=True)
class Steps:
    """The steps of what is under way: each commit, and each call to the network, has one before it and one behind it.

    `fatal`: the number of the step at which its process dies; None: nobody does.
    """

    fatal: int | None = None
    number: int = 0
    counting: bool = False

    def reach(self) -> bool:
        """Whether the process that comes here dies."""
        if not self.counting:
            return False
        self.number += 1
        return self.fatal is not None and self.number == self.fatal


class StepFaults(StoreFaults):
    """A store whose commits are steps; beside that it fails as the seed says."""

    def __init__(self, rng: Random, rate: float, steps: Steps) -> None:
        super().__init__(rng, rate, ("busy", "full", "commit_unheard"))
        self._steps = steps

    def draw(self) -> StoreFault | None:
        before, after = self._steps.reach(), self._steps.reach()
        return "crash_before_commit" if before else "crash_after_commit" if after else super().draw()


class SteppedOutbound(NetworkOutbound):
    """The way to the network, with a step before what is sent and one behind it."""

    def __init__(self, network: SimulatedNetwork, process: Process, clock: SimClock, rng: Random, steps: Steps) -> None:
        super().__init__(network, process, clock, rng)
        self._owner, self._steps = process, steps

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = 0) -> HttpReply:
        """One exchange of a process that may die before it or behind it."""
        if self._steps.reach():
            self._owner.die()
        answer = await super().exchange(method, url, headers=headers, content=content, keep=keep)
        if self._steps.reach():
            self._owner.die()
        return answer


class ChangeWorker:
    """A process that serves calls and works on change sets, from its start to its death."""

    def __init__(self, outside: Outside, network: SimulatedNetwork, name: str, watch: ChoreWatch, steps: Steps) -> None:
        clock = SimClock(outside.loop)
        self.replica = replica = SimulatedReplica(outside, clock, name)
        pool = OcsPool(SteppedOutbound(network, replica.process, clock, outside.rng, steps), WIRE, clock)
        replica.pipeline.deps = replace(replica.deps, ocs=pool, ocs_token=OWN_TOKEN)
        # As the service does it: what calls from inside do goes through the same pipeline.
        replica.deps.internal_calls.open(replica.pipeline, lambda call, error: watch.broken.append(f"{call.operation.id}: {error!r}"))
        self.work = ChangeWork(replica.pipeline.deps, watch.reports.append)
        self._recovery: Chore = recovery_chore(replica.pipeline.deps)
        self._watch = watch
        self._step: Task[None] | None = None

    @property
    def deps(self) -> Deps:
        return self.replica.pipeline.deps

    @property
    def works(self) -> bool:
        return self._step is not None and not self._step.done()

    @property
    def alive(self) -> bool:
        return self.replica.process.alive

    def begin_step(self) -> None:
        """The chore, as the worker does it; what it raises is looked at."""
        if not self.works and self.alive:
            self._step = self.replica.process.spawn(self._guarded_step())

    async def _guarded_step(self) -> None:
        try:
            await self.replica.renew()
            await self._recovery.run()
            await self.work.step()
        except Exception as error:
            if not is_outage(error):
                self._watch.broken.append(f"the chore failed: {error!r}")

    async def end_step(self) -> None:
        """Waits until the chore is done, or its process is dead."""
        while self.alive and self.works:
            await anyio.sleep(0.3)
