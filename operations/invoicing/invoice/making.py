"""Making an invoice: the sums of a month are read, priced, numbered and kept in one transaction, and frozen from then on."""

from datetime import UTC, datetime
from typing import NamedTuple

from operations.invoicing.invoice.figures import Totals, line_amount, totals_of
from registry.errors import Conflict, NotFound
from registry.ids import Ids
from storage.connection import Connection
from storage.money.billing_config import BillingConfig, ensure_config
from storage.money.cdr_sums import MonthLine, month_line_slices
from storage.money.fee_rates import own_fee_bps
from storage.money.invoice_lines import InvoiceLineRow, insert_lines
from storage.money.invoice_numbers import take_number
from storage.money.invoice_periods import Period, find_period, mark_invoiced, month_text
from storage.money.invoices import Invoice, insert_invoice

SLICE = 1000
"""Lines that are priced and inserted in one step."""


class NothingToBill(Conflict):
    """The period has no records."""

    code = "nothing_to_bill"


class Wanted(NamedTuple):
    """Which invoice. `price` in cents per GB, 0: the organisation's own; `fee_bps`: the rate of those that have none of their own."""

    id: str
    organisation: str
    period: str
    price: int
    fee_bps: int


def make_invoice(connection: Connection, *, wanted: Wanted, now: float, ids: Ids) -> Invoice:
    """The draft. The row of the numbers is locked last, so that calls at the same time wait for each other as shortly as can be."""
    period = find_period(connection, period=wanted.period, organisation=wanted.organisation)
    if period is None:
        raise no_such_period()
    config = ensure_config(connection, organisation=wanted.organisation, now=now)
    own = own_fee_bps(connection, organisation=wanted.organisation)
    price, bps = wanted.price or config.price_per_gb_cents, wanted.fee_bps if own is None else own
    billed = bill_lines(connection, wanted=wanted, month=period.month, price=price, ids=ids)
    if not billed.lines:
        raise nothing_to_bill(period)
    totals = totals_of(billed.subtotal, price=price, bps=bps, largest_usage=billed.largest_usage)
    mark_invoiced(connection, period=period.id)
    row = row_of(wanted, config, totals, lines=billed.lines, price=price, bps=bps, now=now)
    year = datetime.fromtimestamp(now, UTC).year
    number = take_number(connection, organisation=wanted.organisation, year=year)
    # Choice: a millionth invoice of a year has seven digits.
    row = row._replace(number=f"{config.invoice_prefix}-{year}-{number:06d}")
    insert_invoice(connection, row=row)
    return row


class Billed(NamedTuple):
    """The lines of a new invoice: how many, their sum in minor units, and the most bytes of one."""

    lines: int
    subtotal: int
    largest_usage: int


def bill_lines(connection: Connection, *, wanted: Wanted, month: int, price: int, ids: Ids) -> Billed:
    """Price and insert one line per SIM, in the order of the ICCIDs.

    One statement reads all sums: a batch of records that is stored meanwhile is in them whole, or not at all. They are taken in slices,
    since a step over all lines of a large fleet, such as writing them out, holds up every other thread as well.
    """
    billed = Billed(0, 0, 0)
    for usage in month_line_slices(connection, organisation=wanted.organisation, month=month, size=SLICE):
        amounts = [line_amount(line.bytes_up + line.bytes_down, price) for line in usage]
        insert_lines(connection, rows=lines_for(wanted.id, usage, amounts, ids, behind=billed.lines))
        most = max(line.bytes_up + line.bytes_down for line in usage)
        billed = Billed(billed.lines + len(usage), billed.subtotal + sum(amounts), max(billed.largest_usage, most))
    return billed


def lines_for(invoice: str, usage: list[MonthLine], amounts: list[int], ids: Ids, *, behind: int) -> list[InvoiceLineRow]:
    """A line for each sum, at the positions behind `behind`."""
    return [
        InvoiceLineRow(invoice, position, ids.new("ili_"), line.iccid, line.bytes_up, line.bytes_down, amount, line.network, line.country)
        for position, (line, amount) in enumerate(zip(usage, amounts, strict=True), behind + 1)
    ]


def row_of(wanted: Wanted, config: BillingConfig, totals: Totals, *, lines: int, price: int, bps: int, now: float) -> Invoice:
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
        currency=config.currency,
        price_per_gb_cents=price,
        platform_fee_bps=bps,
        subtotal_cents=totals.subtotal,
        tax_cents=totals.tax,
        platform_fee_cents=totals.platform_fee,
        total_cents=totals.total,
        lines=lines,
        connect_account=None,
        processor_invoice=None,
        pay_url=None,
        recipient_name=None,
        recipient_email=None,
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


def nothing_to_bill(period: Period) -> NothingToBill:
    """Choice: an invoice without lines would take a number and say nothing."""
    return NothingToBill(
        f"There is nothing to bill in {month_text(period.month)}: no record of that month is stored; nothing was made",
        param="period_id",
        hint="ingest_cdr_events stores records; list_invoice_periods names the months that have some",
    )
