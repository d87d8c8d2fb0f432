"""Making an invoice: the sums of a month are read, priced, numbered and kept in one transaction, and frozen from then on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nsmallest
from typing import NamedTuple

from operations.invoicing.invoice.figures import Totals, line_amount, totals_of
from registry.errors import Conflict, NotFound
from registry.ids import Ids
from storage.connection import Connection
from storage.money.billing_config import BillingConfig, ensure_config
from storage.money.cdr_sums import MonthLine, month_line_slices
from storage.money.fee_rates import own_fee_bps
from storage.money.invoice_lines import Billed, InvoiceLineRow, billed_of, insert_lines
from storage.money.invoice_numbers import take_number
from storage.money.invoice_periods import Period, find_period, mark_invoiced, month_text
from storage.money.invoices import Invoice, insert_invoice

SLICE = 1000
"""Lines that are priced and inserted in one step."""
LARGEST = 5
"""Lines of a new invoice that its answer shows."""


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


@dataclass(slots=True)
class BilledLines:
    """The lines of a new invoice: how many, their sum in minor units, the most bytes of one, and those that cost most.

    `sims` and `already_billed` are kept for a selection of SIMs alone: those with a line, and those that other invoices bill whole.
    """

    selected: bool
    lines: int = 0
    subtotal: int = 0
    largest_usage: int = 0
    found_usage: bool = False
    largest: list[InvoiceLineRow] = field(default_factory=list[InvoiceLineRow])
    sims: set[str] = field(default_factory=set[str])
    already_billed: set[str] = field(default_factory=set[str])

    def add(self, rows: Sequence[InvoiceLineRow]) -> None:
        """Count further lines."""
        self.lines += len(rows)
        self.subtotal += sum(row.amount_cents for row in rows)
        self.largest_usage = max([self.largest_usage, *(row.bytes_up + row.bytes_down for row in rows)])
        self.largest = nsmallest(LARGEST, [*self.largest, *rows], key=by_amount)
        if self.selected:
            self.sims.update(row.iccid for row in rows)


class Made(NamedTuple):
    """A new invoice, the month it is of, and its lines."""

    row: Invoice
    month: int
    billed: BilledLines


def by_amount(line: InvoiceLineRow) -> tuple[int, int, int]:
    """Sorts lines: those that cost most first, then those that used most."""
    return (-line.amount_cents, -line.bytes_up - line.bytes_down, line.position)


def make_invoice(connection: Connection, *, wanted: Wanted, now: float, ids: Ids) -> Made:
    """The draft. The period is locked first, so that two invoices never bill the same; the row of the numbers is locked last."""
    period = find_period(connection, period=wanted.period, organisation=wanted.organisation)
    if period is None:
        raise no_such_period()
    mark_invoiced(connection, period=period.id)
    config = ensure_config(connection, organisation=wanted.organisation, now=now)
    own = own_fee_bps(connection, organisation=wanted.organisation)
    price, bps = wanted.price or config.price_per_gb_cents, wanted.fee_bps if own is None else own
    billed = bill_lines(connection, wanted=wanted, period=period, price=price, ids=ids)
    if not billed.lines:
        raise nothing_left(period) if billed.found_usage else nothing_to_bill(period, some=wanted.iccids is not None)
    totals = totals_of(billed.subtotal, price=price, bps=bps, largest_usage=billed.largest_usage)
    row = row_of(wanted, config, totals, lines=billed.lines, price=price, bps=bps, now=now)
    year = datetime.fromtimestamp(now, UTC).year
    number = take_number(connection, organisation=wanted.organisation, year=year)
    # Choice: a millionth invoice of a year has seven digits.
    row = row._replace(number=f"{config.invoice_prefix}-{year}-{number:06d}")
    insert_invoice(connection, row=row)
    return Made(row, period.month, billed)


def bill_lines(connection: Connection, *, wanted: Wanted, period: Period, price: int, ids: Ids) -> BilledLines:
    """Price and insert one line per SIM, in the order of the ICCIDs.

    One statement reads all sums: a batch of records that is stored meanwhile is in them whole, or not at all. They are taken in slices,
    since a step over all lines of a large fleet, such as writing them out, holds up every other thread as well.
    """
    billed = BilledLines(selected=wanted.iccids is not None)
    before = billed_of(connection, period=period.id, selected=wanted.iccids is None, size=SLICE)
    for usage in month_line_slices(connection, organisation=wanted.organisation, month=period.month, iccids=wanted.iccids, size=SLICE):
        billed.found_usage = True
        rest = unbilled(usage, before) if before else usage
        if billed.selected:
            left = {line.iccid for line in rest}
            billed.already_billed.update(line.iccid for line in usage if line.iccid not in left)
        if rest:
            rows = lines_for(wanted.id, rest, ids, price=price, behind=billed.lines)
            insert_lines(connection, rows=rows)
            billed.add(rows)
    return billed


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
            if up or down:
                found.append(line._replace(bytes_up=up, bytes_down=down))
    return found


def lines_for(invoice: str, usage: Sequence[MonthLine], ids: Ids, *, price: int, behind: int) -> list[InvoiceLineRow]:
    """A line for each sum at `price` cents per GB, at the positions behind `behind`."""
    return [
        InvoiceLineRow(
            invoice,
            position,
            ids.new("ili_"),
            line.iccid,
            line.bytes_up,
            line.bytes_down,
            line_amount(line.bytes_up + line.bytes_down, price),
            line.network,
            line.country,
        )
        for position, line in enumerate(usage, behind + 1)
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
        currency=wanted.currency or config.currency,
        price_per_gb_cents=price,
        platform_fee_bps=bps,
        subtotal_cents=totals.subtotal,
        tax_cents=totals.tax,
        platform_fee_cents=totals.platform_fee,
        total_cents=totals.total,
        lines=lines,
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
