"""Checkout sessions on the wire."""

from typing import Literal

from clients.payments.fields import (
    Json,
    count,
    count_or_none,
    currency_or_none,
    id_of,
    id_or_none,
    inner,
    metadata,
    page_or_none,
    text,
    text_or_none,
    word,
)
from clients.payments.records import CheckoutSession

STATUSES: tuple[Literal["open", "complete", "expired"], ...] = ("open", "complete", "expired")
PAID: tuple[Literal["paid", "unpaid", "no_payment_required"], ...] = ("paid", "unpaid", "no_payment_required")


def checkout_of(found: Json) -> CheckoutSession:
    """A page on which a buyer pays. Accounts have pages of their own as well, and one that sells nothing has no amount."""
    return CheckoutSession(
        id=id_of(found),
        status=word(text_or_none(found, "status") or "open", STATUSES, "status"),
        payment_status=word(text(found, "payment_status"), PAID, "payment_status"),
        amount_total=count_or_none(found, "amount_total") or 0,
        currency=currency_or_none(found, "currency") or "",
        payment_intent=id_or_none(found, "payment_intent"),
        expires_at=count(found, "expires_at"),
        url=page_or_none(found, "url"),
        email=text_or_none(inner(found, "customer_details"), "email") or text_or_none(found, "customer_email"),
        metadata=metadata(found),
    )
