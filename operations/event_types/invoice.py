"""Events of invoices. Whom an invoice is made out to is in none of them, nor the page on which it is paid."""

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class InvoiceEventData(TypedDict):
    """`invoice` is the id, `number` what is printed on it, `period` the id of the month. Amounts are minor units of `currency`."""

    invoice: str
    number: str
    period: str
    total_cents: int
    currency: str


class SentInvoiceData(InvoiceEventData):
    """`issued_at` and `due_at` are Unix seconds; `due_at` is the day to pay by."""

    issued_at: int
    due_at: int | None


class PaidInvoiceData(InvoiceEventData):
    """`paid_at` is Unix seconds, by the payment processor's clock."""

    paid_at: int


class OverdueInvoiceData(InvoiceEventData):
    """`due_at` is Unix seconds: the day to pay by, which has passed."""

    due_at: int


INVOICE_EVENT_EXAMPLE: InvoiceEventData = {
    "invoice": "inv_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "number": "INV-2026-000042",
    "period": "per_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "total_cents": 12_468,
    "currency": "EUR",
}

INVOICE_CREATED = EventType(
    "invoice.created", "A draft invoice was made.", InvoiceEventData, INVOICE_EVENT_EXAMPLE, read_with="get_invoice"
)

INVOICE_SENT = EventType(
    "invoice.sent",
    "An invoice has left draft: it was sent through the payment processor, or marked as sent.",
    SentInvoiceData,
    {**INVOICE_EVENT_EXAMPLE, "issued_at": 1_795_168_800, "due_at": 1_797_760_800},
    read_with="get_invoice",
)

INVOICE_PAID = EventType(
    "invoice.paid",
    "The payment processor calls an invoice paid.",
    PaidInvoiceData,
    {**INVOICE_EVENT_EXAMPLE, "paid_at": 1_795_514_400},
    read_with="get_invoice",
)

INVOICE_OVERDUE = EventType(
    "invoice.overdue",
    "The day to pay by of a sent invoice has passed, and it is not paid.",
    OverdueInvoiceData,
    {**INVOICE_EVENT_EXAMPLE, "due_at": 1_797_760_800},
    read_with="get_invoice",
)

INVOICE_VOIDED = EventType(
    "invoice.voided",
    "An invoice was voided: nobody owes it any more.",
    InvoiceEventData,
    INVOICE_EVENT_EXAMPLE,
    read_with="get_invoice",
)
