"""Invoices and their lines: reading them, and voiding one, with us and before that at the processor where it was handed over.

An invoice may have hundreds of thousands of lines.
"""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, cast

import orjson
from anyio.lowlevel import checkpoint
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from clients.payments.records import InvoiceLine, NewInvoice, ProcessorInvoice
from operations.deps import Ctx, Deps
from operations.invoicing.call_records import InvoicePeriod, render_invoice_period
from operations.ledger.invoices import log_invoice_voided
from operations.ledger.payment_intake import take_invoice_payment
from operations.ledger.payment_records import payment_amount_text
from operations.ledger.send_once import UNKNOWN, SendOutcome, send_once
from operations.times import MadeSince, MadeUntil
from operations.vocabulary import MISLEADING_CHARACTERS, Currency, ListOf, ListPage, check_legible, list_page, render_fields
from registry.caller import Money
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import BadRequest, Conflict, NotFound, PaymentsError, PaymentsRefused, Refusal
from registry.free_text import FreeText
from registry.operation import NOTHING_DUE, Due, Example, Input, Scope, StreamedAnswer, operation
from registry.ports import Conclusion, Site
from registry.versions import ObjectVersion, Versioned
from storage.engine.sql import Connection, runs_in_thread
from storage.invoice_lines import InvoiceLineRow, find_line_position, read_invoice_lines
from storage.invoices import Invoice, InvoiceFilter, InvoicePeriodRow, find_invoice, find_period, hold_invoice, void_withdrawn_invoice
from storage.invoices import list_invoices as read_invoices
from storage.invoices import void_invoice as write_void_invoice

ENGLISH_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


def invoice_month_name(month: int) -> str:
    """YYYYMM in words, in English wherever the service runs."""
    return f"{ENGLISH_MONTHS[month % 100 - 1]} {month // 100}"


InvoiceStatus = Literal["draft", "sent", "paid", "void"]
# Choice: control characters are refused. Marks that turn the direction of text are kept as they were sent, and left out wherever the
# name is shown: on the document, and to the payment processor.
RecipientName = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="Who is billed, 1-200 characters; null removes."),
    AfterValidator(check_legible),
]


class InvoiceRef(Input):
    """Which invoice."""

    id: Annotated[str, Field(max_length=64, description="Invoice id, inv_...")]


class ShownInvoice(TypedDict):
    """An invoice. Amounts are minor units (cents) of `currency`, times Unix seconds; `payment_url` is the processor's page to pay on."""

    id: str
    org_id: str
    period_id: str
    invoice_number: str
    status: InvoiceStatus
    currency: Currency
    subtotal_cents: int
    tax_cents: int
    total_cents: int
    platform_fee_cents: int
    payments_connect_account_id: str | None
    payments_invoice_id: str | None
    recipient_name: FreeText | None
    recipient_email: FreeText | None
    notes: FreeText | None
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
    network: FreeText | None
    country: str | None
    created_at: int


def render_invoice(row: Invoice, site: Site) -> ShownInvoice:
    """An invoice without its lines.

    Choice: the processor's ids are shown once the invoice was sent, not while it is being handed over. `payment_url` is ours: without
    it nobody could be told where to pay but by the processor's mail.
    """
    handed = row.status != "draft"
    return render_fields(
        row,
        ShownInvoice,
        org_id=row.organisation,
        period_id=row.period,
        invoice_number=row.number,
        payments_connect_account_id=row.connect_account if handed else None,
        payments_invoice_id=row.processor_invoice if handed else None,
        pdf_url=f"{site.base_url}/v1/invoices/{row.id}/pdf" if row.document else None,
        payment_url=row.pay_url if handed else None,
        created_at=row.created,
        updated_at=row.updated,
    )


def render_invoice_lines(row: Invoice, lines: Sequence[InvoiceLineRow], month: int) -> list[LineItem]:
    """The lines of an invoice; `month` is YYYYMM."""
    description, currency = f"Mobile data {invoice_month_name(month)}", cast(Currency, row.currency)
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


def no_such_invoice() -> NotFound:
    """The refusal; unknown and foreign invoices are answered alike."""
    return NotFound("Your organisation has no invoice with this id", param="id", hint="list_invoices names them")


INVOICE_ID_EXAMPLE = "inv_01k0a8w7zv6q4k3m2n1p0r9s8t"
PERIOD_ID_EXAMPLE = "per_01k0a8w7zv6q4k3m2n1p0r9s8t"
DRAFT_INVOICE_EXAMPLE: ShownInvoice = {
    "id": INVOICE_ID_EXAMPLE,
    "org_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "period_id": PERIOD_ID_EXAMPLE,
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
BILLED_INVOICE: ShownInvoice = {**DRAFT_INVOICE_EXAMPLE, "recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"}
MANY_INVOICE_LINES = 1000
"""Lines that are read and written out on the event loop; more would hold it up."""


class InvoiceWithPeriod(NamedTuple):
    row: Invoice
    period: InvoicePeriodRow


def find_invoice_with_period(connection: Connection, *, invoice: str, organisation: str) -> InvoiceWithPeriod | None:
    """The invoice with this id and its period; None where the `organisation` has none."""
    row = find_invoice(connection, invoice=invoice, organisation=organisation)
    period = None if row is None else find_period(connection, period=row.period, organisation=organisation)
    return None if row is None or period is None else InvoiceWithPeriod(row, period)


async def own_invoice(ctx: Ctx, params: InvoiceRef) -> InvoiceWithPeriod:
    """The caller's invoice and its period. Raises NotFound for a foreign one."""
    found = await ctx.deps.store.read(find_invoice_with_period, invoice=params.id, organisation=ctx.organisation)
    if found is None:
        raise no_such_invoice()
    return found


def read_invoice_version(connection: Connection, ctx: Ctx, params: InvoiceRef, hold: bool) -> ObjectVersion | None:
    row = (hold_invoice if hold else find_invoice)(connection, invoice=params.id, organisation=ctx.organisation)
    return None if row is None else ObjectVersion(row, row.updated)


INVOICE_VERSION = Versioned("invoice", read_invoice_version, "get_invoice", ("update_invoice", "void_invoice"))


def current_invoice(connection: Connection, row: Invoice) -> Invoice:
    """The row as it is now; no invoice is ever deleted."""
    found = find_invoice(connection, invoice=row.id, organisation=row.organisation)
    if found is None:
        raise RuntimeError(f"there is no invoice {row.id}")
    return found


class InvoiceLines(InvoiceRef):
    """Which invoice, and which of its lines. Without a limit, over HTTP, all of them."""

    limit: Annotated[int | None, Field(ge=1, le=1000, description="Lines at most, 1-1000.")] = None
    starting_after: Annotated[str | None, Field(max_length=64, description="`next` of the page before, or the id of its last line.")] = None


class WholeInvoice(ShownInvoice):
    """An invoice with its period and `line_items`, one per SIM in the order of the ICCIDs; they add up to `subtotal_cents`.

    `line_items_total` is how many lines the invoice has, also where `limit` left some out.
    """

    period: InvoicePeriod
    line_items_total: int
    line_items: list[LineItem]


STREAMED_LINES = 250
"""Lines that are read and sent in one step: some 100 KB and two milliseconds of the event loop."""
LINE_ITEM_BYTES = 400
"""About as many has a line in JSON."""
LINE_ITEM_EXAMPLE: LineItem = {
    "id": "ili_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "invoice_id": INVOICE_ID_EXAMPLE,
    "iccid": "8988303000000912345",
    "description": "Mobile data October 2026",
    "bytes_up": 9_380_000_000,
    "bytes_down": 40_000_000_000,
    "bytes_total": 49_380_000_000,
    "unit_price_cents": 250,
    "quantity": 1,
    "amount_cents": 12_345,
    "currency": "EUR",
    "network": "Nordic Mobile",
    "country": "NO",
    "created_at": DRAFT_INVOICE_EXAMPLE["created_at"],
}
PERIOD_OF_EXAMPLE_INVOICE: InvoicePeriod = {
    "id": PERIOD_ID_EXAMPLE,
    "org_id": DRAFT_INVOICE_EXAMPLE["org_id"],
    "year": 2026,
    "month": 10,
    "status": "invoiced",
    "closed_at": 1_793_664_000,
    "created_at": 1_790_812_860,
}


class InvoicesQuery(ListPage):
    """Which invoices, and which part of their list."""

    status: Annotated[InvoiceStatus | None, Field(description="Only these.")] = None
    period_id: Annotated[str | None, Field(max_length=64, description="Only of this month, per_...; list_invoice_periods names it.")] = None
    since: MadeSince = None
    until: MadeUntil = None
    recipient: Annotated[str | None, Field(min_length=1, max_length=200, description="A part of who is billed: name or address.")] = None


@operation(
    "GET",
    "/v1/invoices",
    title="List invoices",
    examples=[
        Example("Our newest invoices", {"limit": 1}, {"object": "list", "data": [DRAFT_INVOICE_EXAMPLE], "has_more": True}),
        Example(
            "Which drafts of a month are there?",
            {"status": "draft", "period_id": PERIOD_ID_EXAMPLE},
            {"object": "list", "data": [DRAFT_INVOICE_EXAMPLE], "has_more": False},
        ),
        Example("What did we bill a customer?", {"recipient": "ferries"}, {"object": "list", "data": [BILLED_INVOICE], "has_more": False}),
    ],
)
async def list_invoices(ctx: Ctx, params: InvoicesQuery) -> ListOf[ShownInvoice]:
    """List your organisation's invoices without their lines, newest first."""
    asked = InvoiceFilter(params.status, params.period_id, params.since, params.until, params.recipient)
    most, after = params.limit + 1, params.starting_after
    look = read_invoices if params.recipient is None else runs_in_thread(read_invoices)
    rows = await ctx.deps.store.read(look, organisation=ctx.organisation, asked=asked, after=after, most=most)
    return list_page([render_invoice(row, ctx.deps.site) for row in rows], params.limit)


@operation(
    "GET",
    "/v1/invoices/{id}",
    versioned=INVOICE_VERSION,
    title="Get invoice",
    raises=[NotFound],
    tool_defaults={"limit": 20},
    examples=[
        Example(
            "An invoice with its lines",
            {"id": INVOICE_ID_EXAMPLE},
            {**DRAFT_INVOICE_EXAMPLE, "period": PERIOD_OF_EXAMPLE_INVOICE, "line_items_total": 1, "line_items": [LINE_ITEM_EXAMPLE]},
        ),
    ],
)
async def get_invoice(ctx: Ctx, params: InvoiceLines) -> WholeInvoice | StreamedAnswer:
    """Get one invoice with its period and one line per SIM.

    Totals are of the whole invoice, whatever `limit` is; `line_items_total` says how many lines there are.

    Without `limit` HTTP gives all lines, in the thousands as a stream: a credential reads one answer above 1 MB at a time. With
    `limit` the next page is named by the header Link, over MCP by `_meta.next`. Lines never change, so pages of one invoice agree.
    """
    read = ctx.deps.store.read
    found = await own_invoice(ctx, params)
    after = await invoice_line_position(ctx, found, params.starting_after)
    left = max(0, found.row.lines - after)
    if params.limit is None and left > MANY_INVOICE_LINES:
        return StreamedAnswer(invoice_pieces(ctx, found, after), size=left * LINE_ITEM_BYTES)
    most = left if params.limit is None else params.limit
    lines = await read(read_invoice_lines, invoice=found.row.id, after=after, most=most)
    if left > most:
        ctx.next_cursor = str(after + most)
        ctx.note = f"{most} of {found.row.lines} lines."
    return {**invoice_head(ctx, found), "line_items": render_invoice_lines(found.row, lines, found.period.month)}


class InvoiceHead(ShownInvoice):
    """An invoice without its lines, as `WholeInvoice` begins."""

    period: InvoicePeriod
    line_items_total: int


def invoice_head(ctx: Ctx, found: InvoiceWithPeriod) -> InvoiceHead:
    return {
        **render_invoice(found.row, ctx.deps.site),
        "period": render_invoice_period(found.period, ctx.now),
        "line_items_total": found.row.lines,
    }


async def invoice_line_position(ctx: Ctx, found: InvoiceWithPeriod, cursor: str | None) -> int:
    """The position that a page begins behind; BadRequest for a cursor that names no line of the invoice."""
    if cursor is None:
        return 0
    if cursor.isascii() and cursor.isdigit():
        return min(int(cursor), found.row.lines)
    look = runs_in_thread(find_line_position) if found.row.lines > MANY_INVOICE_LINES else find_line_position
    position = await ctx.deps.store.read(look, invoice=found.row.id, line=cursor)
    if position is None:
        raise BadRequest(
            "starting_after: no line of this invoice", param="starting_after", hint="Take it from the page before: `next`, or its last id"
        )
    return position


async def invoice_pieces(ctx: Ctx, found: InvoiceWithPeriod, after: int) -> AsyncGenerator[bytes]:
    """The same bytes as the whole answer would be, read page by page as they are sent: no read stays open while a reader is waited for."""

    def piece(connection: Connection, *, after: int) -> bytes:
        lines = read_invoice_lines(connection, invoice=found.row.id, after=after, most=STREAMED_LINES)
        return orjson.dumps(render_invoice_lines(found.row, lines, found.period.month))[1:-1]

    yield orjson.dumps(invoice_head(ctx, found))[:-1] + b',"line_items":['
    for position in range(after, found.row.lines, STREAMED_LINES):
        part = await ctx.deps.store.read(piece, after=position)
        yield part if position == after else b"," + part
        await checkpoint()  # a reader who is never waited for would keep the loop to itself
    yield b"]}"


PAID_INVOICE_HINT = (
    "operator_billing_create_refund gives money back, where it was paid through the processor; "
    "operator_billing_list_charges names the charge: look for the total and the time of payment"
)


def handover_key(row: Invoice) -> str:
    """The processor's key: the same for the same invoice with the same recipient and day to pay by, unless it was removed there."""
    read = orjson.dumps([row.recipient_name, row.recipient_email, row.due_at])
    return f"{row.id}-{row.discarded}-{hashlib.sha256(read).hexdigest()[:16]}"


def processor_invoice_request(row: Invoice, month: int) -> NewInvoice:
    """The invoice `row` of `month` (YYYYMM) for the processor: the same total, of one line and the fee."""
    sims = f"{row.lines} SIM{'' if row.lines == 1 else 's'}"
    lines = [InvoiceLine(f"Mobile data {invoice_month_name(month)}, {sims}, invoice {row.number}", row.subtotal_cents)]
    if row.platform_fee_cents:
        lines.append(InvoiceLine("Platform fee", row.platform_fee_cents))
    return NewInvoice(
        key=handover_key(row),
        number=row.number,
        currency=row.currency,
        lines=tuple(lines),
        fee=row.platform_fee_cents,
        due_at=row.due_at or 0,
        # Choice: kept as it was sent, and shown to others without what changes how the text around it reads.
        recipient_name=" ".join(MISLEADING_CHARACTERS.sub(" ", row.recipient_name or "").split()),
        recipient_email=row.recipient_email or "",
        metadata={"invoice": row.id},
    )


class InvoicePaid(Conflict):
    """What was paid is given back, not voided."""

    code = "invoice_paid"


def invoice_is_paid() -> InvoicePaid:
    return InvoicePaid(
        "The invoice is paid, and a paid invoice cannot be voided; nothing was done",
        hint=PAID_INVOICE_HINT,
    )


def invoice_is_busy() -> Conflict:
    return Conflict("The invoice was sent or changed while it was about to be voided; nothing was done", hint="Repeat the call")


def voiding_outcome_unknown() -> PaymentsError:
    return PaymentsError(
        "The payment processor did not say whether it voided the invoice; here it stays as it was",
        code="OUTCOME_UNKNOWN",
        outcome_unknown=True,
        hint="Repeat the call, with a new key or none: that completes it",
    )


def void_without_processor(connection: Connection, *, deps: Deps, row: Invoice, now: float) -> ShownInvoice:
    """One that the processor has nothing of; a void one stays as it is."""
    voided = write_void_invoice(connection, invoice=row.id, organisation=row.organisation, now=now)
    if voided is None:
        voided = current_invoice(connection, row)
        if voided.status == "paid":
            raise invoice_is_paid()
        if voided.status != "void":
            raise invoice_is_busy()
        return render_invoice(voided, deps.site)
    log_invoice_voided(connection, deps, voided)
    return render_invoice(voided, deps.site)


@dataclass(slots=True)
class InvoiceWithdrawal:
    """One call that takes an invoice back. `row` is what was found when it began."""

    ctx: Ctx
    row: Invoice
    month: int

    @property
    def lost_answer(self) -> tuple[int, object]:
        unknown = voiding_outcome_unknown()
        return unknown.status, unknown.body(self.ctx.call.request_id)

    def begin(self, connection: Connection, *, now: float) -> None:
        """Nothing is marked, since repeating it all does no harm."""
        del now
        self.row = current_invoice(connection, self.row)
        if self.row.status == "paid":
            raise invoice_is_paid()

    async def send(self, waited: float) -> SendOutcome[ProcessorInvoice | None]:
        """None, when nobody can pay it any more; or the invoice that was paid."""
        del waited
        try:
            return None if self.row.status == "void" else await self._withdraw()
        except PaymentsRefused as refusal:
            return refusal
        except PaymentsError as error:
            if error.before_execution:
                raise
            return UNKNOWN

    async def _withdraw(self) -> ProcessorInvoice | None:
        payments, account = self.ctx.deps.payments, self.row.connect_account or ""
        named = self.row.processor_invoice or await self._drafted(account)
        if named is None:
            return None
        self.row = self.row._replace(processor_invoice=named)
        try:
            await payments.void_invoice(account, named, key=f"{self.row.id}-{self.ctx.call.request_id}")
        except NotFound:
            return None
        except PaymentsRefused:
            found = await self._found(account, named)
            if found is None or found.status in ("paid", "void"):
                return found if found is not None and found.status == "paid" else None
            raise
        return None

    async def _drafted(self, account: str) -> str | None:
        """Its id at the processor, by making it again under the same key, so that no draft of it stays there.

        Where that fails there is nothing to take back: an invoice is sent to nobody before its id is kept.
        """
        try:
            return (await self.ctx.deps.payments.draft_invoice(account, processor_invoice_request(self.row, self.month))).id
        except (PaymentsError, PaymentsRefused, NotFound):
            return None

    async def _found(self, account: str, named: str) -> ProcessorInvoice | None:
        try:
            return await self.ctx.deps.payments.find_invoice(account, named)
        except NotFound:
            return None

    def settle(self, connection: Connection, *, outcome: SendOutcome[ProcessorInvoice | None], now: float) -> Conclusion:
        refusal = voiding_outcome_unknown() if outcome is UNKNOWN else outcome
        if refusal is None:
            voided = void_withdrawn_invoice(connection, row=self.row, now=now)
            if voided is not None:
                log_invoice_voided(connection, self.ctx.deps, voided)
            row = voided or current_invoice(connection, self.row)
            if row.status == "void":
                return Conclusion(200, render_invoice(row, self.ctx.deps.site), False, "ok")
            refusal = invoice_is_paid() if row.status == "paid" else invoice_is_busy()
        elif not isinstance(refusal, Refusal):
            take_invoice_payment(connection, deps=self.ctx.deps, account=self.row.connect_account or "", invoice=refusal, now=now)
            refusal = invoice_is_paid()
        return Conclusion(refusal.status, refusal.body(self.ctx.call.request_id), outcome is UNKNOWN, refusal.error_code)

    def unsend(self, connection: Connection, *, now: float) -> None:
        """Nothing was marked."""


async def invoice_to_void(ctx: Ctx, params: InvoiceRef) -> InvoiceWithPeriod:
    found = await own_invoice(ctx, params)
    row = found.row
    if row.status in ("draft", "sent") and (row.sending or row.processor_invoice is not None):
        ctx.stage()
    return found


async def name_invoice(_ctx: Ctx, _params: InvoiceRef, voiding: InvoiceWithPeriod) -> Challenge:
    """The invoice with its amount and whom it was made out to."""
    row = voiding.row
    details = {
        "amount": payment_amount_text(row.total_cents, row.currency),
        "recipient": row.recipient_name or row.recipient_email,
        "month": f"{voiding.period.month // 100}-{voiding.period.month % 100:02d}",
        "status": row.status,
    }
    loss = describe_loss("invoice", row.number, **details)
    return Challenge(f"This will void an invoice: {name_losses((loss,))}. It cannot be undone.", (loss,))


def due_of_invoice(row: Invoice) -> Due:
    """The total, which its recipient owes or owes no more."""
    return Due((Money(row.total_cents, row.currency),))


async def due_of_voiding(_ctx: Ctx, _params: InvoiceRef, found: InvoiceWithPeriod) -> Due:
    """The total, which its recipient owes no more."""
    return due_of_invoice(found.row) if found.row.status in ("draft", "sent") else NOTHING_DUE


@operation(
    "DELETE",
    "/v1/invoices/{id}",
    spends=due_of_voiding,
    irreversible=True,
    scope=Scope.WRITE,
    moves=True,
    title="Void invoice",
    access=invoice_to_void,
    challenge=name_invoice,
    raises=[NotFound, InvoicePaid, PaymentsError, PaymentsRefused],
    examples=[Example("It was made twice", {"id": INVOICE_ID_EXAMPLE}, {**DRAFT_INVOICE_EXAMPLE, "status": "void"})],
)
async def void_invoice(ctx: Ctx, _params: InvoiceRef, voiding: InvoiceWithPeriod) -> ShownInvoice:
    """Void an invoice that is not paid; it stays, with its number.

    Cannot be undone; again: the same answer. A paid one is refused (409 invoice_paid). OUTCOME_UNKNOWN: repeat, without key.

    One that was sent through the payment processor is voided there first, so that nobody can pay it any more; one that was paid
    there meanwhile stays, and is paid.
    """
    if ctx.staged:
        return (await send_once(ctx, InvoiceWithdrawal(ctx, voiding.row, voiding.period.month))).body
    return await ctx.settle_result(void_without_processor, deps=ctx.deps, row=voiding.row, now=ctx.now)
