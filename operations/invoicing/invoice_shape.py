"""Invoices and their lines as every door shows them."""

from collections.abc import Sequence
from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.shapes import Currency
from operations.invoicing.invoice.months import month_name
from registry.errors import NotFound
from registry.model import Input
from registry.ports import Site
from storage.money.invoice_lines import InvoiceLineRow
from storage.money.invoices import Invoice

Status = Literal["draft", "sent", "paid", "void"]


class InvoiceRef(Input):
    """Which invoice."""

    id: Annotated[str, Field(max_length=64, description="Invoice id, inv_...")]


class ShownInvoice(TypedDict):
    """An invoice. Amounts are minor units (cents) of `currency`, times Unix seconds; `payment_url` is the processor's page to pay on."""

    id: str
    org_id: str
    period_id: str
    invoice_number: str
    status: Status
    currency: Currency
    subtotal_cents: int
    tax_cents: int
    total_cents: int
    platform_fee_cents: int
    payments_connect_account_id: str | None
    payments_invoice_id: str | None
    recipient_name: str | None
    recipient_email: str | None
    notes: str | None
    pdf_url: str | None
    payment_url: str | None
    issued_at: int | None
    due_at: int | None
    paid_at: int | None
    created_at: int
    updated_at: int


class LineItem(TypedDict):
    """One SIM's usage of the month. `unit_price_cents` is the price of 1 GB (10^9 bytes), `amount_cents` what its bytes cost."""

    id: str
    invoice_id: str
    iccid: str
    description: str
    bytes_up: int
    bytes_down: int
    bytes_total: int
    unit_price_cents: int
    quantity: Literal[1]
    amount_cents: int
    currency: Currency
    network: str | None
    country: str | None
    created_at: int


def shown_invoice(row: Invoice, site: Site) -> ShownInvoice:
    """An invoice without its lines.

    Choice: the processor's ids are shown once the invoice was sent, not while it is being handed over. `payment_url` is ours: without
    it nobody could be told where to pay but by the processor's mail.
    """
    handed = row.status != "draft"
    return {
        "id": row.id,
        "org_id": row.organisation,
        "period_id": row.period,
        "invoice_number": row.number,
        "status": cast(Status, row.status),
        "currency": cast(Currency, row.currency),
        "subtotal_cents": row.subtotal_cents,
        "tax_cents": row.tax_cents,
        "total_cents": row.total_cents,
        "platform_fee_cents": row.platform_fee_cents,
        "payments_connect_account_id": row.connect_account if handed else None,
        "payments_invoice_id": row.processor_invoice if handed else None,
        "recipient_name": row.recipient_name,
        "recipient_email": row.recipient_email,
        "notes": row.notes,
        "pdf_url": f"{site.base_url}/v1/invoices/{row.id}/pdf" if row.document else None,
        "payment_url": row.pay_url if handed else None,
        "issued_at": row.issued_at,
        "due_at": row.due_at,
        "paid_at": row.paid_at,
        "created_at": row.created,
        "updated_at": row.updated,
    }


def shown_lines(row: Invoice, lines: Sequence[InvoiceLineRow], month: int) -> list[LineItem]:
    """The lines of an invoice; `month` is YYYYMM."""
    description, currency = f"Mobile data {month_name(month)}", cast(Currency, row.currency)
    return [
        {
            "id": line.id,
            "invoice_id": row.id,
            "iccid": line.iccid,
            "description": description,
            "bytes_up": line.bytes_up,
            "bytes_down": line.bytes_down,
            "bytes_total": line.bytes_up + line.bytes_down,
            "unit_price_cents": row.price_per_gb_cents,
            "quantity": 1,
            "amount_cents": line.amount_cents,
            "currency": currency,
            "network": line.network,
            "country": line.country,
            "created_at": row.created,
        }
        for line in lines
    ]


def no_such_invoice(param: str) -> NotFound:
    """Unknown and foreign invoices are answered alike."""
    return NotFound("Your organisation has no invoice with this id", param=param, hint="list_invoices names them")


ID = "inv_01k0a8w7zv6q4k3m2n1p0r9s8t"
PERIOD = "per_01k0a8w7zv6q4k3m2n1p0r9s8t"
DRAFT: ShownInvoice = {
    "id": ID,
    "org_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "period_id": PERIOD,
    "invoice_number": "INV-2026-000042",
    "status": "draft",
    "currency": "EUR",
    "subtotal_cents": 12_345,
    "tax_cents": 0,
    "total_cents": 12_468,
    "platform_fee_cents": 123,
    "payments_connect_account_id": None,
    "payments_invoice_id": None,
    "recipient_name": None,
    "recipient_email": None,
    "notes": None,
    "pdf_url": None,
    "payment_url": None,
    "issued_at": None,
    "due_at": None,
    "paid_at": None,
    "created_at": 1_795_168_800,
    "updated_at": 1_795_168_800,
}
"""The documented invoice."""
