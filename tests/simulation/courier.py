"""The payment processor's words on their way to the service: at once, late, twice, in any order, or never; again until they are taken."""

from asyncio import AbstractEventLoop, Task
from collections.abc import Sequence
from random import Random

import orjson

from simulators.processor.webhooks import SIGNATURE_HEADER, WEBHOOK_BACKOFF_SECONDS
from tests.simulation.agenda import Agenda
from tests.simulation.machines import SimulatedMachines
from tests.simulation.payments import signed_event
from tests.simulation.process import Gone
from tests.world import NOON

LATEST_SECONDS, SOON_SECONDS, SECOND_SECONDS = 7200.0, 3.0, 1800.0
MOST_POSTS = 5
TWICE = 0.2


class Courier:
    """All posts of an episode. `refused` are words that the service could not read."""

    def __init__(self, loop: AbstractEventLoop, rng: Random, agenda: Agenda, machines: SimulatedMachines, rate: float) -> None:
        """`rate`: how many words are late, and half as many never come by themselves."""
        self._loop, self._rng, self._agenda, self._machines, self._rate = loop, rng, agenda, machines, rate
        self._tasks: dict[int, Task[None]] = {}
        self._posts = 0
        self.bodies: list[bytes] = []
        self.refused: list[str] = []
        self.counts = {"late word": 0, "lost word": 0, "second word": 0}

    def announce(self, type: str, account: str, about: dict[str, object]) -> None:
        """Something has happened at the processor."""
        told = {
            "id": f"evt_{len(self.bodies)}",
            "object": "event",
            "type": type,
            "account": account,
            "created": int(NOON + self._loop.time()),
            "livemode": False,
            "data": {"object": about},
        }
        self.bodies.append(body := orjson.dumps(told))
        draw = self._rng.random
        fate = draw()
        if fate < self._rate / 2:
            self.counts["lost word"] += 1
            return
        late = fate < self._rate * 1.5
        self.counts["late word"] += late
        self._plan(body, draw() ** 2 * LATEST_SECONDS if late else draw() * SOON_SECONDS)
        if draw() < TWICE:
            self.counts["second word"] += 1
            self._plan(body, draw() ** 2 * SECOND_SECONDS)

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    def again(self) -> None:
        """Every word that there ever was is posted once more, those that were lost as well, in any order."""
        for body in self.bodies:
            self._plan(body, self._rng.random() * SOON_SECONDS)

    def end(self) -> None:
        tasks: Sequence[Task[None]] = list(self._tasks.values())
        for task in tasks:
            task.cancel()

    def _plan(self, body: bytes, delay: float, posts: int = 0) -> None:
        self._agenda.plan(delay, lambda: self._start(body, posts))

    def _start(self, body: bytes, posts: int) -> None:
        self._posts += 1
        self._tasks[self._posts] = self._loop.create_task(self._post(self._posts, body, posts))

    async def _post(self, number: int, body: bytes, posts: int) -> None:
        """One post; what was not taken is posted again."""
        try:
            replica = await self._machines.any()
            status = await replica.hear(body, {SIGNATURE_HEADER: signed_event(body, int(NOON + self._loop.time()))})
        except Gone:
            status = 0
        finally:
            del self._tasks[number]
        if status == 400:
            self.refused.append(f"an event was refused: {body.decode()}")
        if not 200 <= status < 300 and posts + 1 < MOST_POSTS:
            self._plan(body, float(WEBHOOK_BACKOFF_SECONDS[posts]), posts + 1)
