"""The way to the payment processor: the one in the settings, or a simulated one in this process."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clients.http import Outbound
from clients.payments.client import PROCESSOR_LIMITS, ProcessorClient, ProcessorSettings
from clients.payments.port import Processor
from registry.clock import Clock
from registry.ids import Ids
from transports.settings import Settings, words

if TYPE_CHECKING:  # the simulated processor and httpx are imported when it is first asked
    import httpx

    from clients.sandbox.payments.sandbox import PaymentsSandbox

SIMULATED = "http://payments.sandbox.invalid"
SIMULATED_KEY = "sk_test_simulated_processor"
SIMULATED_CLIENT = "ca_simulated_processor"
PAGES_PATH = "/sandbox/payments"
WEBHOOK_PATH = "/v1/operator-billing/payments-webhook"


@dataclass(slots=True)
class PaymentWay:
    """How this process reaches the payment processor."""

    processor: Processor
    sandbox: PaymentsSandbox | None

    async def aclose(self) -> None:
        """Close all connections."""
        await self.processor.aclose()


def open_payments(settings: Settings, clock: Clock, ids: Ids, base_url: str) -> PaymentWay:
    """Nothing is connected or simulated before the first call."""
    if settings.simulates_payments:
        secret = "whsec_" + base64.urlsafe_b64encode(ids.bytes(24)).decode()
        from clients.sandbox.payments.sandbox import PaymentsSandbox  # only where it is simulated

        sandbox = PaymentsSandbox(
            wall=clock.now,
            pages_url=base_url + PAGES_PATH,
            key=SIMULATED_KEY,
            webhook_secret=secret,
            webhook_url=base_url + WEBHOOK_PATH,
            state_file=settings.data / "payments-sandbox.json" if settings.embedded else None,
            seed=settings.sandbox_seed,
        )
        return PaymentWay(simulated_processor(sandbox), sandbox)
    wire = ProcessorSettings(
        key=settings.payments_key.get_secret_value(),
        webhook_secrets=words(settings.payments_webhook_secret.get_secret_value()),
        client_id=settings.payments_client_id,
        url=settings.payments_url,
        connect_url=settings.payments_connect_url,
    )
    return PaymentWay(ProcessorClient(wire, Outbound(PROCESSOR_LIMITS)), None)


def simulated_processor(sandbox: PaymentsSandbox) -> Processor:
    """The real client; its calls never leave the process."""

    def transport() -> httpx.AsyncBaseTransport:
        import httpx  # start-up budget

        return httpx.ASGITransport(app=sandbox.app, raise_app_exceptions=False)

    wire = ProcessorSettings(
        key=sandbox.key, webhook_secrets=(sandbox.webhook_secret,), client_id=SIMULATED_CLIENT, url=SIMULATED, connect_url=SIMULATED
    )
    return ProcessorClient(wire, Outbound(PROCESSOR_LIMITS, transport=transport))
