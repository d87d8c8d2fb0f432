"""The vendor's library over our one outbound seam. Imported with it, on the first call."""

from collections.abc import Mapping
from typing import cast

from clients.failure import FailureKind, OutboundFailed
from clients.http import MEBIBYTE, Outbound
from clients.payments.settings import API_VERSION, ProcessorSettings
from clients.payments.vendor import stripe

LONGEST_ANSWER = 8 * MEBIBYTE
"""A page of a hundred charges with everything that belongs to them."""
SENT = ("authorization", "content-type", "idempotency-key", "stripe-account", "stripe-version")
HEEDED = ("request-id", "retry-after", "stripe-should-retry")


class Transport(stripe.HTTPClient):
    """One call's way out. It repeats nothing: whoever makes the call knows whether it may be."""

    name = "connectivity-reseller"

    def __init__(self, outbound: Outbound) -> None:
        cast("object", super()).__init__()  # which the library leaves half without types
        self._outbound = outbound
        self.failed: FailureKind | None = None
        """Why no answer came."""

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: object = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """One request; of the answer's headers the library sees those that it needs, and so prints no notices."""
        content = post_data.encode() if isinstance(post_data, str) else b""
        try:
            reply = await self._outbound.exchange(method.upper(), url, headers=needed(headers), content=content, keep=LONGEST_ANSWER)
        except OutboundFailed as failed:
            self.failed = failed.kind
        else:
            heeded = {name: reply.headers[name] for name in HEEDED if name in reply.headers}
            return b"" if reply.truncated else reply.body, reply.status, heeded
        raise stripe.APIConnectionError("The payment processor gave no answer.")

    async def close_async(self) -> None:
        """The connections are not its own."""


def needed(headers: Mapping[str, str]) -> dict[str, str]:
    """Not what the library tells about this machine and whatever runs on it."""
    kept = {name: value for name, value in headers.items() if name.lower() in SENT}
    return {**kept, "User-Agent": f"Stripe/v1 PythonBindings/{stripe.VERSION} connectivity-reseller"}


def opened(settings: ProcessorSettings, transport: Transport) -> stripe.StripeClient:
    """The library's client for one call: 40 microseconds, and no state that two calls could share."""
    url, connect = settings.url.rstrip("/"), settings.connect_url.rstrip("/")
    return stripe.StripeClient(
        settings.key,
        stripe_version=API_VERSION,
        base_addresses={
            "api": url or stripe.DEFAULT_API_BASE,
            "files": url or stripe.DEFAULT_UPLOAD_API_BASE,
            "meter_events": url or stripe.DEFAULT_METER_EVENTS_API_BASE,
            "connect": connect or stripe.DEFAULT_CONNECT_API_BASE,
        },
        max_network_retries=0,
        http_client=transport,
    )
