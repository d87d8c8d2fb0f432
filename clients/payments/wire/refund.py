"""Refunds on the wire."""

from typing import Literal

from clients.payments.fields import Json, count, currency, id_of, id_or_none, metadata, term_or_none, text_or_none, word
from clients.payments.records import Refund

Status = Literal["pending", "requires_action", "succeeded", "failed", "canceled"]
STATUSES: tuple[Status, ...] = ("pending", "requires_action", "succeeded", "failed", "canceled")


def refund_of(found: Json) -> Refund:
    """Money given back; one without a status is not known to have arrived."""
    return Refund(
        id=id_of(found),
        amount=count(found, "amount"),
        currency=currency(found),
        status=word(text_or_none(found, "status") or "pending", STATUSES, "status"),
        charge=id_or_none(found, "charge"),
        payment_intent=id_or_none(found, "payment_intent"),
        reason=term_or_none(found, "reason"),
        created=count(found, "created"),
        failure_reason=term_or_none(found, "failure_reason"),
        metadata=metadata(found),
    )
