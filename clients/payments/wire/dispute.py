"""Disputes on the wire."""

from clients.payments.fields import Json, count, count_or_none, currency, id_of, id_or_none, inner, term
from clients.payments.records import Dispute


def dispute_of(found: Json) -> Dispute:
    """A payer's bank asks for the money back."""
    details = inner(found, "evidence_details")
    return Dispute(
        id=id_of(found),
        amount=count(found, "amount"),
        currency=currency(found),
        status=term(found, "status"),
        reason=term(found, "reason"),
        charge=id_of(found, "charge"),
        payment_intent=id_or_none(found, "payment_intent"),
        evidence_due_by=count_or_none(details, "due_by"),
        evidence_submissions=count_or_none(details, "submission_count") or 0,
        created=count(found, "created"),
    )
