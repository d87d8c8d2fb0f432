"""What stands around one world: its faults, its pace, and what was said to it and by it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio.to_thread

from clients.sandbox.ocs import life
from clients.sandbox.ocs.faults import Faults
from clients.sandbox.ocs.pace import Pace
from clients.sandbox.ocs.state import Push, World

KEPT = 10_000
LONG_WAY = 3_600
"""From so many seconds on the world's life is run in a thread, so that the loop goes on."""
MANY_LINES = 2_000
"""More of them have their half day looked up in a thread."""


class Answer(NamedTuple):
    """One answer of the network or of its control API."""

    status: int
    body: bytes
    media_type: str = "application/json"


class Call(NamedTuple):
    """One call of the wire; tokens are not kept."""

    number: int
    at: int
    method: str
    version: str
    payload: object
    code: int
    faults: list[str]


class Delivery(NamedTuple):
    """One notification and how it was taken; status 0: nobody answered."""

    at: int
    url: str
    status: int
    body: dict[str, object]


def kept_calls() -> deque[Call]:
    """The newest calls."""
    return deque(maxlen=KEPT)


def kept_deliveries() -> deque[Delivery]:
    """The newest deliveries."""
    return deque(maxlen=KEPT)


@dataclass(slots=True)
class Desk:
    """A world and its surroundings."""

    world: World
    faults: Faults
    pace: Pace
    calls: deque[Call] = field(default_factory=kept_calls)
    deliveries: deque[Delivery] = field(default_factory=kept_deliveries)
    underway: deque[Push] = field(default_factory=deque[Push])
    """Notifications that were taken from the world and have not been answered."""
    answered: int = 0

    def note(self, make: Callable[[int, int], Call]) -> None:
        """Log a call under the next number."""
        self.answered += 1
        self.calls.append(make(self.answered, self.world.now))

    async def catch_up(self) -> None:
        """Let the world live until where its pace wants it."""
        await self.run_to(self.pace.target(self.world.now))

    async def run_to(self, moment: int) -> None:
        """Let the world live until a moment."""
        way, world = moment - self.world.now, self.world
        looks_up = len(world.lines) > MANY_LINES and not world.agenda.covers(world.now)
        if way > LONG_WAY or (way > 0 and looks_up):
            await anyio.to_thread.run_sync(life.run_to, world, moment)
        elif way > 0:
            life.run_to(world, moment)
