"""The vendor's library: quiet, over our one outbound seam, and its check of signatures.

It is slow to import, so this file is imported when the processor is first asked, or tells of its first event.
"""

import logging
import os
from collections.abc import Mapping
from contextlib import redirect_stderr
from io import StringIO
from typing import Protocol, cast

from clients.http import MEBIBYTE, FailureKind, Outbound, OutboundFailed
from clients.payments.port import PROCESSOR_API_VERSION, ProcessorSettings

os.environ.pop("STRIPE_LOG", None)  # a variable that would print every body, secrets included, to stderr
with redirect_stderr(StringIO()):  # in some environments the import writes a line of its own there
    import stripe

stripe.enable_telemetry = False  # otherwise it keeps a file about this machine and tells its name
LIBRARY_LOG = logging.getLogger("stripe")
LIBRARY_LOG.setLevel(logging.WARNING)
LIBRARY_LOG.addFilter(lambda record: record.levelno >= logging.WARNING)  # below that it logs addresses and bodies


ANSWERS = (stripe.checkout.Session, stripe.Charge, stripe.PaymentIntent, stripe.Refund)
"""Classes of answers. The library imports each when it is first named, which takes 0.1 s: here, and not in the loop when one comes."""
PROCESSOR_ANSWER_LIMIT = 8 * MEBIBYTE
"""A page of a hundred charges with everything that belongs to them."""
PROCESSOR_REQUEST_HEADERS = ("authorization", "content-type", "idempotency-key", "stripe-account", "stripe-version")
PROCESSOR_RESPONSE_HEADERS = ("request-id", "retry-after", "stripe-should-retry")


class OutboundTransport(stripe.HTTPClient):
    """Sends one call of the library through our outbound seam, once: the link knows whether a call may be repeated."""

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
            reply = await self._outbound.exchange(
                method.upper(), url, headers=needed_headers(headers), content=content, keep=PROCESSOR_ANSWER_LIMIT
            )
        except OutboundFailed as failed:
            self.failed = failed.kind
        else:
            heeded = {name: reply.headers[name] for name in PROCESSOR_RESPONSE_HEADERS if name in reply.headers}
            return b"" if reply.truncated else reply.body, reply.status, heeded
        raise stripe.APIConnectionError("The payment processor gave no answer.")

    async def close_async(self) -> None:
        """The connections are not its own."""


def needed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Without what the library says of this machine and of the programs on it."""
    kept = {name: value for name, value in headers.items() if name.lower() in PROCESSOR_REQUEST_HEADERS}
    return {**kept, "User-Agent": f"Stripe/v1 PythonBindings/{stripe.VERSION} connectivity-reseller"}


def open_library(settings: ProcessorSettings, transport: OutboundTransport) -> stripe.StripeClient:
    """The library's client for one call: 40 microseconds, and no state that two calls could share."""
    url, connect = settings.url.rstrip("/"), settings.connect_url.rstrip("/")
    return stripe.StripeClient(
        settings.key,
        stripe_version=PROCESSOR_API_VERSION,
        base_addresses={
            "api": url or stripe.DEFAULT_API_BASE,
            "files": url or stripe.DEFAULT_UPLOAD_API_BASE,
            "meter_events": url or stripe.DEFAULT_METER_EVENTS_API_BASE,
            "connect": connect or stripe.DEFAULT_CONNECT_API_BASE,
        },
        max_network_retries=0,
        http_client=transport,
    )


class SignatureVerifier(Protocol):
    """The one of the library's methods that is needed, which it leaves without a type."""

    def verify_header(self, payload: bytes, header: str, secret: str) -> bool:
        """True, or an error."""
        ...


SIGNATURE_VERIFIER = cast("SignatureVerifier", stripe.WebhookSignature)


def is_signed_by(body: bytes, signature: str, secret: str) -> bool:
    """Whether one of the signatures is this secret's over these bytes. The time is looked at elsewhere."""
    try:
        return SIGNATURE_VERIFIER.verify_header(body, signature, secret)
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        return False
