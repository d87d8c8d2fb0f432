"""How this process reaches the payment processor: the one in the settings, or a simulated one in this process."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio

from clients.http import Outbound
from clients.outside_system import OutsideSystem
from clients.payments.client import PROCESSOR_LIMITS, ProcessorClient
from clients.payments.port import CHECKOUT_ORIGIN, Processor, ProcessorSettings
from registry.clock import Clock
from registry.ids import Ids
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.settings import Settings, comma_words
from transports.upstream import deliver_in_process, simulator_transport

if TYPE_CHECKING:  # the simulated processor is imported where there is one
    from simulators.processor.simulated_processor import SimulatedProcessor

SIMULATED_PROCESSOR_URL = "http://payments.sandbox.invalid"
SIMULATED_PROCESSOR_KEY = "sk_test_simulated_processor"
SIMULATED_PROCESSOR_CLIENT = "ca_simulated_processor"
PAYMENT_PAGES_PATH = "/sandbox/payments"
PAYMENTS_WEBHOOK_PATH = "/v1/operator-billing/payments-webhook"
PAYMENT_EVENT_SECONDS = 1.0
DEMO_PAYEE = "acct_1DemoTelecom0000"
"""The demo's account at the simulated processor of this process; no other processor has it."""


@dataclass(slots=True)
class PaymentConnection:
    processor: Processor
    sandbox: SimulatedProcessor | None
    system: OutsideSystem
    """Who waits for it, and whether it answers."""

    async def aclose(self) -> None:
        await self.processor.aclose()


def open_payments(settings: Settings, clock: Clock, ids: Ids, base_url: str, report: Callable[[str], None] = print) -> PaymentConnection:
    """Nothing is connected or simulated before the first call."""
    system = OutsideSystem("payment_processor", clock, most_waiting=settings.most_waiting)
    if settings.simulates_payments:
        drawn = ids.bytes(48)
        secret = "whsec_" + base64.urlsafe_b64encode(drawn[:24]).decode()
        from simulators.processor.simulated_processor import SimulatedProcessor  # only where it is simulated

        sandbox = SimulatedProcessor(
            wall=clock.now,
            pages_url=base_url + PAYMENT_PAGES_PATH,
            key=SIMULATED_PROCESSOR_KEY,
            client_id=SIMULATED_PROCESSOR_CLIENT,
            webhook_secret=secret,
            webhook_url="/".join(base_url.split("/")[:3])
            + PAYMENTS_WEBHOOK_PATH,  # it comes to us behind what takes a path off our address
            state_file=settings.data / "payments-sandbox.json" if settings.embedded else None,
            # The same ids a second time would name other accounts of another state; and nobody tries 192 bits, so that whoever knows one id
            # does not find the names of the pages, which are all that lets people in.
            seed=int.from_bytes(drawn[24:]),
            resident=DEMO_PAYEE,
            report=report,
        )
        return PaymentConnection(simulated_processor(sandbox, system), sandbox, system)
    outbound = Outbound(PROCESSOR_LIMITS, ca_file=settings.ca_file)
    return PaymentConnection(ProcessorClient(processor_settings(settings), outbound, system=system), None, system)


def processor_settings(settings: Settings) -> ProcessorSettings:
    return ProcessorSettings(
        key=settings.payments_key.get_secret_value(),
        webhook_secrets=comma_words(settings.payments_webhook_secret.get_secret_value()),
        client_id=settings.payments_client_id,
        url=settings.payments_url,
        connect_url=settings.payments_connect_url,
        # A processor at another address is a simulated one, which has its pages beside those for connecting.
        checkout_origin=address_origin(settings.payments_connect_url) if settings.payments_url else CHECKOUT_ORIGIN,
    )


def simulated_processor(sandbox: SimulatedProcessor, system: OutsideSystem | None = None) -> Processor:
    """The real client; its calls never leave the process, and what fails is asked again at once."""

    wire = ProcessorSettings(
        key=sandbox.key,
        webhook_secrets=(sandbox.webhook_secret,),
        client_id=sandbox.client_id,
        url=SIMULATED_PROCESSOR_URL,
        connect_url=sandbox.pages_url,
        checkout_origin=address_origin(sandbox.pages_url),
        pauses=(0.0, 0.0),
    )
    return ProcessorClient(wire, Outbound(PROCESSOR_LIMITS, transport=partial(simulator_transport, lambda: sandbox)), system=system)


def address_origin(address: str) -> str:
    return "/".join(address.split("/")[:3])


async def serve_payment_pages(sandbox: SimulatedProcessor, scope: Scope, receive: Receive, send: Send) -> None:
    """One request to its pages, which know nothing of what their address begins with."""
    await sandbox.pages({**scope, "path": cast(HttpScope, scope)["path"].removeprefix(PAYMENT_PAGES_PATH)}, receive, send)


async def deliver_payment_events(sandbox: SimulatedProcessor, app: App) -> None:
    """Hand what happened at the simulated processor to our own door, until cancelled."""
    while True:
        await anyio.sleep(PAYMENT_EVENT_SECONDS)
        if sandbox.begun:  # else no call yet: nothing has happened there
            await sandbox.deliver(partial(deliver_in_process, app))
