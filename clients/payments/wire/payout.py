"""Payouts on the wire."""

from typing import Literal

from clients.payments.fields import Json, count, currency, id_of, is_so, metadata, term_or_none, text, whole, word
from clients.payments.records import Payout

Status = Literal["pending", "in_transit", "paid", "failed", "canceled"]
STATUSES: tuple[Status, ...] = ("pending", "in_transit", "paid", "failed", "canceled")


def payout_of(found: Json) -> Payout:
    """Money sent to a bank."""
    return Payout(
        id=id_of(found),
        amount=whole(found, "amount"),
        currency=currency(found),
        status=word(text(found, "status"), STATUSES, "status"),
        automatic=is_so(found, "automatic"),
        arrival_date=count(found, "arrival_date"),
        created=count(found, "created"),
        failure_code=term_or_none(found, "failure_code"),
        metadata=metadata(found),
    )
