"""The payment processor over its vendor's own library, and its webhooks: whether the processor signed them, and what happened."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import anyio

from clients.http import Outbound, OutboundLimits
from clients.outside_system import OutsideSystem
from clients.payments.accounts import AccountCalls
from clients.payments.fields import (
    ProcessorJson,
    UnreadableRecord,
    inner_object,
    json_object,
    read_member,
    read_record,
    read_text,
    required,
)
from clients.payments.invoices import InvoiceCalls
from clients.payments.link import ProcessorLink, load_vendor
from clients.payments.money import FraudCalls, MoneyCalls
from clients.payments.port import BadProcessorEvent, ProcessorSettings
from clients.payments.records import (
    ApplicationFee,
    Charge,
    CheckoutSession,
    ConnectedAccount,
    Dispute,
    EventRecord,
    Payout,
    ProcessorEvent,
    ProcessorInvoice,
    Refund,
    Review,
)
from clients.payments.selling import SellingCalls

EVENT_TOLERANCE = 300
"""Seconds that a signature's time may be away from ours, before or after."""
EVENT_SIGNATURE_LIMIT = 4096
EVENTS_WITHOUT_RECORD = ("invoice.upcoming",)
"""About an invoice that does not exist yet, so it has no id."""
RECORD_KINDS: Mapping[str, type[EventRecord]] = {
    "account": ConnectedAccount,
    "application_fee": ApplicationFee,
    "charge": Charge,
    "checkout.session": CheckoutSession,
    "dispute": Dispute,
    "invoice": ProcessorInvoice,
    "payout": Payout,
    "refund": Refund,
    "review": Review,
}
"""By the object's own word for what it is: a type such as charge.dispute.created is about a dispute."""


def read_event(body: bytes, signature: str, now: float, secrets: tuple[str, ...]) -> ProcessorEvent:
    """The event in a webhook's raw `body` that one of the `secrets` signed; else BadProcessorEvent. `now`: Unix seconds."""
    check_event_time(signature, now)
    check_event_signature(body, signature, secrets)
    try:
        return parse_event(json_object(json.loads(body), "the event"))
    except (ValueError, RecursionError):  # of json
        reason = "the body is not JSON"
    except UnreadableRecord as why:
        reason = f"the event is unreadable: {why}"
    raise BadProcessorEvent(reason, signed=True)  # outside the handler: a decoder's error holds the body


def check_event_time(signature: str, now: float) -> None:
    """Raises BadProcessorEvent unless the signature's time is near `now`. The library checks by its own clock and accepts the future."""
    if not signature or len(signature) > EVENT_SIGNATURE_LIMIT or not signature.isascii():
        raise BadProcessorEvent("there is no signature that can be one")
    times = [part[2:] for part in signature.split(",") if part.startswith("t=")]
    if len(times) != 1 or not times[0].isdigit() or len(times[0]) > 15:
        raise BadProcessorEvent("the signature has no time")
    away = now - int(times[0])
    if abs(away) > EVENT_TOLERANCE:
        raise BadProcessorEvent(
            f"its time is {abs(away):.0f} s {'behind' if away > 0 else 'ahead of'} this service's clock, more than {EVENT_TOLERANCE} s"
        )


def check_event_signature(body: bytes, signature: str, secrets: tuple[str, ...]) -> None:
    vendor = load_vendor()
    if not any(vendor.is_signed_by(body, signature, secret) for secret in secrets):
        raise BadProcessorEvent("it is signed by none of the webhook secrets")


def parse_event(found: ProcessorJson) -> ProcessorEvent:
    """What happened, and the object it is about as that was at the moment."""
    kind = read_member(found, "type", required(read_text))
    about = inner_object(inner_object(found, "data"), "object")
    record = None if kind in EVENTS_WITHOUT_RECORD else RECORD_KINDS.get(read_member(about, "object", read_text) or "")
    event = read_record(ProcessorEvent, found)
    return event if record is None else replace(event, record=read_record(record, about))


PROCESSOR_LIMITS = OutboundLimits(connections=50, total_seconds=20.0)


class ProcessorClient(AccountCalls, MoneyCalls, FraudCalls, InvoiceCalls, SellingCalls):
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
        return "_live_" in self._link.settings.key[:8]

    @property
    def checkout_origin(self) -> str:
        return self._link.settings.checkout_origin

    async def aclose(self) -> None:
        await self._link.aclose()

    async def read_event(self, body: bytes, signature: str, now: float) -> ProcessorEvent:
        await self._link.load()
        return read_event(body, signature, now, self._link.settings.webhook_secrets)
