"""Buyers in the shop, each the program of `examples/`: they choose, pay at the simulated processor, and wait for their eSIM."""

import asyncio
import os
import random
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path

from tests.endurance.tally import Status, Tally

VISIT = Path(__file__).parents[2] / "examples" / "shop_visit.py"
STEPS = ("eSIM", "order", "payment", "choice", "shop")
"""How its lines begin, the last step first."""


class Buyers:
    """They come when they come. `authority`: the certificate that they trust, where the shop is reached over TLS."""

    def __init__(self, shop: str, tally: Tally, dice: random.Random, authority: Path | None = None) -> None:
        self._shop, self._tally, self._dice = shop, tally, dice
        self._environment = None if authority is None else {**os.environ, "SSL_CERT_FILE": str(authority)}
        self.served = 0
        """How many were shown their eSIM."""

    async def run(self, rate: float, stop: asyncio.Event) -> None:
        visits: set[asyncio.Task[None]] = set()
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._dice.expovariate(rate))
            visit = asyncio.ensure_future(self._visit())
            visits.add(visit)
            visit.add_done_callback(visits.discard)
        await asyncio.gather(*visits)

    async def _visit(self) -> None:
        """Where the processor fails the buyer is told so, and goes."""
        loop = asyncio.get_running_loop()
        began, command = loop.time(), (sys.executable, str(VISIT), self._shop, "--keep")
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=self._environment)
        told, _ = await process.communicate()
        self._tally.seconds["shop visit"].append(loop.time() - began)
        served = process.returncode == 0
        self.served += served
        self._tally.statuses[Status("shop visit", 200 if served else 502, "" if served else f"after {reached(told.decode())}")] += 1


def reached(told: str) -> str:
    """The last step that it tells of."""
    return next((step for step in STEPS if f"\n{step}:" in f"\n{told}"), "nothing")
