"""Making an invoice: the sums of a month are read, priced, numbered and kept in one transaction, and frozen from then on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from operations.invoicing.invoice.figures import Figures, figures_of
from registry.errors import Conflict, NotFound
from registry.ids import Ids
from storage.connection import Connection
from storage.money.billing_config import BillingConfig, ensure_config
from storage.money.cdr_sums import MonthLine, month_lines
from storage.money.fee_rates import own_fee_bps
from storage.money.invoice_lines import Billed, InvoiceLineRow, billed_of, insert_lines
from storage.money.invoice_numbers import take_number
from storage.money.invoice_periods import Period, find_period, mark_invoiced, month_text
from storage.money.invoices import Invoice, insert_invoice


class NothingToBill(Conflict):
    """The period has no records."""

    code = "nothing_to_bill"


class Wanted(NamedTuple):
    """Which invoice. `price` in cents per GB, 0: the organisation's own; `fee_bps`: the rate of those that have none of their own.

    `iccids`: the SIMs to bill, nothing: all of the month. `currency`: nothing is the organisation's own.
    """

    id: str
    organisation: str
    period: str
    price: int
    fee_bps: int
    currency: str | None = None
    recipient_name: str | None = None
    recipient_email: str | None = None
    iccids: tuple[str, ...] | None = None


class Made(NamedTuple):
    """A new invoice, its lines, the month it is of, and what of the SIMs that were asked for is on other invoices already."""

    row: Invoice
    lines: list[InvoiceLineRow]
    month: int
    billed: frozenset[str]


def make_invoice(connection: Connection, *, wanted: Wanted, now: float, ids: Ids) -> Made:
    """The draft. The period is locked first, so that two invoices never bill the same; the row of the numbers is locked last."""
    period = find_period(connection, period=wanted.period, organisation=wanted.organisation)
    if period is None:
        raise no_such_period()
    mark_invoiced(connection, period=period.id)
    config = ensure_config(connection, organisation=wanted.organisation, now=now)
    own = own_fee_bps(connection, organisation=wanted.organisation)
    # One statement reads all sums: a batch of records that is stored meanwhile is in them whole, or not at all.
    usage = month_lines(connection, organisation=wanted.organisation, month=period.month, iccids=wanted.iccids)
    billed = billed_of(connection, period=period.id, selected=wanted.iccids is None)
    rest = unbilled(usage, billed) if billed else usage
    if not rest:
        raise nothing_left(period) if usage else nothing_to_bill(period, some=wanted.iccids is not None)
    price, bps = wanted.price or config.price_per_gb_cents, wanted.fee_bps if own is None else own
    figures = figures_of([line.bytes_up + line.bytes_down for line in rest], price=price, bps=bps)
    lines = lines_for(wanted.id, rest, figures, ids)
    insert_lines(connection, rows=lines)
    row = row_of(wanted, config, figures, price=price, bps=bps, now=now)
    year = datetime.fromtimestamp(now, UTC).year
    number = take_number(connection, organisation=wanted.organisation, year=year)
    # Choice: a millionth invoice of a year has seven digits.
    row = row._replace(number=f"{config.invoice_prefix}-{year}-{number:06d}")
    insert_invoice(connection, row=row)
    left = {line.iccid for line in rest}
    return Made(row, lines, period.month, frozenset(line.iccid for line in usage if line.iccid not in left))


def unbilled(usage: Sequence[MonthLine], billed: Mapping[str, Billed]) -> list[MonthLine]:
    """What of the month no such invoice bills. A SIM of which nothing is left has no line; one that never used anything keeps its own."""
    found: list[MonthLine] = []
    for line in usage:
        before = billed.get(line.iccid)
        if before is None:
            found.append(line)
        elif (line.bytes_up, line.bytes_down) != (before.bytes_up, before.bytes_down):
            # Choice: a sum only grows; were it ever smaller than what was billed, nothing is billed rather than a negative amount.
            up, down = max(0, line.bytes_up - before.bytes_up), max(0, line.bytes_down - before.bytes_down)
            found.append(line._replace(bytes_up=up, bytes_down=down))
    return found


def lines_for(invoice: str, usage: list[MonthLine], figures: Figures, ids: Ids) -> list[InvoiceLineRow]:
    """One line per SIM, in the order of the ICCIDs."""
    return [
        InvoiceLineRow(invoice, position, ids.new("ili_"), line.iccid, line.bytes_up, line.bytes_down, amount, line.network, line.country)
        for position, (line, amount) in enumerate(zip(usage, figures.amounts, strict=True), 1)
    ]


def row_of(wanted: Wanted, config: BillingConfig, figures: Figures, *, price: int, bps: int, now: float) -> Invoice:
    """The invoice, still without its number."""
    return Invoice(
        id=wanted.id,
        organisation=wanted.organisation,
        period=wanted.period,
        number="",
        status="draft",
        sending=0,
        revision=0,
        discarded=0,
        currency=wanted.currency or config.currency,
        price_per_gb_cents=price,
        platform_fee_bps=bps,
        subtotal_cents=figures.subtotal,
        tax_cents=figures.tax,
        platform_fee_cents=figures.platform_fee,
        total_cents=figures.total,
        lines=len(figures.amounts),
        selected=int(wanted.iccids is not None),
        connect_account=None,
        processor_invoice=None,
        pay_url=None,
        recipient_name=wanted.recipient_name,
        recipient_email=wanted.recipient_email,
        notes=None,
        document=0,
        issued_at=None,
        due_at=None,
        paid_at=None,
        created=int(now),
        updated=int(now),
    )


def no_such_period() -> NotFound:
    """Unknown and foreign periods are answered alike."""
    return NotFound(
        "Your organisation has no invoice period with this id", param="period_id", hint="list_invoice_periods names those with records"
    )


def nothing_to_bill(period: Period, *, some: bool) -> NothingToBill:
    """Choice: an invoice without lines would take a number and say nothing."""
    month = month_text(period.month)
    if some:
        return NothingToBill(
            f"There is nothing to bill in {month} for these SIMs: no record of theirs is stored for that month; nothing was made",
            hint="aggregate_cdr names the SIMs that have records in a month",
        )
    return NothingToBill(
        f"There is nothing to bill in {month}: no record of that month is stored; nothing was made",
        param="period_id",
        hint="ingest_cdr_events stores records; list_invoice_periods names the months that have some",
    )


def nothing_left(period: Period) -> NothingToBill:
    """All of it is on invoices that stand."""
    return NothingToBill(
        f"There is nothing left to bill in {month_text(period.month)}: other invoices bill all of it already; nothing was made",
        hint="list_invoices names them; what void_invoice voids can be billed again",
    )
