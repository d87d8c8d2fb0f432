"""Invoices that the processor sends and collects."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class InvoiceItem:
    """One line, waiting for an invoice or on one."""

    id: str
    created: int
    customer: str
    amount: int
    currency: str
    quantity: int = 1
    unit_decimal: str = "0"
    product: str = ""
    price: str = ""
    description: str | None = None
    discountable: bool = True
    invoice: str | None = None
    line: str = ""
    period_start: int = 0
    period_end: int = 0
    metadata: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class Invoice:
    """An invoice; `items` are the ids of its lines in order."""

    id: str
    created: int
    customer: str
    currency: str
    customer_name: str | None = None
    customer_email: str | None = None
    customer_phone: str | None = None
    customer_address: dict[str, str | None] | None = None
    status: str = "draft"
    collection_method: str = "charge_automatically"
    number: str | None = None
    fee_amount: int | None = None
    due_date: int | None = None
    days_until_due: int | None = None
    effective_at: int | None = None
    description: str | None = None
    footer: str | None = None
    statement_descriptor: str | None = None
    custom_fields: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    auto_advance: bool = False
    items: list[str] = field(default_factory=list[str])
    amount_paid: int = 0
    attempts: int = 0
    intent: str | None = None
    payment: str | None = None
    slug: str = ""
    """The last part of its pay page's address."""
    out_of_band: bool = False
    sent_at: int | None = None
    finalized_at: int | None = None
    paid_at: int | None = None
    voided_at: int | None = None
    uncollectible_at: int | None = None
    metadata: dict[str, str] = field(default_factory=dict[str, str])
