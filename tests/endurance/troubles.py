"""What goes wrong outside while the service works: the network's and the processor's faults, drawn from the seed."""

import asyncio
import random

import httpx

from tests.harness.network_process import NetworkProcess
from tests.network_facts import DRAW

LINE, LINES = "getSingleSubscriber", "listSubscriber"
OF_NETWORK = (
    {"method": DRAW, "delay": 1.5},
    {"method": DRAW, "drop_after": True},
    {"method": DRAW, "drop_before": True},
    {"method": DRAW, "code": 100},
    {"method": DRAW, "code": 14},
    {"method": DRAW, "status": 500, "commit": True},
    {"method": DRAW, "malformed": True},
    {"method": LINE, "delay": 1.0, "times": 3},
    {"method": LINE, "status": 500, "times": 2},
    {"method": LINE, "drop_before": True, "times": 3},
    {"method": LINE, "drop_after": True},
    {"method": LINES, "malformed": True},
    {"method": LINES, "delay": 0.7},
)
HANGS = {"method": DRAW, "delay": 22.0}
"""Longer than the service waits."""
OF_PROCESSOR = (
    {"trouble": "timeout", "path": "*checkout/sessions*"},
    {"trouble": "closed", "path": "*checkout/sessions*", "after": True},
    {"trouble": "error", "path": "*checkout/sessions*"},
    {"trouble": "rate_limited", "path": "*"},
    {"trouble": "garbage", "path": "*checkout/sessions*"},
)


class Troubles:
    """One fault every few seconds, and how many there were."""

    def __init__(self, network: NetworkProcess, processor: httpx.AsyncClient, dice: random.Random) -> None:
        self._network, self._processor, self._dice = network, processor, dice
        self.made = 0

    async def run(self, every: float, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(self._dice.expovariate(1 / every))
            await self._one()
        await self._network.heal()
        await self._processor.delete("/control/faults")

    async def _one(self) -> None:
        choice = self._dice.random()
        self.made += 1
        if choice < 0.15:
            await self._processor.post("/control/faults", json=self._dice.choice(OF_PROCESSOR))
        elif choice < 0.17:
            await self._network.meet(**HANGS)
        else:
            await self._network.meet(**self._dice.choice(OF_NETWORK))
