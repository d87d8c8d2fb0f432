"""Webhooks: whether they are the processor's, and what they tell."""

import json
from collections.abc import Callable, Mapping

from clients.payments.fields import Json, Unreadable, count, id_of, id_or_none, inner, is_so, mapping, text, text_or_none
from clients.payments.port import BadEvent
from clients.payments.records import Event, Record
from clients.payments.wire.account import account_of
from clients.payments.wire.charge import charge_of
from clients.payments.wire.checkout import checkout_of
from clients.payments.wire.dispute import dispute_of
from clients.payments.wire.fee import fee_of
from clients.payments.wire.invoice import invoice_of
from clients.payments.wire.payout import payout_of
from clients.payments.wire.refund import refund_of
from clients.payments.wire.review import review_of

TOLERANCE = 300
"""Seconds that a signature's time may be away from ours, before or after."""
LONGEST_SIGNATURE = 4096
NO_RECORD = ("invoice.upcoming",)
"""Told of an invoice that does not exist yet, so it has no id."""
RECORDS: Mapping[str, Callable[[Json], Record]] = {
    "account": account_of,
    "application_fee": fee_of,
    "charge": charge_of,
    "checkout.session": checkout_of,
    "dispute": dispute_of,
    "invoice": invoice_of,
    "payout": payout_of,
    "refund": refund_of,
    "review": review_of,
}
"""By the object's own word for what it is: a type such as charge.dispute.created is about a dispute."""


def read_event(body: bytes, signature: str, now: float, secrets: tuple[str, ...]) -> Event:
    """The event in a body that one of the secrets signed, or BadEvent."""
    check_time(signature, now)
    check_signature(body, signature, secrets)
    try:
        return event_of(mapping(json.loads(body), "the event"))
    except (ValueError, RecursionError):  # of json
        reason = "the body is not JSON"
    except Unreadable as why:
        reason = f"the event is unreadable: {why}"
    raise BadEvent(reason, signed=True)  # outside the handler: a decoder's error holds the body


def check_time(signature: str, now: float) -> None:
    """The library looks at its own clock and lets the future pass, so the time is checked here. Not signed yet: what follows is."""
    if not signature or len(signature) > LONGEST_SIGNATURE or not signature.isascii():
        raise BadEvent("there is no signature that can be one")
    times = [part[2:] for part in signature.split(",") if part.startswith("t=")]
    if len(times) != 1 or not times[0].isdigit() or len(times[0]) > 15:
        raise BadEvent("the signature has no time")
    away = now - int(times[0])
    if abs(away) > TOLERANCE:
        raise BadEvent(
            f"its time is {abs(away):.0f} s {'behind' if away > 0 else 'ahead of'} this service's clock, more than {TOLERANCE} s"
        )


def check_signature(body: bytes, signature: str, secrets: tuple[str, ...]) -> None:
    """Over the bytes as they came."""
    from clients.payments.signature import fits  # start-up budget

    if not any(fits(body, signature, secret) for secret in secrets):
        raise BadEvent("it is signed by none of the webhook secrets")


def event_of(found: Json) -> Event:
    """What happened."""
    kind = text(found, "type")
    about = inner(inner(found, "data"), "object")
    read = None if kind in NO_RECORD else RECORDS.get(text_or_none(about, "object") or "")
    return Event(
        id=id_of(found),
        type=kind,
        account=id_or_none(found, "account"),
        created=count(found, "created"),
        live=is_so(found, "livemode"),
        record=None if read is None else read(about),
    )
