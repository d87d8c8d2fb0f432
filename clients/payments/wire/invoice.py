"""Invoices on the wire."""

from typing import Literal

from clients.payments.fields import Json, count_or_none, currency, id_of, inner, metadata, page_or_none, text_or_none, whole, word
from clients.payments.records import ProcessorInvoice

Status = Literal["draft", "open", "paid", "void", "uncollectible"]
STATUSES: tuple[Status, ...] = ("draft", "open", "paid", "void", "uncollectible")


def invoice_of(found: Json) -> ProcessorInvoice:
    """An invoice; which payments pay it is no longer told on it."""
    return ProcessorInvoice(
        id=id_of(found),
        status=word(text_or_none(found, "status") or "draft", STATUSES, "status"),
        total=whole(found, "total"),
        amount_paid=whole(found, "amount_paid"),
        currency=currency(found),
        pay_url=page_or_none(found, "hosted_invoice_url"),
        paid_at=count_or_none(inner(found, "status_transitions"), "paid_at"),
        metadata=metadata(found),
    )
