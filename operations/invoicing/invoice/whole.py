"""An invoice with everything that belongs to it, of one moment."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from operations.deps import Deps
from storage.connection import Connection
from storage.long import Long
from storage.money.invoice_lines import InvoiceLineRow, lines_of
from storage.money.invoice_periods import Period, find_period
from storage.money.invoices import Invoice, find_invoice

T = TypeVar("T")
MANY = 1000
"""Lines that are read and written out on the event loop; more would hold it up."""


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


async def with_whole(deps: Deps, *, invoice: str, organisation: str, work: Callable[[WholeInvoiceRows], T]) -> T | None:
    """What is made of an organisation's invoice with all that belongs to it; where that is much, beside the event loop."""
    found = await deps.store.read(find_invoice, invoice=invoice, organisation=organisation)
    if found is None:
        return None
    read = Long(read_and_work) if found.lines > MANY else read_and_work
    return await deps.store.read(read, invoice=invoice, organisation=organisation, work=work)


def read_and_work(connection: Connection, *, invoice: str, organisation: str, work: Callable[[WholeInvoiceRows], T]) -> T | None:
    """The rows, as something else."""
    whole = find_whole(connection, invoice=invoice, organisation=organisation)
    return None if whole is None else work(whole)


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
