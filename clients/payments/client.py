"""The payment processor over its vendor's own library, with our one outbound seam beneath it."""

from collections.abc import Awaitable, Callable

import anyio

from clients.http import Outbound, OutboundLimits
from clients.outside_system import OutsideSystem
from clients.payments.accounts import AccountCalls
from clients.payments.events import read_event
from clients.payments.fraud import FraudCalls
from clients.payments.invoices import InvoiceCalls
from clients.payments.link import ProcessorLink
from clients.payments.money import MoneyCalls
from clients.payments.records import Event
from clients.payments.selling import SellingCalls
from clients.payments.settings import ProcessorSettings

PROCESSOR_LIMITS = OutboundLimits(connections=50, total_seconds=20.0)


class ProcessorClient(AccountCalls, MoneyCalls, FraudCalls, InvoiceCalls, SellingCalls):
    """A processor, opened on its first call."""

    def __init__(
        self,
        settings: ProcessorSettings,
        outbound: Outbound,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        system: OutsideSystem | None = None,
    ) -> None:
        """`sleep` waits between two tries; `system` counts who waits for it, and whether it answers."""
        super().__init__(ProcessorLink(settings, outbound, sleep, system))

    def __repr__(self) -> str:
        return f"ProcessorClient(live={self.live})"

    @property
    def live(self) -> bool:
        """Real money moves."""
        return "_live_" in self._link.settings.key[:8]

    @property
    def checkout_origin(self) -> str:
        """Where its checkout pages are."""
        return self._link.settings.checkout_origin

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.aclose()

    def read_event(self, body: bytes, signature: str, now: float) -> Event:
        """The event in a webhook's raw body."""
        return read_event(body, signature, now, self._link.settings.webhook_secrets)
