"""Receivers of webhooks in virtual time: they refuse, fall silent, answer wrongly, or take an event without our learning of it."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import orjson

from clients.webhooks.sender import DeliveryAttempt, WebhookSender
from registry.clock import Clock
from tests.simulation.process import Process
from tests.simulation.road import OUTSIDE
from tests.simulation.store import wake

TOTAL_SECONDS = 15.0
FAULTS = ("refused", "timeout", "status:500", "status:410", "slow", "ack_lost")
WEIGHTS = (4, 4, 6, 1, 4, 4)


class Receipt(NamedTuple):
    """A POST that reached its receiver, and whether the receiver took it."""

    at: float
    url: str
    event: str
    taken: bool


class Receivers:
    """All receivers of the outside world."""

    def __init__(self, rng: Random, rate: float) -> None:
        self.rng, self.rate = rng, rate
        self.receipts: list[Receipt] = []
        self.forged: list[str] = []
        self.gone: set[str] = set()

    def fault(self, url: str) -> str | None:
        """How this POST goes wrong; a receiver that has said that it is gone stays gone."""
        if url in self.gone:
            return "status:410"
        if self.rng.random() >= self.rate:
            return None
        return self.rng.choices(FAULTS, WEIGHTS)[0]

    def take(self, at: float, url: str, body: bytes, headers: Mapping[str, str], fault: str | None) -> None:
        event = orjson.loads(body)["id"]
        if headers.get("webhook-id") != event or not headers.get("webhook-signature", "").startswith("v1,"):
            self.forged.append(event)
        if fault == "status:410":
            self.gone.add(url)
        self.receipts.append(Receipt(at, url, event, fault in (None, "slow", "ack_lost")))


class SimSender(WebhookSender):
    """A replica's way to them."""

    def __init__(self, loop: AbstractEventLoop, clock: Clock, process: Process, receivers: Receivers) -> None:
        super().__init__(clock)
        self._loop, self._process, self._receivers = loop, process, receivers

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False) -> DeliveryAttempt:
        """One attempt; what arrived has arrived, even when we die meanwhile. All receivers here are public."""
        del private
        self._process.check()
        receivers, draw = self._receivers, self._receivers.rng.random
        fault = receivers.fault(url)
        if fault == "refused":
            return DeliveryAttempt("refused", None, 1)
        await self._pause(draw() * 0.2)
        silent = fault == "timeout" and draw() < 0.5
        if not silent:
            receivers.take(self._loop.time(), url, body, headers, fault)
        seconds = TOTAL_SECONDS if fault in ("timeout", "ack_lost") else draw() * (14.0 if fault == "slow" else 0.2)
        await self._pause(seconds)
        milliseconds = round(seconds * 1000)
        if fault in ("timeout", "ack_lost"):
            return DeliveryAttempt("timeout", None, milliseconds)
        if fault is not None and fault.startswith("status:"):
            status = int(fault[7:])
            return DeliveryAttempt(fault, status, milliseconds, gone=status == 410)
        return DeliveryAttempt("ok", 200, milliseconds)

    async def _pause(self, seconds: float) -> None:
        turn: Future[None] = self._loop.create_future()
        self._loop.call_later(seconds, wake, turn, context=OUTSIDE)
        await turn
        self._process.check()
