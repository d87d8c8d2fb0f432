"""A draft becomes an invoice: with its document, and without the payment processor."""

import hashlib
from typing import NamedTuple

from operations.deps import Ctx
from operations.invoicing.invoice.document import make_pdf
from operations.invoicing.invoice.edit import Given, changed_meanwhile, due_at_of, judged
from operations.invoicing.invoice.whole import DocumentRows, current_invoice, with_document_rows
from operations.invoicing.invoice_shape import ShownInvoice, shown_invoice
from registry.ports import Site
from storage.connection import Connection
from storage.money.invoice_documents import insert_document
from storage.money.invoices import Invoice, issue_invoice


class MadeDocument(NamedTuple):
    """The PDF and its SHA-256 in hexadecimal."""

    content: bytes
    sha256: str


async def document_for(ctx: Ctx, row: Invoice) -> MadeDocument:
    """The PDF of an invoice as `row` says it will be."""

    def as_it_is(rows: DocumentRows) -> DocumentRows:
        return rows

    found = await with_document_rows(ctx.deps, invoice=row.id, organisation=row.organisation, work=as_it_is)
    if found is None:
        raise RuntimeError(f"there is no invoice {row.id}")
    content = await make_pdf(invoice=row, rows=found, issuer=ctx.caller.organisation_name)
    return MadeDocument(content, hashlib.sha256(content).hexdigest())


async def issue(ctx: Ctx, row: Invoice, given: Given) -> ShownInvoice:
    """Send an invoice without the processor: how it reaches its recipient is the organisation's own business."""
    wanted = judged(row, given, "sent", ctx.now)
    ready = wanted._replace(status="sent", issued_at=int(ctx.now), due_at=due_at_of(wanted, ctx.now), document=1)
    made = await document_for(ctx, ready)
    return await ctx.settle_result(write, row=ready, given=given, made=made, now=ctx.now, site=ctx.deps.site)


def write(connection: Connection, *, row: Invoice, given: Given, made: MadeDocument, now: float, site: Site) -> ShownInvoice:
    """The status and the document; of two calls at once the second finds what the first did."""
    issued = issue_invoice(connection, row=row, now=now)
    if issued is None:
        found = current_invoice(connection, row)
        judged(found, given, "sent", now)
        if found.status != "sent":
            raise changed_meanwhile()
        return shown_invoice(found, site)
    insert_document(connection, invoice=row.id, content=made.content, sha256=made.sha256, now=now)
    return shown_invoice(issued, site)
