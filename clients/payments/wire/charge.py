"""Charges on the wire."""

from typing import Literal

from clients.payments.fields import Json, count, currency, id_of, id_or_none, is_so, metadata, term_or_none, text, word
from clients.payments.records import Charge

STATUSES: tuple[Literal["pending", "succeeded", "failed"], ...] = ("pending", "succeeded", "failed")


def charge_of(found: Json) -> Charge:
    """A payment that was tried. The invoice it pays is no longer told on it."""
    return Charge(
        id=id_of(found),
        amount=count(found, "amount"),
        amount_refunded=count(found, "amount_refunded"),
        currency=currency(found),
        status=word(text(found, "status"), STATUSES, "status"),
        refunded=is_so(found, "refunded"),
        disputed=is_so(found, "disputed"),
        created=count(found, "created"),
        payment_intent=id_or_none(found, "payment_intent"),
        application_fee=id_or_none(found, "application_fee"),
        failure_code=term_or_none(found, "failure_code"),
        metadata=metadata(found),
    )
