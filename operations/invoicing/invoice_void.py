"""Voiding invoices."""

from operations.deps import Ctx
from operations.invoicing.invoice.voiding import InvoicePaid, take_back, void_here
from operations.invoicing.invoice.whole import InvoiceOfMonth, find_of_month
from operations.invoicing.invoice_shape import DRAFT, ID, InvoiceRef, ShownInvoice, no_such_invoice
from registry.errors import NotFound
from registry.limits import Scope
from registry.operation import Example, operation
from registry.payments_errors import PaymentsError, PaymentsRefused


async def invoice_to_void(ctx: Ctx, params: InvoiceRef) -> InvoiceOfMonth:
    """The invoice; a foreign one is not found."""
    found = await ctx.deps.store.read(find_of_month, invoice=params.id, organisation=ctx.organisation)
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
    examples=[Example("It was made twice", {"id": ID}, {**DRAFT, "status": "void"})],
)
async def void_invoice(ctx: Ctx, params: InvoiceRef, voiding: InvoiceOfMonth) -> ShownInvoice:
    """Void an invoice that is not paid; it stays, with its number.

    Cannot be undone; again: the same answer. A paid one is refused (409 invoice_paid). OUTCOME_UNKNOWN: repeat, without key.

    One that was sent through the payment processor is voided there first, so that nobody can pay it any more; one that was paid
    there meanwhile stays, and is paid.
    """
    del params
    if ctx.staged:
        return (await take_back(ctx, voiding.row, voiding.month)).body
    return await ctx.settle_result(void_here, row=voiding.row, now=ctx.now, site=ctx.deps.site)
