"""Changing a draft, and sending it: by the organisation itself, or through the payment processor.

Through the processor it may be tried however often: draft it there, keep its id, send it, keep what came of it. Nothing is sent to
anybody before its id at the processor is kept here, and everything there is done under keys made from the invoice and from what its
recipient reads. So whatever fails, and whoever tries again, there is one invoice that the recipient can pay.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from clients.payments.records import ProcessorInvoice
from operations.deps import Ctx
from operations.invoicing.invoice_document import InvoiceDocument, make_invoice_document
from operations.invoicing.invoices import (
    BILLED_INVOICE,
    INVOICE_ID_EXAMPLE,
    INVOICE_VERSION,
    PAID_INVOICE_HINT,
    InvoiceRef,
    RecipientName,
    ShownInvoice,
    current_invoice,
    due_of_invoice,
    handover_key,
    own_invoice,
    processor_invoice_request,
    render_invoice,
)
from operations.ledger.invoices import log_invoice_sent
from operations.ledger.payment_accounts import find_payment_account
from operations.ledger.send_once import UNKNOWN, SendOutcome, send_once
from operations.vocabulary import Email, without_default
from registry.clock import DAY_SECONDS, rfc3339_utc
from registry.errors import BadRequest, Conflict, NotFound, PaymentsError, PaymentsRefused, Refusal, StoreUnavailable
from registry.operation import NOTHING_DUE, Due, Example, Scope, operation
from registry.ports import Conclusion
from storage.engine.sql import Connection
from storage.invoices import (
    Invoice,
    begin_invoice_sending,
    cancel_invoice_sending,
    edit_invoice,
    finish_invoice_sending,
    insert_invoice_document,
    issue_invoice,
    mark_invoice_documented,
    record_processor_invoice,
)

INVOICE_DUE_DAYS = 30
"""Choice: due 30 days after it was sent, where nobody said otherwise."""
INVOICE_DUE_DAYS_LIMIT = 730
EDITABLE_INVOICE_FIELDS = ("recipient_name", "recipient_email", "notes", "due_at")
InvoiceFields = Mapping[str, str | int | None]
RequestedInvoiceStatus = Literal["draft", "sent"] | None


class InvoiceNotEditable(Conflict):
    """The invoice has left draft, or is about to."""

    code = "invoice_not_editable"


def apply_invoice_fields(row: Invoice, given: InvoiceFields, wish: RequestedInvoiceStatus, now: float) -> Invoice:
    """The row as it is to be; refused where it may not become so.

    Choice: a field that says what is there already changes nothing, so that a call that is repeated is no attempt to edit.
    """
    changes = {name: value for name, value in given.items() if value != getattr(row, name)}
    if wish == "sent" and row.status in ("paid", "void"):
        raise InvoiceNotEditable(
            f"status: the invoice is {row.status}, and is not sent any more", param="status", hint=invoice_state_hint(row)
        )
    if wish == "draft" and row.status != "draft":
        raise InvoiceNotEditable(
            f"status: the invoice is {row.status}, and does not become a draft again", param="status", hint=invoice_state_hint(row)
        )
    if changes and (row.status != "draft" or row.sending):
        first = next(iter(changes))
        state = "being handed to the payment processor" if row.status == "draft" else row.status
        raise InvoiceNotEditable(f"{first}: the invoice is {state}, and only drafts are edited", param=first, hint=invoice_state_hint(row))
    wanted = row._replace(**changes)
    if wanted.due_at is not None and ("due_at" in changes or wish == "sent") and not row.sending and row.status == "draft":
        require_due_date(wanted.due_at, now)
    return wanted


def invoice_state_hint(row: Invoice) -> str:
    if row.status == "paid":
        return PAID_INVOICE_HINT
    if row.status == "void":
        return "create_invoice makes another one of the same period"
    if row.status == "draft":
        return 'Send {"status": "sent"} again to have it completed, or void_invoice to call it off'
    return "void_invoice voids it, and create_invoice makes another one of the same period"


def require_due_date(due_at: int, now: float) -> None:
    latest = int(now) + INVOICE_DUE_DAYS_LIMIT * DAY_SECONDS
    if not now < due_at <= latest:
        when = rfc3339_utc(due_at) if due_at <= latest else "too far away"
        raise BadRequest(
            f"due_at: {due_at} ({when}) must be in the future, and at most {INVOICE_DUE_DAYS_LIMIT} days away: at most {latest}",
            param="due_at",
            hint=f"Unix seconds; now it is {int(now)}. null lets it be {INVOICE_DUE_DAYS} days after sending",
        )


def invoice_due_at(row: Invoice, now: float) -> int:
    return int(now) + INVOICE_DUE_DAYS * DAY_SECONDS if row.due_at is None else row.due_at


def invoice_changed_meanwhile() -> Conflict:
    return Conflict("The invoice was changed while it was about to be sent; nothing was sent", hint="Read it again, and send it again")


async def send_without_processor(ctx: Ctx, row: Invoice, given: InvoiceFields) -> ShownInvoice:
    """Send an invoice without the processor: how it reaches its recipient is the organisation's own business."""
    wanted = apply_invoice_fields(row, given, "sent", ctx.now)
    ready = wanted._replace(status="sent", issued_at=int(ctx.now), due_at=invoice_due_at(wanted, ctx.now), document=1)
    made, site = await make_invoice_document(ctx, ready), ctx.deps.site

    def write(connection: Connection, *, now: float) -> ShownInvoice:
        """The status and the document; of two calls at once the second finds what the first did."""
        issued = issue_invoice(connection, row=ready, now=now)
        if issued is None:
            found = current_invoice(connection, ready)
            apply_invoice_fields(found, given, "sent", now)
            if found.status != "sent":
                raise invoice_changed_meanwhile()
            return render_invoice(found, site)
        log_invoice_sent(connection, ctx.deps, issued)
        insert_invoice_document(connection, invoice=row.id, content=made.content, sha256=made.sha256, now=now)
        return render_invoice(issued, site)

    return await ctx.settle_result(write, now=ctx.now)


ARRIVED_INVOICE_STATUSES = ("open", "paid", "uncollectible")
"""What the processor calls an invoice that its recipient has."""


class InvoiceNotAsDrafted(Conflict):
    """The processor's invoice is not the one that it was asked to make."""

    code = "processor_invoice_differs"


class HandoverCalledOff(Exception):
    """Another call ended this handover; nothing of it was sent."""


class SentInvoice(NamedTuple):
    """The processor has sent it: the row as it is to be, and its document."""

    row: Invoice
    made: InvoiceDocument


@dataclass(slots=True)
class InvoiceHandover:
    """One call that hands an invoice over. `row` is what was found when it began, with what the recipient will read."""

    ctx: Ctx
    row: Invoice
    given: InvoiceFields
    month: int
    account: str
    mine: bool = False
    """This call began it; False: it goes on with what another one began."""
    named: str | None = None
    """The invoice's id at the processor, once it is known."""
    sent: bool = False
    """The processor has sent it."""
    removed: bool = True
    """What the processor had of it is surely gone."""

    @property
    def lost_answer(self) -> tuple[int, object]:
        unknown = handover_outcome_unknown()
        return unknown.status, unknown.body(self.ctx.call.request_id)

    def begin(self, connection: Connection, *, now: float) -> None:
        wanted = apply_invoice_fields(self.row, self.given, "sent", now)
        began = begin_invoice_sending(connection, row=wanted._replace(due_at=invoice_due_at(wanted, now)), account=self.account, now=now)
        self.mine = began is not None
        found = began or current_invoice(connection, self.row)
        apply_invoice_fields(found, self.given, "sent", now)
        if found.status == "draft" and not found.sending:
            raise invoice_changed_meanwhile()
        self.row = found

    async def send(self, waited: float) -> SendOutcome[SentInvoice | None]:
        """The invoice that the processor has sent; None: another call settled it.

        UNKNOWN: it can be tried again, by a call that goes on with this handing over.
        """
        del waited
        if self.row.status != "draft":
            return None
        try:
            outcome = await self._hand_over()
        except HandoverCalledOff:  # a draft may stay at the processor, which nobody will send and only the account's owner sees
            return None
        except PaymentsError as error:
            if error.before_execution and self.named is None:
                raise  # nothing has left
            return UNKNOWN
        except StoreUnavailable:
            return UNKNOWN
        if isinstance(outcome, Refusal):
            # The processor repeats a refusal under its key, so the next try has another one.
            self.removed = self.named is None or await self.tidy()
        self.sent = isinstance(outcome, SentInvoice)
        return outcome

    async def _hand_over(self) -> SentInvoice | Refusal:
        try:
            drafted = await self._draft()
            await self._keep(drafted)
            sent = await self._send(drafted)
        except (PaymentsRefused, NotFound, InvoiceNotAsDrafted) as refusal:
            return refusal
        row = self.row._replace(
            status="sent", processor_invoice=sent.id, pay_url=sent.pay_url, issued_at=int(self.ctx.deps.clock.now()), document=1
        )
        return SentInvoice(row, await make_invoice_document(self.ctx, row))

    def settle(self, connection: Connection, *, outcome: SendOutcome[SentInvoice | None], now: float) -> Conclusion:
        if outcome is UNKNOWN:
            return refused_handover(self, handover_outcome_unknown(), unknown=True)
        if isinstance(outcome, Refusal):
            cancel_invoice_sending(connection, row=self.row, removed=self.removed, now=now)
            return refused_handover(self, outcome)
        if outcome is None:
            return answer_with_current_invoice(connection, over=self, now=now)
        return record_invoice_sent(connection, over=self, sent=outcome, now=now)

    def unsend(self, connection: Connection, *, now: float) -> None:
        if self.mine:
            cancel_invoice_sending(connection, row=self.row, now=now)

    async def tidy(self) -> bool:
        """Void at the processor what is no invoice of ours; True where it is surely gone. Else the account's owner finds it there."""
        if self.named is None:
            return False
        try:
            await self.ctx.deps.payments.void_invoice(self._account, self.named, key=f"{handover_key(self.row)}-tidy")
        except NotFound:
            return True
        except (PaymentsError, PaymentsRefused):
            return False
        return True

    @property
    def _account(self) -> str:
        return self.row.connect_account or self.account

    async def _draft(self) -> ProcessorInvoice:
        payments = self.ctx.deps.payments
        if self.row.processor_invoice is not None:
            self.named = self.row.processor_invoice
            drafted = await payments.find_invoice(self._account, self.named)
        else:
            drafted = await payments.draft_invoice(self._account, processor_invoice_request(self.row, self.month))
            self.named = drafted.id
        if drafted.status == "void" or (drafted.total, drafted.currency) != (self.row.total_cents, self.row.currency):
            raise invoice_differs_at_processor(drafted, self.row)
        return drafted

    async def _keep(self, drafted: ProcessorInvoice) -> None:
        deps = self.ctx.deps
        if await deps.store.write(record_processor_invoice, row=self.row, named=drafted.id, now=deps.clock.now()):
            self.row = self.row._replace(processor_invoice=drafted.id)
            return
        found = await deps.store.read(current_invoice, self.row)
        if found.processor_invoice != drafted.id or found.status not in ("sent", "paid"):
            raise HandoverCalledOff

    async def _send(self, drafted: ProcessorInvoice) -> ProcessorInvoice:
        payments = self.ctx.deps.payments
        try:
            return await payments.send_invoice(self._account, drafted.id, key=f"{handover_key(self.row)}-send")
        except (PaymentsRefused, NotFound):
            # Another call may have sent it just now: the processor's own word decides.
            found = await payments.find_invoice(self._account, drafted.id)
            if found.status in ARRIVED_INVOICE_STATUSES:
                return found
            raise


async def hand_over_invoice(ctx: Ctx, row: Invoice, given: InvoiceFields, *, account: str, month: int) -> Conclusion:
    require_invoice_recipient(apply_invoice_fields(row, given, "sent", ctx.now))
    over = InvoiceHandover(ctx, row, given, month, account)
    done = await send_once(ctx, over)
    if over.sent and done.status != 200:  # it was voided here, or begun anew, while the processor sent it
        await over.tidy()
    return done


def record_invoice_sent(connection: Connection, *, over: InvoiceHandover, sent: SentInvoice, now: float) -> Conclusion:
    finished = finish_invoice_sending(connection, row=sent.row, now=now)
    if finished is not None:
        log_invoice_sent(connection, over.ctx.deps, finished)
    row = finished or current_invoice(connection, sent.row)
    if row.status not in ("sent", "paid") or row.processor_invoice != sent.row.processor_invoice:
        return answer_with_current_invoice(connection, over=over, now=now)
    insert_invoice_document(connection, invoice=row.id, content=sent.made.content, sha256=sent.made.sha256, now=now)
    if not row.document:  # the processor told of the payment before we knew that it was sent
        row = mark_invoice_documented(connection, invoice=row.id) or row
    return Conclusion(200, render_invoice(row, over.ctx.deps.site), False, "ok")


def answer_with_current_invoice(connection: Connection, *, over: InvoiceHandover, now: float) -> Conclusion:
    row = current_invoice(connection, over.row)
    try:
        apply_invoice_fields(row, over.given, "sent", now)
    except (InvoiceNotEditable, BadRequest) as refusal:
        return refused_handover(over, refusal)
    if row.status == "draft":
        return refused_handover(over, invoice_changed_meanwhile())
    return Conclusion(200, render_invoice(row, over.ctx.deps.site), False, "ok")


def refused_handover(over: InvoiceHandover, refusal: Refusal, *, unknown: bool = False) -> Conclusion:
    return Conclusion(refusal.status, refusal.body(over.ctx.call.request_id), unknown, refusal.error_code)


def handover_outcome_unknown() -> PaymentsError:
    return PaymentsError(
        "The payment processor did not say whether it sent the invoice; it sends it once at most",
        code="OUTCOME_UNKNOWN",
        outcome_unknown=True,
        hint='Send {"status": "sent"} again, with a new key or none: that completes it and sends nothing twice. void_invoice calls it off',
    )


def invoice_differs_at_processor(found: ProcessorInvoice, row: Invoice) -> InvoiceNotAsDrafted:
    """Taxes or discounts of the account's own settings, or somebody changed or removed the draft there."""
    text = "was removed there before it was sent"
    if found.status != "void":
        text = f"comes to {found.total} {found.currency} there, and to {row.total_cents} {row.currency} here"
    return InvoiceNotAsDrafted(
        f"The payment processor's invoice {text}; nothing was sent",
        hint="Look at the account's settings for taxes and discounts at the processor, then send it again",
    )


def require_invoice_recipient(row: Invoice) -> None:
    given = {"recipient_name": row.recipient_name, "recipient_email": row.recipient_email}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise BadRequest(
            f"{', '.join(missing)}: missing; your account at the payment processor is active, so the invoice is sent through it to a "
            "recipient",
            param=missing[0],
            hint="Send along: " + ", ".join(['{"status": "sent"', *(f'"{name}": ...' for name in missing)]) + "}",
        )


REFUSED_INVOICE_STATUSES = {
    "paid": "An invoice becomes paid when the payment processor tells of the payment, and in no other way",
    "void": "void_invoice (DELETE on the same path) voids an invoice",
}


InvoiceNotes = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]+$",
        description="Printed on the invoice, 1-2000 characters, lines end with \\n; null removes.",
    ),
]


class InvoiceChange(InvoiceRef):
    """What to change; what is left out stays, null removes."""

    null_clears: ClassVar[frozenset[str]] = frozenset({"recipient_name", "recipient_email", "notes", "due_at"})

    status: Annotated[
        Literal["draft", "sent"],
        Field(description="`sent` sends a draft; `draft` changes nothing.", json_schema_extra=without_default),
    ] = "draft"
    recipient_name: RecipientName | None = None
    recipient_email: Annotated[Email | None, Field(description="Where it is sent, at most 254 characters; null removes.")] = None
    notes: InvoiceNotes | None = None
    due_at: Annotated[
        int | None,
        Field(ge=0, le=2**40, description="Day to pay by, Unix seconds, within 730 days; null or never set: 30 days after it is sent."),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _status_they_may_set(cls, given: object) -> object:
        if isinstance(given, dict) and "status" in given:
            status = given["status"]  # pyright: ignore[reportUnknownVariableType]  # JSON: the fields give it its types
            if status is None:
                raise BadRequest("status: null; an invoice always has one", param="status", hint="Leave it out to keep it")
            if isinstance(status, str) and status in REFUSED_INVOICE_STATUSES:
                raise BadRequest(f"status: {status} cannot be set", param="status", hint=REFUSED_INVOICE_STATUSES[status])
        return given  # pyright: ignore[reportUnknownVariableType]  # JSON: the fields give it its types

    @property
    def wish(self) -> RequestedInvoiceStatus:
        return self.status if "status" in self.model_fields_set else None

    @property
    def texts(self) -> InvoiceFields:
        return {name: getattr(self, name) for name in EDITABLE_INVOICE_FIELDS if name in self.model_fields_set}


class InvoiceToUpdate(NamedTuple):
    """An invoice of the caller's. `account` is where it is handed over, if it is to be."""

    row: Invoice
    month: int
    account: str


async def invoice_to_update(ctx: Ctx, params: InvoiceChange) -> InvoiceToUpdate:
    """The invoice; a foreign one is not found. What may be done with it is judged after the replay."""
    found = await own_invoice(ctx, params)
    account = ""
    # Choice: what comes to nothing is not handed to the processor, which would call it paid at once.
    if params.wish == "sent" and found.row.status == "draft" and found.row.total_cents:
        account = await handover_account(ctx, found.row)
        if account:
            ctx.stage()
    return InvoiceToUpdate(found.row, found.period.month, account)


async def handover_account(ctx: Ctx, row: Invoice) -> str:
    """Where an invoice is handed over: it stays with the account that it went to. Empty: it is sent without the processor."""
    if row.sending:
        return row.connect_account or ""
    connected = await find_payment_account(ctx)
    return connected.account if connected is not None and connected.status == "active" else ""


async def due_of_sending(_ctx: Ctx, params: InvoiceChange, found: InvoiceToUpdate) -> Due:
    """The total of a draft that is sent, which its recipient then owes; nothing for a draft that is edited."""
    return due_of_invoice(found.row) if params.wish == "sent" and found.row.status == "draft" else NOTHING_DUE


@operation(
    "PATCH",
    "/v1/invoices/{id}",
    spends=due_of_sending,
    irreversible=True,
    scope=Scope.WRITE,
    moves=True,
    versioned=INVOICE_VERSION,
    title="Update or send invoice",
    access=invoice_to_update,
    raises=[NotFound, InvoiceNotEditable, InvoiceNotAsDrafted, PaymentsError, PaymentsRefused],
    examples=[
        Example(
            "Say who is billed",
            {"id": INVOICE_ID_EXAMPLE, "recipient_name": "Fjord Ferries AS", "recipient_email": "accounts@fjord.example"},
            BILLED_INVOICE,
        ),
    ],
)
async def update_invoice(ctx: Ctx, params: InvoiceChange, editing: InvoiceToUpdate) -> ShownInvoice:
    """Change recipient, notes or due date of a draft, or send it with status sent.

    Only drafts change: afterwards 409 invoice_not_editable. Sending again changes nothing. OUTCOME_UNKNOWN: send again, without key.

    With an active account at the payment processor, `sent` makes an invoice there, which mails it to the recipient; `payment_url` is
    where it is paid, and the platform fee is kept from the payment. It needs `recipient_name` and `recipient_email`. Without such an
    account, or where the total is 0, the invoice is only marked as sent, and reaching the recipient is up to you. The PDF is made once
    at this moment, and figures, recipient and number stay for ever. `paid` is recorded when the processor tells of it; to void an
    invoice call void_invoice.
    """
    given = params.texts
    if ctx.staged:
        return (await hand_over_invoice(ctx, editing.row, given, account=editing.account, month=editing.month)).body
    if params.wish == "sent" and editing.row.status == "draft":
        return await send_without_processor(ctx, editing.row, given)

    def write(connection: Connection, *, now: float) -> ShownInvoice:
        """Change what is given, on the row as it is then; two that edit at once are applied one after the other."""
        while True:
            found = current_invoice(connection, editing.row)
            wanted = apply_invoice_fields(found, given, params.wish, now)
            changed = wanted if wanted == found else edit_invoice(connection, row=wanted, now=now)
            if changed is not None:
                return render_invoice(changed, ctx.deps.site)

    return await ctx.settle_result(write, now=ctx.now)
