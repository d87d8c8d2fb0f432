"""An invoice as its recipient sees it: the PDF, set by typst, and the page of a draft. Both are made of one sheet, so they agree."""

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import orjson
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.invoicing.invoices import MANY_INVOICE_LINES, InvoiceRef, find_invoice_with_period, no_such_invoice
from operations.vocabulary import divide_half_up
from operations.web_pages import page_policy, page_templates
from registry.characters import MISLEADING_CHARACTERS
from registry.errors import NotFound
from registry.operation import Document, Example, operation
from storage.engine.sql import Connection, runs_in_thread
from storage.invoice_lines import InvoiceLineRow, LineSums, read_invoice_lines, sum_invoice_lines
from storage.invoices import (
    Invoice,
    InvoicePdf,
    InvoicePeriodRow,
    find_invoice,
    find_invoice_document,
    insert_invoice_document,
    mark_invoice_documented,
)

if TYPE_CHECKING:
    from jinja2 import Template


INVOICE_SHEET_LIMIT = 10_000
"""Choice: what comes after so many SIMs is one row with its sum: a longer document would take gigabytes to set, and nobody reads it."""
INVOICE_GB_NOTE = "1 GB = 1,000,000,000 bytes"
NO_UNLISTED_LINES = LineSums(0, 0, 0, 0)
DRAFT_SHEET_STAMP = "This is a draft: it is no invoice yet, and its number is kept for it."
VOID_SHEET_STAMP = "This invoice is void: nothing is owed on it."


class InvoiceSheet(TypedDict):
    """Every text of an invoice. `facts` and `sums` are names with values; `lines` are cells under `columns`."""

    title: str
    heading: str
    number: str
    issuer: str
    recipient: str
    email: str
    facts: list[list[str]]
    stamp: str
    columns: list[str]
    lines: list[list[str]]
    sums: list[list[str]]
    total: str
    due: str
    pay: str
    notes: list[str]
    small: list[str]


INVOICE_SHEET_COLUMNS = ["#", "ICCID", "Network", "Bytes up", "Bytes down", "GB", "Amount"]


def invoice_sheet(
    invoice: Invoice, lines: Sequence[InvoiceLineRow], *, issuer: str, month: int, rest: LineSums = NO_UNLISTED_LINES
) -> InvoiceSheet:
    """The texts. Figures are those that were frozen; nothing is computed anew but how they are written.

    `lines` are listed, at most MOST_LISTED; `rest` is what the lines behind them add up to. `month` is YYYYMM.
    """
    draft = invoice.status == "draft"
    currency = invoice.currency
    heading = "DRAFT INVOICE" if draft else "INVOICE"
    due = (
        "" if draft or invoice.due_at is None else f"Due on {invoice_day(invoice.due_at)}: {invoice_money(invoice.total_cents)} {currency}."
    )
    return {
        "title": f"{'Draft invoice' if draft else 'Invoice'} {invoice.number}",
        "heading": heading,
        "number": invoice.number,
        "issuer": invoice_sheet_text(issuer),
        "recipient": invoice_sheet_text(invoice.recipient_name or ""),
        "email": invoice_sheet_text(invoice.recipient_email or ""),
        "facts": invoice_sheet_facts(invoice, month),
        "stamp": DRAFT_SHEET_STAMP if draft else VOID_SHEET_STAMP if invoice.status == "void" else "",
        "columns": [*INVOICE_SHEET_COLUMNS[:-1], f"Amount ({currency})"],
        "lines": invoice_sheet_rows(lines, rest),
        "sums": invoice_sheet_sums(invoice, lines, rest),
        "total": f"{invoice_money(invoice.total_cents)} {currency}",
        "due": due,
        "pay": "" if draft else invoice.pay_url or "",
        "notes": [invoice_sheet_text(line) for line in (invoice.notes or "").splitlines()],
        "small": [
            f"Amounts are computed from bytes, not from the rounded GB: {INVOICE_GB_NOTE}; each line is rounded half-up to the cent.",
            "Months, days and hours are UTC.",
            *(
                []
                if not rest.lines
                else [f"The first {invoice_count(INVOICE_SHEET_LIMIT)} SIMs are listed; the last row adds up all others."]
            ),
        ],
    }


def invoice_sheet_facts(invoice: Invoice, month: int) -> list[list[str]]:
    first = date(month // 100, month % 100, 1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    found = [["Invoice number", invoice.number], ["Period", f"{invoice_date(first)} to {invoice_date(last)}"]]
    if invoice.issued_at is not None:
        found.append(["Issued", invoice_day(invoice.issued_at)])
    if invoice.due_at is not None:
        found.append(["Due", invoice_day(invoice.due_at)])
    found.append(["Currency", invoice.currency])
    found.append(["Price per GB", f"{invoice_money(invoice.price_per_gb_cents)} {invoice.currency}"])
    return found


def invoice_sheet_sums(invoice: Invoice, lines: Sequence[InvoiceLineRow], rest: LineSums) -> list[list[str]]:
    used = sum(line.bytes_up + line.bytes_down for line in lines) + rest.bytes_up + rest.bytes_down
    currency, lines_in_all, bps = invoice.currency, len(lines) + rest.lines, invoice.platform_fee_bps
    sims = f"{invoice_count(lines_in_all)} SIM{'' if lines_in_all == 1 else 's'}"
    return [
        ["Data used", f"{invoice_count(used)} bytes"],
        ["", f"{invoice_gigabytes(used)} GB on {sims}"],
        ["Subtotal", f"{invoice_money(invoice.subtotal_cents)} {currency}"],
        ["Tax (0 %)", f"{invoice_money(invoice.tax_cents)} {currency}"],
        [f"Platform fee ({bps // 100}.{bps % 100:02d} %)", f"{invoice_money(invoice.platform_fee_cents)} {currency}"],
    ]


def invoice_sheet_rows(lines: Sequence[InvoiceLineRow], rest: LineSums) -> list[list[str]]:
    """A row for each SIM, and one for those that are too many; they add up to the subtotal all the same."""
    rows = [invoice_sheet_cells(number, line) for number, line in enumerate(lines, 1)]
    if rest.lines:
        sims = f"{invoice_count(rest.lines)} more SIM{'' if rest.lines == 1 else 's'}"
        used = invoice_gigabytes(rest.bytes_up + rest.bytes_down)
        rows.append(["", sims, "", invoice_count(rest.bytes_up), invoice_count(rest.bytes_down), used, invoice_money(rest.amount_cents)])
    return rows


def invoice_sheet_cells(number: int, line: InvoiceLineRow) -> list[str]:
    place = " ".join(invoice_sheet_text(part) for part in (line.network, line.country and f"({line.country})") if part)
    used = invoice_gigabytes(line.bytes_up + line.bytes_down)
    return [
        str(number),
        line.iccid,
        place,
        invoice_count(line.bytes_up),
        invoice_count(line.bytes_down),
        used,
        invoice_money(line.amount_cents),
    ]


def invoice_sheet_text(text: str) -> str:
    """A text of somebody else's on one line, without what changes how the text around it reads."""
    return " ".join(MISLEADING_CHARACTERS.sub(" ", text).split())


def invoice_money(cents: int) -> str:
    """Minor units as an amount: 123456 is 1,234.56."""
    return f"{cents // 100:,}.{cents % 100:02d}"


def invoice_count(number: int) -> str:
    return f"{number:,}"


def invoice_gigabytes(used: int) -> str:
    """Rounded half-up to a thousandth, for people."""
    thousandths = divide_half_up(used, 10**6)
    return f"{thousandths // 1000:,}.{thousandths % 1000:03d}"


def invoice_day(moment: int) -> str:
    return invoice_date(datetime.fromtimestamp(moment, UTC).date())


def invoice_date(value: date) -> str:
    """A day that no country reads as another."""
    return f"{value.day} {value:%b %Y}"


DocumentResult = TypeVar("DocumentResult")


class DocumentRows(NamedTuple):
    """What a document shows of an invoice: the lines that it lists, and the sums of those that it does not."""

    row: Invoice
    period: InvoicePeriodRow
    lines: list[InvoiceLineRow]
    rest: LineSums


async def read_document_rows(
    deps: Deps, *, invoice: str, organisation: str, work: Callable[[DocumentRows], DocumentResult]
) -> DocumentResult | None:
    """What `work` makes of an invoice's lines; where they are many, beside the event loop. None: there is no such invoice."""
    found = await deps.store.read(find_invoice, invoice=invoice, organisation=organisation)
    if found is None:
        return None

    def use_rows(connection: Connection) -> DocumentResult | None:
        found = find_invoice_with_period(connection, invoice=invoice, organisation=organisation)
        if found is None:
            return None
        listed = read_invoice_lines(connection, invoice=invoice, after=0, most=INVOICE_SHEET_LIMIT)
        rest = sum_invoice_lines(connection, invoice=invoice, after=len(listed))
        return work(DocumentRows(found.row, found.period, listed, rest))

    return await deps.store.read(runs_in_thread(use_rows) if found.lines > MANY_INVOICE_LINES else use_rows)


INVOICE_PDF_TEMPLATE = Path(__file__).parent / "templates" / "invoice.typ"
# PDF/A-2b (ISO 19005-2) as typst makes it; no validator has checked it. It refuses a character that no installed font has: such a name
# is set as a plain PDF, where the character is a box, and copied as text it is itself.
ARCHIVE_PDF_STANDARD: Literal["a-2b"] = "a-2b"
PLAIN_PDF_STANDARD: Literal["1.7"] = "1.7"
LONG_DOCUMENT_LIMITER = RunVar[CapacityLimiter]("press")
"""Long documents are set one after the other: one of thousands of lines takes seconds of all cores, and half a gigabyte."""


async def make_invoice_pdf(*, invoice: Invoice, rows: DocumentRows, issuer: str) -> bytes:
    """The document of `rows`, with the texts of `invoice`; the same figures give the same bytes on one machine. Setting 5,000 lines
    takes seconds, so it is done in a thread.
    """

    def work() -> bytes:
        sheet = invoice_sheet(invoice, rows.lines, issuer=issuer, month=rows.period.month, rest=rows.rest)
        return typeset_invoice_pdf(sheet, invoice.issued_at or invoice.created)

    return await to_thread.run_sync(work, limiter=long_document_limiter() if len(rows.lines) > MANY_INVOICE_LINES else None)


def long_document_limiter() -> CapacityLimiter:
    try:
        return LONG_DOCUMENT_LIMITER.get()
    except LookupError:
        made = CapacityLimiter(1)
        LONG_DOCUMENT_LIMITER.set(made)
        return made


def typeset_invoice_pdf(sheet: InvoiceSheet, moment: int) -> bytes:
    """The template with the sheet in it, as a PDF; `moment` (Unix seconds) is when the document says that it was made."""
    import typst  # 78 MB of a library, loaded where a document is made

    def compiled(standard: Literal["a-2b", "1.7"]) -> bytes:
        return typst.compile(
            INVOICE_PDF_TEMPLATE,
            format="pdf",
            sys_inputs={"sheet": orjson.dumps(sheet).decode()},
            pdf_standards=standard,
            timestamp=datetime.fromtimestamp(moment, UTC),
        )

    try:
        return compiled(ARCHIVE_PDF_STANDARD)
    except typst.TypstError:
        return compiled(PLAIN_PDF_STANDARD)


class InvoiceDocument(NamedTuple):
    """The PDF and its SHA-256 in hexadecimal."""

    content: bytes
    sha256: str


async def make_invoice_document(ctx: Ctx, row: Invoice) -> InvoiceDocument:
    """The PDF of an invoice as `row` says it will be."""
    found = await read_document_rows(ctx.deps, invoice=row.id, organisation=row.organisation, work=lambda rows: rows)
    if found is None:
        raise RuntimeError(f"there is no invoice {row.id}")
    content = await make_invoice_pdf(invoice=row, rows=found, issuer=ctx.caller.organisation_name)
    return InvoiceDocument(content, hashlib.sha256(content).hexdigest())


INVOICE_TEMPLATES = Path(__file__).parent / "templates"


@cache
def invoice_page_style() -> str:
    return (INVOICE_TEMPLATES / "invoice.css").read_text()


@cache
def invoice_page_template() -> "Template":
    return page_templates(INVOICE_TEMPLATES).get_template("invoice.html")


UNSAFE_IN_INVOICE_NAME = re.compile(r"[^A-Za-z0-9-]")


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
    row, document = await ctx.deps.store.read(find_invoice_and_document, organisation=ctx.organisation, invoice=params.id)
    name = UNSAFE_IN_INVOICE_NAME.sub("", row.number)
    stored = document or await make_missing_document(ctx, row)
    if stored is not None:
        disposition = {"Content-Disposition": f'attachment; filename="{name}.pdf"', "Cache-Control": "private, no-store"}
        return Document(stored, "application/pdf", disposition)

    def page(rows: DocumentRows) -> bytes:
        issuer = ctx.caller.organisation_name
        sheet = invoice_sheet(rows.row, rows.lines, issuer=issuer, month=rows.period.month, rest=rows.rest)
        return invoice_page_template().render(sheet=sheet, style=invoice_page_style()).encode()

    made = await read_document_rows(ctx.deps, invoice=params.id, organisation=ctx.organisation, work=page)
    if made is None:
        raise no_such_invoice()
    headers = {
        "Content-Disposition": f'inline; filename="{name}.html"',
        "Content-Security-Policy": page_policy(invoice_page_style(), images=False),  # the browser only shows it (docs/security.md)
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return Document(made, "text/html", headers)


def find_invoice_and_document(connection: Connection, *, organisation: str, invoice: str) -> tuple[Invoice, bytes | None]:
    row = find_invoice(connection, invoice=invoice, organisation=organisation)
    if row is None:
        raise no_such_invoice()
    stored = find_invoice_document(connection, invoice=invoice)
    return row, None if stored is None else stored.content


async def make_missing_document(ctx: Ctx, row: Invoice) -> bytes | None:
    """The document of an invoice that was paid while nobody knew that it had been sent: made now, once."""
    if row.status not in ("sent", "paid"):
        return None
    made = await make_invoice_document(ctx, row)
    kept = await ctx.deps.store.write(keep_invoice_document, invoice=row.id, made=made, now=ctx.now)
    return kept.content


def keep_invoice_document(connection: Connection, *, invoice: str, made: InvoiceDocument, now: float) -> InvoicePdf:
    """Of two that were made at once, the first."""
    insert_invoice_document(connection, invoice=invoice, content=made.content, sha256=made.sha256, now=now)
    mark_invoice_documented(connection, invoice=invoice)
    stored = find_invoice_document(connection, invoice=invoice)
    if stored is None:
        raise RuntimeError(f"the document of {invoice} is not there after it was stored")
    return stored
