"""The way from a replica to the payment processor, with its faults, in virtual time, and the processor's words on their way back."""

import hashlib
import hmac
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeVar

import orjson

from clients.http import Outbound
from clients.payments.client import ProcessorClient, check_event_time, parse_event
from clients.payments.fields import json_object
from clients.payments.port import BadProcessorEvent, ProcessorSettings
from clients.payments.records import Charge, CheckoutSession, NewCheckout, ProcessorEvent, ProcessorPage, Refund
from registry.errors import PaymentsError, Refusal
from tests.simulation.crash_points import CrashPoints
from tests.simulation.process import Process
from tests.simulation.processor import Processor
from tests.simulation.road import OUTSIDE

T = TypeVar("T")
SECRET = "whsec_simulated"
PaymentFault = Literal["unreached", "crowded", "broken_before", "broken_after", "late_effect", "late_reply", "detached"]
PAYMENT_FAULTS: Mapping[PaymentFault, int] = {
    "unreached": 3,
    "crowded": 2,
    "broken_before": 3,
    "broken_after": 5,
    "late_effect": 2,
    "late_reply": 3,
    "detached": 1,
}
NEVER_THERE = frozenset({"unreached", "crowded", "broken_before", "detached"})
# The client gives a call twenty seconds; the processor may do it after that, but not much later.
PATIENCE, LATEST = 20.0, 120.0


class PaymentFaults:
    def __init__(self, rng: Random, rate: float) -> None:
        self.rng, self.rate = rng, rate
        self.counts: dict[str, int] = {}

    def draw(self, *, write: bool) -> PaymentFault | None:
        """The fault of the next call; reads fail more rarely."""
        if self.rng.random() >= (self.rate if write else self.rate / 2):
            return None
        kinds: list[PaymentFault] = [*PAYMENT_FAULTS]
        fault = self.rng.choices(kinds, [*PAYMENT_FAULTS.values()])[0]
        self.counts[fault] = self.counts.get(fault, 0) + 1
        return fault


def failure(fault: PaymentFault, *, write: bool) -> PaymentsError:
    """What the client says of it."""
    if fault in ("unreached", "crowded", "detached"):
        return PaymentsError(f"the processor was not reached: {fault}", before_execution=True)
    return PaymentsError(f"the processor did not answer: {fault}", outcome_unknown=write, code="OUTCOME_UNKNOWN" if write else None)


@dataclass(frozen=True, slots=True)
class Payments:
    """The processor and its faults, as the replicas of an episode share them."""

    processor: Processor
    faults: PaymentFaults

    def client(self, loop: AbstractEventLoop, process: Process, points: CrashPoints) -> "SimProcessor":
        return SimProcessor(loop, self.processor, process, self.faults, points)


class SimProcessor(ProcessorClient):
    """One replica's client, at the level of the port; whatever an episode has no need of goes nowhere."""

    def __init__(self, loop: AbstractEventLoop, processor: Processor, process: Process, faults: PaymentFaults, points: CrashPoints) -> None:
        super().__init__(ProcessorSettings(key="", webhook_secrets=()), Outbound())
        self._loop, self._processor, self._process, self._faults, self._points = loop, processor, process, faults, points

    @property
    def checkout_origin(self) -> str:
        return "https://pay.sim.invalid"

    async def create_checkout(self, account: str, checkout: NewCheckout) -> CheckoutSession:
        return await self._ask(lambda: self._processor.create_checkout(account, checkout), write=True)

    async def find_checkout(self, account: str, session: str) -> CheckoutSession:
        return await self._ask(lambda: self._processor.find_checkout(account, session))

    async def expire_checkout(self, account: str, session: str) -> CheckoutSession:
        return await self._ask(lambda: self._processor.expire_checkout(account, session), write=True)

    async def find_charge(self, account: str, charge: str) -> Charge:
        return await self._ask(lambda: self._processor.find_charge(account, charge))

    async def list_charges(
        self, account: str, *, limit: int, starting_after: str | None = None, payment_intent: str | None = None
    ) -> ProcessorPage[Charge]:
        del limit, starting_after  # an episode has no second page
        return ProcessorPage(await self._ask(lambda: self._processor.list_charges(account, payment_intent)), has_more=False)

    async def list_refunds(
        self, account: str, *, limit: int, starting_after: str | None = None, charge: str | None = None
    ) -> ProcessorPage[Refund]:
        del limit, starting_after
        return ProcessorPage(await self._ask(lambda: self._processor.list_refunds(account, charge)), has_more=False)

    async def refund(self, account: str, *, charge: str, amount: int, reason: str | None, key: str, metadata: Mapping[str, str]) -> Refund:
        do = self._processor.refund
        return await self._ask(lambda: do(account, charge=charge, amount=amount, reason=reason, key=key, metadata=metadata), write=True)

    async def read_event(self, body: bytes, signature: str, now: float) -> ProcessorEvent:
        """As the client reads it, but for the vendor's library, which takes a second to import."""
        check_event_time(signature, now)
        if signature != signed_event(body, int(signature[2 : signature.index(",")])):
            raise BadProcessorEvent("it is signed by none of the webhook secrets")
        return parse_event(json_object(orjson.loads(body), "the event"))

    async def _ask(self, do: Callable[[], T], *, write: bool = False) -> T:
        """One call: it arrives after a while, its answer after another, unless a fault says otherwise."""
        self._process.check()
        if write:
            self._points.reach("before_send", self._process)
        fault, draw = self._faults.draw(write=write), self._faults.rng.random
        answer: Future[T] = self._loop.create_future()
        if fault is None or fault not in NEVER_THERE:
            delay = draw() * 0.2 if fault != "late_effect" else PATIENCE + draw() * (LATEST - PATIENCE)
            self._loop.call_later(delay, self._arrive, answer, do, fault, context=OUTSIDE)
        if fault is not None and fault != "late_reply":
            delay = PATIENCE if fault == "late_effect" else 0.3 + draw()
            self._loop.call_later(delay, self._fail, answer, failure(fault, write=write), context=OUTSIDE)
        if write:
            self._points.reach("after_send", self._process)
        value = await answer
        self._process.check()
        if write:
            self._points.reach("after_reply", self._process)
        return value

    def _arrive(self, answer: Future[T], do: Callable[[], T], fault: PaymentFault | None) -> None:
        try:
            value = do()
        except Refusal as refusal:
            if fault in (None, "late_reply"):
                self._fail(answer, refusal)
            return
        if fault in (None, "late_reply"):
            delay = self._faults.rng.random() * (0.2 if fault is None else PATIENCE - 1)
            self._loop.call_later(delay, self._give, answer, value, context=OUTSIDE)

    def _give(self, answer: Future[T], value: T) -> None:
        """It is told, unless whoever asked has gone."""
        if self._process.alive and not answer.done():
            answer.set_result(value)

    def _fail(self, answer: Future[T], error: Refusal) -> None:
        if self._process.alive and not answer.done():
            answer.set_exception(error)


def signed_event(body: bytes, moment: int) -> str:
    return f"t={moment},v1={hmac.new(SECRET.encode(), b'%d.%b' % (moment, body), hashlib.sha256).hexdigest()}"
