"""eSIMs from stock, some of them given back: the stage's three tenants, through the callers of the kill suite."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx

from registry.errors import ProviderError
from tests.endurance.people import SHOP_TEMPLATE
from tests.endurance.tally import Status, Tally
from tests.harness.tenant_stage import TenantStage
from tests.kill.errands import Callers, KilledErrand, intent_errand, inventory_errand
from tests.network_facts import DRAW

LOOKS_EVERY = 15.0
"""Seconds: before anything is given back it is looked up at the network, since nothing can be seen of it afterwards."""
READS_EVERY = 2.0
"""Seconds: while the lines of a fleet are read for the first time, the network's log holds the calls of some ten."""
KEPT = 0.3
"""The share that is not given back."""


class Draws:
    """One new eSIM now and then, old keys again, and roll-backs."""

    def __init__(
        self, stage: TenantStage, doors: Sequence[httpx.AsyncClient], tally: Tally, dice: random.Random, intents_every: int
    ) -> None:
        self._stage, self._doors, self.tally, self._dice = stage, doors, tally, dice
        self._intents_every = intents_every
        self.callers = Callers(stage.network)
        self.errands: list[KilledErrand] = []
        self._begun = 0
        self.sold: dict[int, Mapping[str, Any]] = {}
        """What the shop's orders drew, by number in the network's log."""

    async def run(self, rate: float, stop: asyncio.Event) -> None:
        under_way: set[asyncio.Task[None]] = set()
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._dice.expovariate(rate))
            task = asyncio.ensure_future(self._one())
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)

    async def watch(self, stop: asyncio.Event) -> None:
        """Look again and again, however long anything else takes: the network forgets its oldest calls."""
        await asyncio.gather(again_and_again(self.look, LOOKS_EVERY, stop), again_and_again(self._read, READS_EVERY, stop))

    async def give_back(self, stop: asyncio.Event) -> None:
        """Most of what was drawn, so that the stock lasts."""
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOKS_EVERY)
            for errand in self.errands:
                if stop.is_set():
                    return
                if errand.decided == "ok" and not errand.given_back and self._seen(errand) and self._dice.random() > KEPT:
                    await self._count("DELETE issuance", self.callers.roll_back(self._door(), errand))

    def _seen(self, errand: KilledErrand) -> bool:
        """Whether somebody has looked at what this very errand drew: its SIM may have been another's before."""
        return any(given.iccid == errand.iccid for given in self._stage.network.given[errand.asks])

    async def look(self) -> None:
        """What reached the network, without the draws of the shop, whose errands are none of these."""
        await self._stage.network.look()
        self._put_sales_apart()

    async def _read(self) -> None:
        await self._stage.network.read_log()
        self._put_sales_apart()

    def _put_sales_apart(self) -> None:
        network = self._stage.network
        for number, call in list(network.log.items()):
            if call["method"] == DRAW and of_shop(call["payload"]):
                self.sold[number] = network.log.pop(number)

    async def _one(self) -> None:
        dice, stage = self._dice, self._stage
        if self.errands and dice.random() < 0.15:
            await self._count("POST issuance", self.callers.issue(self._door(), dice.choice(self.errands[-40:])))
            return
        tenant = stage.tenants[min(int(dice.random() * 9) // 4, 2)]
        self._begun += 1
        key, errand = f"draw-{self._begun}", None
        if self._begun % self._intents_every == 0:
            with suppress(AssertionError, httpx.TransportError):  # no product, for the server was full or did not say: then from stock
                errand = await intent_errand(self._door(), stage.network, tenant, key)
        errand = errand or inventory_errand(stage.network, tenant, key)
        self.errands.append(errand)
        times = 2 if dice.random() < 0.2 else 1
        await asyncio.gather(*(self._count("POST issuance", self.callers.issue(self._door(), errand)) for _ in range(times)))

    def _door(self) -> httpx.AsyncClient:
        return self._doors[self._dice.randrange(len(self._doors))]

    async def _count(self, kind: str, call: Awaitable[httpx.Response | None]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            said = await call
        except AssertionError as wrong:  # the callers' judgement of an answer
            self.tally.break_(f"{kind}: {wrong}")
            return
        status = 0 if said is None else said.status_code
        code = said.json().get("code", "") if said is not None and status >= 400 else ""
        self.tally.statuses[Status(kind, status, code)] += 1
        self.tally.seconds[kind].append(loop.time() - began)


async def again_and_again(work: Callable[[], Awaitable[None]], seconds: float, stop: asyncio.Event) -> None:
    """`work`, and a rest of so many seconds before each time, until `stop`."""
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
        with suppress(ProviderError):  # a fault that was meant for the service; the next time sees it all
            await work()


def of_shop(payload: Mapping[str, Any]) -> bool:
    """Whether a draw is for an order: of the shop's template, for as long as that lasts."""
    return payload.get("packageTemplateId") == SHOP_TEMPLATE and payload.get("validityPeriod") is None
