"""An invoice as its recipient sees it."""

import re
from typing import Annotated, NamedTuple

from operations.deps import Ctx
from operations.invoicing.invoice.issuing import MadeDocument, document_for
from operations.invoicing.invoice.page import headers, page_of
from operations.invoicing.invoice.sheet import sheet_of
from operations.invoicing.invoice.whole import DocumentRows, with_document_rows
from operations.invoicing.invoice_shape import InvoiceRef, no_such_invoice
from registry.errors import NotFound
from registry.model import Document
from registry.operation import Example, operation
from storage.connection import Connection
from storage.money.invoice_documents import StoredDocument, find_document, insert_document
from storage.money.invoices import Invoice, find_invoice, mark_documented

UNSAFE = re.compile(r"[^A-Za-z0-9-]")


@operation(
    "GET",
    "/v1/invoices/{id}/pdf",
    tool=False,
    title="Get invoice document",
    raises=[NotFound],
    examples=[Example("The document to file, or a draft to look at", {"id": "inv_01k0a8w7zv6q4k3m2n1p0r9s8t"})],
)
async def get_invoice_document(ctx: Ctx, params: InvoiceRef) -> Annotated[Document, "application/pdf", "text/html"]:
    """Get an invoice as a document: the stored PDF, or a draft as a page.

    The PDF was made once, when the invoice left draft, and never changes; voiding does not change it either. An invoice without
    one (a draft, or a draft that was voided) is rendered as HTML with the same figures.

    The PDF claims PDF/A-2b (ISO 19005-2); no validator has checked that claim. A name in a script that no font of the server has is
    set in boxes, in a plain PDF: install a font with it.
    """
    found = await ctx.deps.store.read(look, organisation=ctx.organisation, invoice=params.id)
    if found is None:
        raise no_such_invoice("id")
    name = UNSAFE.sub("", found.row.number)
    stored = found.document or await made_late(ctx, found.row)
    if stored is not None:
        disposition = {"Content-Disposition": f'attachment; filename="{name}.pdf"', "Cache-Control": "private, no-store"}
        return Document(stored, "application/pdf", disposition)

    def page(rows: DocumentRows) -> bytes:
        issuer = ctx.caller.organisation_name
        return page_of(sheet_of(rows.row, rows.lines, issuer=issuer, month=rows.period.month, rest=rows.rest))

    made = await with_document_rows(ctx.deps, invoice=params.id, organisation=ctx.organisation, work=page)
    if made is None:
        raise no_such_invoice("id")
    return Document(made, "text/html", {"Content-Disposition": f'inline; filename="{name}.html"', **headers()})


class Found(NamedTuple):
    """An invoice, and its document where it has one."""

    row: Invoice
    document: bytes | None


def look(connection: Connection, *, organisation: str, invoice: str) -> Found | None:
    """One of the organisation's invoices."""
    row = find_invoice(connection, invoice=invoice, organisation=organisation)
    stored = None if row is None else find_document(connection, invoice=invoice)
    return None if row is None else Found(row, None if stored is None else stored.content)


async def made_late(ctx: Ctx, row: Invoice) -> bytes | None:
    """The document of an invoice that was paid while nobody knew that it had been sent: made now, once."""
    if row.status not in ("sent", "paid"):
        return None
    made = await document_for(ctx, row)
    kept = await ctx.deps.store.write(keep, invoice=row.id, made=made, now=ctx.now)
    return kept.content


def keep(connection: Connection, *, invoice: str, made: MadeDocument, now: float) -> StoredDocument:
    """Of two that were made at once, the first."""
    insert_document(connection, invoice=invoice, content=made.content, sha256=made.sha256, now=now)
    mark_documented(connection, invoice=invoice)
    stored = find_document(connection, invoice=invoice)
    if stored is None:
        raise RuntimeError(f"the document of {invoice} is not there after it was stored")
    return stored
