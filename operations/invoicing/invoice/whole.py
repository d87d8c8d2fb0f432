"""An invoice with what belongs to it, of one moment. Its lines may be hundreds of thousands: nothing here reads all of them at once."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from operations.deps import Deps
from operations.invoicing.invoice.sheet import MOST_LISTED
from storage.connection import Connection
from storage.long import Long
from storage.money.invoice_lines import InvoiceLineRow, LineSums, read_lines, sum_lines
from storage.money.invoice_periods import Period, find_period
from storage.money.invoices import Invoice, find_invoice

T = TypeVar("T")
MANY = 1000
"""Lines that are read and written out on the event loop; more would hold it up."""


class InvoiceOfMonth(NamedTuple):
    """An invoice, and the month it is of: YYYYMM."""

    row: Invoice
    month: int


class InvoiceWithPeriod(NamedTuple):
    """An invoice and the period it bills."""

    row: Invoice
    period: Period


class DocumentRows(NamedTuple):
    """What a document shows of an invoice: the lines that it lists, and the sums of those that it does not."""

    row: Invoice
    period: Period
    lines: list[InvoiceLineRow]
    rest: LineSums


def find_with_period(connection: Connection, *, invoice: str, organisation: str) -> InvoiceWithPeriod | None:
    """An organisation's invoice and its period."""
    row = find_invoice(connection, invoice=invoice, organisation=organisation)
    period = None if row is None else find_period(connection, period=row.period, organisation=organisation)
    return None if row is None or period is None else InvoiceWithPeriod(row, period)


def find_document_rows(connection: Connection, *, invoice: str, organisation: str) -> DocumentRows | None:
    """What the document of an organisation's invoice is made of."""
    found = find_with_period(connection, invoice=invoice, organisation=organisation)
    if found is None:
        return None
    listed = read_lines(connection, invoice=invoice, after=0, most=MOST_LISTED)
    return DocumentRows(found.row, found.period, listed, sum_lines(connection, invoice=invoice, after=len(listed)))


async def with_document_rows(deps: Deps, *, invoice: str, organisation: str, work: Callable[[DocumentRows], T]) -> T | None:
    """What `work` makes of an invoice's lines; where they are many, beside the event loop. None: there is no such invoice."""
    found = await deps.store.read(find_invoice, invoice=invoice, organisation=organisation)
    if found is None:
        return None
    read = Long(read_and_work) if found.lines > MANY else read_and_work
    return await deps.store.read(read, invoice=invoice, organisation=organisation, work=work)


def read_and_work(connection: Connection, *, invoice: str, organisation: str, work: Callable[[DocumentRows], T]) -> T | None:
    """The rows, as something else."""
    rows = find_document_rows(connection, invoice=invoice, organisation=organisation)
    return None if rows is None else work(rows)


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
