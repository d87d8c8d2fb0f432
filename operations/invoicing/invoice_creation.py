"""Making invoices: the sums of a month are read, priced, numbered and kept in one transaction, and frozen from then on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Annotated, Literal, NamedTuple

from pydantic import FailFast, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.invoicing.invoices import (
    DRAFT_INVOICE_EXAMPLE,
    LINE_ITEM_EXAMPLE,
    PERIOD_ID_EXAMPLE,
    LineItem,
    RecipientName,
    ShownInvoice,
    render_invoice,
    render_invoice_lines,
)
from operations.ledger.invoices import log_invoice_created
from operations.upstream.account_lines import read_account_lines
from operations.upstream.connection import connect_upstream, require_connected, require_own_account
from operations.vocabulary import Currency, Email, Iccid, UpstreamId, divide_half_up, share_of
from registry.errors import BadRequest, Conflict, NotFound, OcsError, OrgNotConnected
from registry.ids import Ids
from registry.operation import Example, Input, Once, Scope, SpendKind, operation
from storage.billing_config import ensure_config
from storage.cdr_sums import SimMonth, sim_month_slices
from storage.engine.sql import Connection, runs_in_thread
from storage.invoice_lines import BilledUsage, InvoiceLineRow, billed_by_sim, insert_invoice_lines
from storage.invoices import (
    INVOICED_WHOLE,
    Invoice,
    InvoicePeriodRow,
    find_period,
    insert_invoice,
    mark_period_invoiced,
    month_text,
    take_invoice_number,
)
from storage.organisations import own_fee_bps

# 10^9 and not 2^30, which would bill 7.37 % less; it is printed on every invoice.
INVOICE_GB_BYTES = 1_000_000_000
# Choice: ten million units of a currency for a GB, so that no price is refused that somebody could mean.
PRICE_PER_GB_CENTS_LIMIT = 1_000_000_000
# JSON numbers are exact up to here in every language.
INVOICE_FIGURE_LIMIT = 2**53 - 1
INVOICE_TAX_CENTS = 0
"""An organisation has no tax rate, so an invoice adds no tax."""


class InvoiceTooLarge(Conflict):
    """A figure that no JSON number holds exactly."""

    code = "invoice_too_large"


class InvoiceTotals(NamedTuple):
    """What is billed in all, in minor units."""

    subtotal: int
    tax: int
    platform_fee: int
    total: int


def invoice_line_amount(used: int, price: int) -> int:
    """`used` bytes at `price` cents per GB, half-up."""
    return divide_half_up(used * price, INVOICE_GB_BYTES)


def invoice_totals(subtotal: int, *, price: int, bps: int, largest_usage: int) -> InvoiceTotals:
    """The totals over lines that add up to `subtotal`; `largest_usage` is the most bytes of one line. Every amount is at most the total."""
    fee = share_of(subtotal, bps)
    total = subtotal + INVOICE_TAX_CENTS + fee
    largest = max(total, largest_usage)
    if largest > INVOICE_FIGURE_LIMIT:
        raise InvoiceTooLarge(
            f"A figure of the invoice would be {largest}, and none may exceed {INVOICE_FIGURE_LIMIT}; nothing was made",
            param="price_per_gb_cents",
            hint=f"The price is {price} cents per GB; check it, and the records of the month with cdr_aggregate",
        )
    return InvoiceTotals(subtotal, INVOICE_TAX_CENTS, fee, total)


INVOICE_SLICE_LINES = 1000
"""Lines that are priced and inserted in one step."""
LARGEST_LINES_SHOWN = 5
"""Lines of a new invoice that its answer shows."""


class NothingToBill(Conflict):
    """The period has no records."""

    code = "nothing_to_bill"


class InvoiceSpec(NamedTuple):
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
        self.lines += len(rows)
        self.subtotal += sum(row.amount_cents for row in rows)
        self.largest_usage = max([self.largest_usage, *(row.bytes_up + row.bytes_down for row in rows)])
        self.largest = nsmallest(LARGEST_LINES_SHOWN, [*self.largest, *rows], key=largest_line_key)
        if self.selected:
            self.sims.update(row.iccid for row in rows)


class CreatedInvoice(NamedTuple):
    """A new invoice, the month it is of, and its lines."""

    row: Invoice
    month: int
    billed: BilledLines


def largest_line_key(line: InvoiceLineRow) -> tuple[int, int, int]:
    """Sorts lines: those that cost most first, then those that used most."""
    return (-line.amount_cents, -line.bytes_up - line.bytes_down, line.position)


def make_draft_invoice(connection: Connection, *, wanted: InvoiceSpec, now: float, deps: Deps) -> CreatedInvoice:
    """The draft. The period is locked first, so that two invoices never bill the same; the row of the numbers is locked last."""
    period = mark_period_invoiced(connection, period=wanted.period, organisation=wanted.organisation, whole=wanted.iccids is None)
    if period is None:
        raise no_such_invoice_period()
    config = ensure_config(connection, organisation=wanted.organisation, now=now)
    own = own_fee_bps(connection, organisation=wanted.organisation)
    price, bps = wanted.price or config.price_per_gb_cents, wanted.fee_bps if own is None else own
    billed = bill_invoice_lines(connection, wanted=wanted, period=period, price=price, ids=deps.ids)
    if not billed.lines:
        raise nothing_to_bill(period, found=billed.found_usage, some=wanted.iccids is not None)
    totals = invoice_totals(billed.subtotal, price=price, bps=bps, largest_usage=billed.largest_usage)
    year = datetime.fromtimestamp(now, UTC).year
    number = take_invoice_number(connection, organisation=wanted.organisation, year=year)
    row = Invoice(
        id=wanted.id,
        organisation=wanted.organisation,
        period=wanted.period,
        number=f"{config.invoice_prefix}-{year}-{number:06d}",  # Choice: a millionth invoice of a year has seven digits.
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
        lines=billed.lines,
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
    insert_invoice(connection, row=row)
    log_invoice_created(connection, deps, row, account=config.connect_account)
    return CreatedInvoice(row, period.month, billed)


def bill_invoice_lines(connection: Connection, *, wanted: InvoiceSpec, period: InvoicePeriodRow, price: int, ids: Ids) -> BilledLines:
    """Price and insert one line per SIM, in the order of the ICCIDs.

    One statement reads all sums: a batch of records that is stored meanwhile is in them whole, or not at all. They are taken in slices,
    since a step over all lines of a large fleet, such as writing them out, holds up every other thread as well.

    An invoice of the whole month leaves out what invoices of some SIMs bill; where there is none of those, no invoice is looked at.
    """
    billed = BilledLines(selected=wanted.iccids is not None)
    before: Mapping[str, BilledUsage] = {}
    if period.invoiced != INVOICED_WHOLE:
        before = billed_by_sim(connection, period=period.id, selected=not billed.selected, size=INVOICE_SLICE_LINES)
    for usage in sim_month_slices(
        connection, organisation=wanted.organisation, month=period.month, iccids=wanted.iccids, size=INVOICE_SLICE_LINES
    ):
        billed.found_usage = True
        rest = unbilled_usage(usage, before) if before else usage
        if billed.selected:
            left = {line.iccid for line in rest}
            billed.already_billed.update(line.iccid for line in usage if line.iccid not in left)
        if rest:
            rows = new_invoice_lines(wanted.id, rest, ids, price=price, behind=billed.lines)
            insert_invoice_lines(connection, rows=rows)
            billed.add(rows)
    return billed


def unbilled_usage(usage: Sequence[SimMonth], billed: Mapping[str, BilledUsage]) -> list[SimMonth]:
    """What of the month no such invoice bills. A SIM of which nothing is left has no line; one that never used anything keeps its own."""
    found: list[SimMonth] = []
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


def new_invoice_lines(invoice: str, usage: Sequence[SimMonth], ids: Ids, *, price: int, behind: int) -> list[InvoiceLineRow]:
    """A line for each sum at `price` cents per GB, at the positions behind `behind`."""
    return [
        InvoiceLineRow(
            invoice,
            position,
            ids.new("ili_"),
            line.iccid,
            line.bytes_up,
            line.bytes_down,
            invoice_line_amount(line.bytes_up + line.bytes_down, price),
            line.network,
            line.country,
        )
        for position, line in enumerate(usage, behind + 1)
    ]


def no_such_invoice_period() -> NotFound:
    return NotFound(
        "Your organisation has no invoice period with this id", param="period_id", hint="list_invoice_periods names those with records"
    )


def nothing_to_bill(period: InvoicePeriodRow, *, found: bool, some: bool) -> NothingToBill:
    """Choice: an invoice without lines would take a number and say nothing. `found`: there are records; `some`: of named SIMs alone."""
    month = month_text(period.month)
    if found:
        return NothingToBill(
            f"There is nothing left to bill in {month}: other invoices bill all of it already; nothing was made",
            hint="list_invoices names them; what void_invoice voids can be billed again",
        )
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


class AccountNotReadWhole(Conflict):
    """Some lines of an account stay out of reach, so nobody can say what the account has to be billed."""

    code = "account_not_read_whole"


INVOICE_SIMS_LIMIT, INVOICE_ACCOUNTS_LIMIT = 1000, 20


def is_absent_field(value: object) -> bool:
    """For `exclude_if`: what is not given has no part in the fingerprint, so that a key of before these fields still names its call."""
    return value is None


class NewInvoice(Input):
    """Which month to bill, to whom, and for how much."""

    period_id: Annotated[str, Field(max_length=64, description="Period id, per_..., from list_invoice_periods.")]
    price_per_gb_cents: Annotated[
        int,
        Field(
            ge=0, le=PRICE_PER_GB_CENTS_LIMIT, description="Cents per GB (10^9 bytes), 0-1000000000; 0 or absent: your organisation's rate."
        ),
    ] = 0
    currency: Annotated[
        Currency | None,
        Field(description="Of this invoice, with price_per_gb_cents; absent: your organisation's.", exclude_if=is_absent_field),
    ] = None
    recipient_name: Annotated[RecipientName | None, Field(description="Who is billed, 1-200 characters.", exclude_if=is_absent_field)] = (
        None
    )
    recipient_email: Annotated[Email | None, Field(description="Where it is sent, at most 254 characters.", exclude_if=is_absent_field)] = (
        None
    )
    iccids: Annotated[
        list[Iccid] | None,
        FailFast(),
        Field(min_length=1, max_length=INVOICE_SIMS_LIMIT, description="Bill these SIMs alone, 1-1000.", exclude_if=is_absent_field),
    ] = None
    account_ids: Annotated[
        list[UpstreamId] | None,
        Field(
            min_length=1,
            max_length=INVOICE_ACCOUNTS_LIMIT,
            description="Bill the SIMs that these accounts have now, 1-20.",
            exclude_if=is_absent_field,
        ),
    ] = None

    @model_validator(mode="after")
    def check(self) -> "NewInvoice":
        if self.currency is not None and not self.price_per_gb_cents:
            raise BadRequest(
                f"currency: {self.currency} without a price: your organisation's rate is in its own currency",
                param="currency",
                hint="Send price_per_gb_cents in that currency too, or leave currency out",
            )
        if self.iccids is not None and self.account_ids is not None:
            raise BadRequest(
                "account_ids: given together with iccids; an invoice is of some SIMs, or of some accounts",
                param="account_ids",
                hint="Send one of them, or neither for the whole month",
            )
        return self


async def own_invoice_accounts(ctx: Ctx, params: NewInvoice) -> None:
    """The access rule: accounts that are named are the caller's. Without any the charging system is not asked."""
    if params.account_ids is None:
        return
    await require_connected(ctx)
    upstream = await connect_upstream(ctx)
    for account in params.account_ids:
        await require_own_account(upstream, account, "account_ids")


async def sims_to_bill(ctx: Ctx, params: NewInvoice) -> tuple[str, ...] | None:
    """The ICCIDs to bill; None: all of the month. Of accounts, every ICCID that their lines have or had: what a line used before its SIM
    was replaced is billed with it.
    """
    if params.account_ids is None:
        return None if params.iccids is None else tuple(dict.fromkeys(params.iccids))
    fleet = await read_account_lines(await connect_upstream(ctx), list(dict.fromkeys(params.account_ids)))
    if fleet.incomplete:
        raise AccountNotReadWhole(
            "account_ids: the charging system does not show every line of these accounts, so their bill would lack some; nothing was made",
            param="account_ids",
            hint="Name the SIMs in iccids, at most 1000 at once",
        )
    found = (past.get("iccid") for row in fleet.rows for past in row.get("imsiList", ()))
    return tuple(dict.fromkeys(iccid for iccid in found if iccid))


class NotBilled(TypedDict):
    """A SIM that was named and is not on the invoice: without records in the month, or billed by another invoice already."""

    iccid: str
    reason: Literal["no_records", "already_billed"]


class MadeInvoice(ShownInvoice):
    """The draft, how many lines it has, the largest of them, and which of the `iccids` it does not bill."""

    line_count: int
    largest_lines: list[LineItem]
    not_billed: list[NotBilled]


MADE_INVOICE_EXAMPLE: MadeInvoice = {**DRAFT_INVOICE_EXAMPLE, "line_count": 1, "largest_lines": [LINE_ITEM_EXAMPLE], "not_billed": []}


@operation(
    "POST",
    "/v1/invoices",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    once=Once(shown=True),
    moves=True,
    status=201,
    title="Create invoice",
    access=own_invoice_accounts,
    raises=[NotFound, NothingToBill, AccountNotReadWhole, InvoiceTooLarge, OrgNotConnected, OcsError],
    examples=[
        Example("Bill a month at our own rate", {"period_id": PERIOD_ID_EXAMPLE}, MADE_INVOICE_EXAMPLE),
        Example("Bill it at 2.50 a GB", {"period_id": PERIOD_ID_EXAMPLE, "price_per_gb_cents": 250}, MADE_INVOICE_EXAMPLE),
        Example(
            "Bill one customer's SIMs in their currency",
            {
                "period_id": PERIOD_ID_EXAMPLE,
                "price_per_gb_cents": 250,
                "currency": "EUR",
                "recipient_name": "Fjord Ferries AS",
                "recipient_email": "accounts@fjord.example",
                "iccids": ["8988303000000912345"],
            },
            MADE_INVOICE_EXAMPLE,
        ),
    ],
)
async def create_invoice(ctx: Ctx, params: NewInvoice, _granted: None) -> MadeInvoice:
    """Make a draft invoice of a month: one line per SIM, and the platform fee.

    Its figures are frozen. Calling again makes a second invoice: send an idempotency key, and void what is not needed.

    Each line is the SIM's bytes times the price, rounded half-up to the cent; 1 GB is 10^9 bytes. The platform fee is added to the
    subtotal; tax is 0. Currency and prefix of the number are those of get_billing_config at this moment; `currency` together with
    `price_per_gb_cents` gives this invoice its own. The organisation's price is 0, and the lines with it, until update_billing_config
    sets it. Numbers count up without gaps per organisation and UTC year, drafts and voids included. Records that come later change
    the month's sums and no invoice.

    `iccids` or `account_ids` bill some SIMs alone, and only what no other invoice of the month bills that is not void. An invoice of
    the whole month leaves out what such invoices bill. A SIM counts to the account that has it now. `largest_lines` are at most five.
    Nothing is sent before update_invoice sets `status` to `sent`.
    """
    deps = ctx.deps
    if await deps.store.read(find_period, period=params.period_id, organisation=ctx.organisation) is None:
        raise no_such_invoice_period()
    wanted = InvoiceSpec(
        deps.ids.new("inv_"),
        ctx.organisation,
        params.period_id,
        params.price_per_gb_cents,
        deps.platform_fee_bps,
        currency=params.currency,
        recipient_name=params.recipient_name,
        recipient_email=params.recipient_email,
        iccids=await sims_to_bill(ctx, params),
    )

    @runs_in_thread  # a month may have a hundred thousand SIMs
    def write(connection: Connection) -> MadeInvoice:
        made = make_draft_invoice(connection, wanted=wanted, now=ctx.now, deps=deps)
        billed = made.billed
        left_out: list[NotBilled] = [
            {"iccid": iccid, "reason": "already_billed" if iccid in billed.already_billed else "no_records"}
            for iccid in dict.fromkeys(params.iccids or ())
            if iccid not in billed.sims
        ]
        return {
            **render_invoice(made.row, deps.site),
            "line_count": billed.lines,
            "largest_lines": render_invoice_lines(made.row, billed.largest, made.month),
            "not_billed": left_out,
        }

    return await ctx.settle_result(write)
