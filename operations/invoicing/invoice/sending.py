"""Sending an invoice through the payment processor, however often it is tried: draft it there, keep its id, send it, keep what came of it.

Nothing is sent to anybody before its id at the processor is kept here, and everything there is done under keys made from the invoice and
from what its recipient reads. So whatever fails, and whoever tries again, there is one invoice that the recipient can pay.
"""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from clients.payments.records import InvoiceLine, NewInvoice, ProcessorInvoice
from operations.deps import Ctx
from operations.invoicing.invoice.edit import Given, NotEditable, changed_meanwhile, due_at_of, judged
from operations.invoicing.invoice.issuing import MadeDocument, document_for
from operations.invoicing.invoice.months import month_name
from operations.invoicing.invoice.whole import current_invoice
from operations.invoicing.invoice_shape import shown_invoice
from operations.services.plain_line import MISLEADING
from registry.errors import BadRequest, Conflict, NotFound, Refusal, StoreUnavailable
from registry.payments_errors import PaymentsError, PaymentsRefused
from registry.ports import Conclusion, Site
from storage.connection import Connection
from storage.money.invoice_documents import insert_document
from storage.money.invoices import (
    Invoice,
    begin_sending,
    call_off_sending,
    finish_sending,
    mark_documented,
    record_processor_invoice,
)

ARRIVED = ("open", "paid", "uncollectible")
"""What the processor calls an invoice that its recipient has."""


class NotAsDrafted(Conflict):
    """The processor's invoice is not the one that it was asked to make."""

    code = "processor_invoice_differs"


class CalledOff(Exception):
    """Another call ended this handing over; nothing of it was sent."""


class Sent(NamedTuple):
    """The processor has sent it: the row as it is to be, and its document."""

    row: Invoice
    made: MadeDocument


@dataclass(slots=True)
class Handover:
    """One call that hands an invoice over. `row` is what was found when it began, with what the recipient will read."""

    ctx: Ctx
    row: Invoice
    given: Given
    month: int
    account: str
    mine: bool = False
    """This call began it; False: it goes on with what another one began."""
    named: str | None = None
    """The invoice's id at the processor, once it is known."""

    def begin(self, connection: Connection, *, now: float) -> None:
        """The commit before the processor is asked."""
        wanted = judged(self.row, self.given, "sent", now)
        began = begin_sending(connection, row=wanted._replace(due_at=due_at_of(wanted, now)), account=self.account, now=now)
        self.mine = began is not None
        found = began or current_invoice(connection, self.row)
        judged(found, self.given, "sent", now)
        if found.status == "draft" and not found.sending:
            raise changed_meanwhile()
        self.row = found

    async def run(self) -> Sent | Refusal:
        """What came of it, for sure; PaymentsError and StoreUnavailable: nobody knows, and it can be tried again."""
        try:
            drafted = await self._draft()
            await self._keep(drafted)
            sent = await self._send(drafted)
        except (PaymentsRefused, NotFound, NotAsDrafted) as refusal:
            return refusal
        row = self.row._replace(
            status="sent", processor_invoice=sent.id, pay_url=sent.pay_url, issued_at=int(self.ctx.deps.clock.now()), document=1
        )
        return Sent(row, await document_for(self.ctx, row))

    async def tidy(self) -> bool:
        """Remove at the processor what is no invoice of ours: whether it is surely gone. Where that fails the account's owner finds it."""
        if self.named is None:
            return False
        try:
            await self.ctx.deps.payments.void_invoice(self._account, self.named, key=f"{key_of(self.row)}-tidy")
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
            drafted = await payments.draft_invoice(self._account, new_invoice(self.row, self.month))
            self.named = drafted.id
        if drafted.status == "void" or (drafted.total, drafted.currency) != (self.row.total_cents, self.row.currency):
            raise not_as_drafted(drafted, self.row)
        return drafted

    async def _keep(self, drafted: ProcessorInvoice) -> None:
        deps = self.ctx.deps
        if await deps.store.write(record_processor_invoice, row=self.row, named=drafted.id, now=deps.clock.now()):
            self.row = self.row._replace(processor_invoice=drafted.id)
            return
        found = await deps.store.read(current_invoice, self.row)
        if found.processor_invoice != drafted.id or found.status not in ("sent", "paid"):
            raise CalledOff

    async def _send(self, drafted: ProcessorInvoice) -> ProcessorInvoice:
        payments = self.ctx.deps.payments
        try:
            return await payments.send_invoice(self._account, drafted.id, key=f"{key_of(self.row)}-send")
        except (PaymentsRefused, NotFound):
            # Another call may have sent it just now: the processor's own word decides.
            found = await payments.find_invoice(self._account, drafted.id)
            if found.status in ARRIVED:
                return found
            raise


async def hand_over(ctx: Ctx, row: Invoice, given: Given, *, account: str, month: int) -> Conclusion:
    """Hand an invoice over, or go on with a handing over that nobody knows the end of."""
    require_recipient(judged(row, given, "sent", ctx.now))
    over = Handover(ctx, row, given, month, account)
    unknown = not_known()
    await ctx.dispatch((unknown.status, unknown.body(ctx.call.request_id)), over.begin, now=ctx.deps.clock.now())
    if over.row.status != "draft":
        return await ctx.conclude(as_it_is, over=over, now=ctx.deps.clock.now())
    if over.mine:
        ctx.if_unsent(call_off_sending, row=over.row, now=ctx.now)
    return await concluded(ctx, over)


async def concluded(ctx: Ctx, over: Handover) -> Conclusion:
    """The second commit."""
    try:
        came = await over.run()
    except CalledOff:  # a draft may stay at the processor, which nobody will send and only the account's owner sees
        return await ctx.conclude(as_it_is, over=over, now=ctx.deps.clock.now())
    except PaymentsError as error:
        if error.before_execution and over.named is None:
            raise  # nothing has left; the pipeline takes the dispatch back
        return await ctx.conclude(stays_unknown, request_id=ctx.call.request_id)
    except StoreUnavailable:
        return await ctx.conclude(stays_unknown, request_id=ctx.call.request_id)
    if isinstance(came, Refusal):
        # The processor repeats a refusal under its key, so the next try has another one.
        removed = over.named is None or await over.tidy()
        return await ctx.conclude(not_sent, over=over, refusal=came, removed=removed, now=ctx.deps.clock.now())
    done = await ctx.conclude(arrived, over=over, sent=came, now=ctx.deps.clock.now())
    if done.status != 200:  # it was voided here, or begun anew, while the processor sent it
        await over.tidy()
    return done


def arrived(connection: Connection, *, over: Handover, sent: Sent, now: float) -> Conclusion:
    """The recipient has it."""
    row = finish_sending(connection, row=sent.row, now=now) or current_invoice(connection, sent.row)
    if row.status not in ("sent", "paid") or row.processor_invoice != sent.row.processor_invoice:
        return as_it_is(connection, over=over, now=now)
    insert_document(connection, invoice=row.id, content=sent.made.content, sha256=sent.made.sha256, now=now)
    if not row.document:  # the processor told of the payment before we knew that it was sent
        row = mark_documented(connection, invoice=row.id) or row
    return Conclusion(200, shown_invoice(row, site_of(over)), False, "ok")


def as_it_is(connection: Connection, *, over: Handover, now: float) -> Conclusion:
    """Somebody else settled it: what the row says is the answer."""
    row = current_invoice(connection, over.row)
    request_id = over.ctx.call.request_id
    try:
        judged(row, over.given, "sent", now)
    except (NotEditable, BadRequest) as refusal:
        return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code)
    if row.status == "draft":
        refusal = changed_meanwhile()
        return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code)
    return Conclusion(200, shown_invoice(row, site_of(over)), False, "ok")


def not_sent(connection: Connection, *, over: Handover, refusal: Refusal, removed: bool, now: float) -> Conclusion:
    """A draft as before, which may be mended and sent again."""
    call_off_sending(connection, row=over.row, removed=removed, now=now)
    return Conclusion(refusal.status, refusal.body(over.ctx.call.request_id), False, refusal.error_code)


def stays_unknown(connection: Connection, *, request_id: str) -> Conclusion:
    """Whoever sends it again finds out."""
    del connection
    error = not_known()
    return Conclusion(error.status, error.body(request_id), True, error.error_code)


def site_of(over: Handover) -> Site:
    """What links in answers begin with."""
    return over.ctx.deps.site


def not_known() -> PaymentsError:
    """The processor may have sent it, or not."""
    return PaymentsError(
        "The payment processor did not say whether it sent the invoice; it sends it once at most",
        code="OUTCOME_UNKNOWN",
        outcome_unknown=True,
        hint='Send {"status": "sent"} again, with a new key or none: that completes it and sends nothing twice. void_invoice calls it off',
    )


def not_as_drafted(found: ProcessorInvoice, row: Invoice) -> NotAsDrafted:
    """Taxes or discounts of the account's own settings, or somebody changed or removed the draft there."""
    text = "was removed there before it was sent"
    if found.status != "void":
        text = f"comes to {found.total} {found.currency} there, and to {row.total_cents} {row.currency} here"
    return NotAsDrafted(
        f"The payment processor's invoice {text}; nothing was sent",
        hint="Look at the account's settings for taxes and discounts at the processor, then send it again",
    )


def require_recipient(row: Invoice) -> None:
    """The processor sends it to somebody."""
    given = {"recipient_name": row.recipient_name, "recipient_email": row.recipient_email}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise BadRequest(
            f"{', '.join(missing)}: missing; your account at the payment processor is active, so the invoice is sent through it to a "
            "recipient",
            param=missing[0],
            hint="Send along: " + ", ".join(['{"status": "sent"', *(f'"{name}": ...' for name in missing)]) + "}",
        )


def key_of(row: Invoice) -> str:
    """The processor's key: the same for the same invoice with the same recipient and day to pay by, unless it was removed there."""
    read = orjson.dumps([row.recipient_name, row.recipient_email, row.due_at])
    return f"{row.id}-{row.discarded}-{hashlib.sha256(read).hexdigest()[:16]}"


def new_invoice(row: Invoice, month: int) -> NewInvoice:
    """What the processor is to make of it: the same total, of one line and the fee."""
    sims = f"{row.lines} SIM{'' if row.lines == 1 else 's'}"
    lines = [InvoiceLine(f"Mobile data {month_name(month)}, {sims}, invoice {row.number}", row.subtotal_cents)]
    if row.platform_fee_cents:
        lines.append(InvoiceLine("Platform fee", row.platform_fee_cents))
    return NewInvoice(
        key=key_of(row),
        number=row.number,
        currency=row.currency,
        lines=tuple(lines),
        fee=row.platform_fee_cents,
        due_at=row.due_at or 0,
        # Choice: kept as it was sent, and shown to others without what changes how the text around it reads.
        recipient_name=" ".join(MISLEADING.sub(" ", row.recipient_name or "").split()),
        recipient_email=row.recipient_email or "",
        metadata={"invoice": row.id},
    )
