"""Voiding an invoice: with us, and before that at the processor where it was handed over."""

from dataclasses import dataclass

from clients.payments.records import ProcessorInvoice
from operations.deps import Ctx
from operations.invoicing.invoice_sending import PAID_INVOICE_HINT, processor_invoice_request
from operations.invoicing.invoices import (
    DRAFT_INVOICE_EXAMPLE,
    INVOICE_ID_EXAMPLE,
    InvoiceRef,
    InvoiceWithPeriod,
    ShownInvoice,
    current_invoice,
    find_invoice_with_period,
    no_such_invoice,
    render_invoice,
)
from operations.ledger.payment_intake import take_invoice_payment
from operations.ledger.send_once import UNKNOWN, SendOutcome, send_once
from registry.errors import Conflict, NotFound, PaymentsError, PaymentsRefused, Refusal
from registry.limits import Scope
from registry.operation import Example, operation
from registry.ports import Conclusion, Site
from storage.engine.connection import Connection
from storage.invoices import Invoice, void_withdrawn_invoice
from storage.invoices import void_invoice as write_void_invoice


class InvoicePaid(Conflict):
    """What was paid is given back, not voided."""

    code = "invoice_paid"


def invoice_is_paid() -> InvoicePaid:
    """Also one that was paid while it was being voided."""
    return InvoicePaid(
        "The invoice is paid, and a paid invoice cannot be voided; nothing was done",
        hint=PAID_INVOICE_HINT,
    )


def invoice_is_busy() -> Conflict:
    """Another call is at it."""
    return Conflict("The invoice was sent or changed while it was about to be voided; nothing was done", hint="Repeat the call")


def voiding_outcome_unknown() -> PaymentsError:
    """The processor may have voided it."""
    return PaymentsError(
        "The payment processor did not say whether it voided the invoice; here it stays as it was",
        code="OUTCOME_UNKNOWN",
        outcome_unknown=True,
        hint="Repeat the call, with a new key or none: that completes it",
    )


def void_without_processor(connection: Connection, *, row: Invoice, now: float, site: Site) -> ShownInvoice:
    """One that the processor has nothing of; a void one stays as it is."""
    voided = write_void_invoice(connection, invoice=row.id, organisation=row.organisation, now=now)
    if voided is None:
        voided = current_invoice(connection, row)
        if voided.status == "paid":
            raise invoice_is_paid()
        if voided.status != "void":
            raise invoice_is_busy()
    return render_invoice(voided, site)


@dataclass(slots=True)
class InvoiceWithdrawal:
    """One call that takes an invoice back. `row` is what was found when it began."""

    ctx: Ctx
    row: Invoice
    month: int

    @property
    def lost_answer(self) -> tuple[int, object]:
        """Nobody knows."""
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
        """Nobody can pay it any more; or it stays, and is paid; or nothing was done; or whoever voids it again finds out."""
        refusal = voiding_outcome_unknown() if outcome is UNKNOWN else outcome
        if refusal is None:
            row = void_withdrawn_invoice(connection, row=self.row, now=now) or current_invoice(connection, self.row)
            if row.status == "void":
                return Conclusion(200, render_invoice(row, self.ctx.deps.site), False, "ok")
            refusal = invoice_is_paid() if row.status == "paid" else invoice_is_busy()
        elif not isinstance(refusal, Refusal):
            take_invoice_payment(connection, account=self.row.connect_account or "", invoice=refusal, now=now)
            refusal = invoice_is_paid()
        return Conclusion(refusal.status, refusal.body(self.ctx.call.request_id), outcome is UNKNOWN, refusal.error_code)

    def unsend(self, connection: Connection, *, now: float) -> None:
        """Nothing was marked."""


async def invoice_to_void(ctx: Ctx, params: InvoiceRef) -> InvoiceWithPeriod:
    """The invoice; a foreign one is not found."""
    found = await ctx.deps.store.read(find_invoice_with_period, invoice=params.id, organisation=ctx.organisation)
    if found is None:
        raise no_such_invoice("id")
    row = found.row
    if row.status in ("draft", "sent") and (row.sending or row.processor_invoice is not None):
        ctx.stage()
    return found


@operation(
    "DELETE",
    "/v1/invoices/{id}",
    scope=Scope.WRITE,
    moves=True,
    title="Void invoice",
    access=invoice_to_void,
    raises=[NotFound, InvoicePaid, PaymentsError, PaymentsRefused],
    examples=[Example("It was made twice", {"id": INVOICE_ID_EXAMPLE}, {**DRAFT_INVOICE_EXAMPLE, "status": "void"})],
)
async def void_invoice(ctx: Ctx, params: InvoiceRef, voiding: InvoiceWithPeriod) -> ShownInvoice:
    """Void an invoice that is not paid; it stays, with its number.

    Cannot be undone; again: the same answer. A paid one is refused (409 invoice_paid). OUTCOME_UNKNOWN: repeat, without key.

    One that was sent through the payment processor is voided there first, so that nobody can pay it any more; one that was paid
    there meanwhile stays, and is paid.
    """
    del params
    if ctx.staged:
        return (await send_once(ctx, InvoiceWithdrawal(ctx, voiding.row, voiding.period.month))).body
    return await ctx.settle_result(void_without_processor, row=voiding.row, now=ctx.now, site=ctx.deps.site)
