"""The runtime of one world: its faults, its clock, and the log of its calls and notifications."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio.to_thread

from simulators.network.faults import NetworkFaults
from simulators.network.simulation import run_world_to
from simulators.network.world import PendingPush, World

CALL_LOG_SIZE = 10_000
THREAD_SECONDS = 3_600
"""From so many seconds on the world's life is run in a thread, so that the loop goes on."""

THREAD_LINES = 2_000
"""More of them have their half day looked up in a thread."""


class NetworkCall(NamedTuple):
    """One call of the wire; tokens are not kept."""

    number: int
    at: int
    method: str
    version: str
    payload: object
    code: int
    faults: list[str]


class PushDelivery(NamedTuple):
    """One notification and how it was taken; status 0: nobody answered."""

    at: int
    url: str
    status: int
    body: dict[str, object]


@dataclass(slots=True)
class WorldClock:
    """A frozen clock is moved by the control API alone; a following one keeps its distance to the clock outside."""

    wall: Callable[[], float]
    following: bool = False
    offset: float | None = None
    """Simulated minus outside time; None is settled by the first look at the world."""
    step: int = 1
    """Seconds the world may lag behind."""

    def target(self, now: int) -> int:
        """Where the world's clock should stand, given where it stands."""
        if not self.following:
            return now
        if self.offset is None:
            self.restart_from(now)
        wanted = int(self.wall() + (self.offset or 0.0))
        return wanted if wanted - now >= self.step else now

    def restart_from(self, now: int) -> None:
        """Keeps the present distance to the clock outside, after the world's clock was moved to `now`."""
        self.offset = now - self.wall()


@dataclass(slots=True)
class WorldRuntime:
    world: World
    faults: NetworkFaults
    clock: WorldClock
    calls: deque[NetworkCall] = field(default_factory=lambda: deque[NetworkCall](maxlen=CALL_LOG_SIZE))
    deliveries: deque[PushDelivery] = field(default_factory=lambda: deque[PushDelivery](maxlen=CALL_LOG_SIZE))
    underway: deque[PendingPush] = field(default_factory=deque[PendingPush])
    """Notifications that were taken from the world and have not been answered."""
    answered: int = 0

    def note(self, make: Callable[[int, int], NetworkCall]) -> None:
        self.answered += 1
        self.calls.append(make(self.answered, self.world.now))

    async def catch_up(self) -> None:
        """Runs the world to where its clock should stand."""
        await self.run_to(self.clock.target(self.world.now))

    async def run_to(self, moment: int) -> None:
        """Runs the world to `moment` (Unix seconds), in a thread where that takes long."""
        distance, world = moment - self.world.now, self.world
        looks_up = len(world.lines) > THREAD_LINES and not world.agenda.covers(world.now)
        if distance > THREAD_SECONDS or (distance > 0 and looks_up):
            await anyio.to_thread.run_sync(run_world_to, world, moment)
        elif distance > 0:
            run_world_to(world, moment)
