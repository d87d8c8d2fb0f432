"""An invoice with everything that belongs to it, of one moment."""

from typing import NamedTuple

from storage.connection import Connection
from storage.invoice_lines import InvoiceLineRow, lines_of
from storage.invoice_periods import Period, find_period
from storage.invoices import Invoice, find_invoice


class InvoiceOfMonth(NamedTuple):
    """An invoice, and the month it is of: YYYYMM."""

    row: Invoice
    month: int


class WholeInvoiceRows(NamedTuple):
    """The invoice, the month it is of, and its lines in order."""

    row: Invoice
    period: Period
    lines: list[InvoiceLineRow]


def find_whole(connection: Connection, *, invoice: str, organisation: str) -> WholeInvoiceRows | None:
    """An organisation's invoice with all that belongs to it."""
    row = find_invoice(connection, invoice=invoice, organisation=organisation)
    period = None if row is None else find_period(connection, period=row.period, organisation=organisation)
    return None if row is None or period is None else WholeInvoiceRows(row, period, lines_of(connection, invoice=row.id))


def find_of_month(connection: Connection, *, invoice: str, organisation: str) -> InvoiceOfMonth | None:
    """An organisation's invoice without its lines."""
    row = find_invoice(connection, invoice=invoice, organisation=organisation)
    period = None if row is None else find_period(connection, period=row.period, organisation=organisation)
    return None if row is None or period is None else InvoiceOfMonth(row, period.month)


def current_invoice(connection: Connection, row: Invoice) -> Invoice:
    """The row as it is now; no invoice is ever deleted."""
    found = find_invoice(connection, invoice=row.id, organisation=row.organisation)
    if found is None:
        raise RuntimeError(f"there is no invoice {row.id}")
    return found
