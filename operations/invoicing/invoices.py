"""Reading invoices."""

from collections.abc import AsyncGenerator
from typing import Annotated

import orjson
from anyio.lowlevel import checkpoint
from pydantic import Field

from operations.deps import Ctx
from operations.invoicing.invoice.whole import MANY, InvoiceWithPeriod, find_with_period
from operations.invoicing.invoice_shape import (
    DRAFT,
    ID,
    PERIOD,
    InvoiceRef,
    LineItem,
    ShownInvoice,
    no_such_invoice,
    shown_invoice,
    shown_lines,
)
from operations.invoicing.period import InvoicePeriod, period_of
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import BadRequest, NotFound
from registry.model import Input, Passed
from registry.operation import Example, operation
from storage.connection import Connection
from storage.long import Long
from storage.money.invoice_lines import find_position, read_lines
from storage.money.invoices import list_invoices as read_invoices


class InvoicePage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: StartingAfter = None


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


PIECE_LINES = 250
"""Lines that are read and sent in one step: some 100 KB and two milliseconds of the event loop."""
LINE_BYTES = 400
"""About as many has a line in JSON."""
LINE: LineItem = {
    "id": "ili_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "invoice_id": ID,
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
    "created_at": DRAFT["created_at"],
}
OF_EXAMPLE: InvoicePeriod = {
    "id": PERIOD,
    "org_id": DRAFT["org_id"],
    "year": 2026,
    "month": 10,
    "status": "invoiced",
    "closed_at": 1_793_664_000,
    "created_at": 1_790_812_860,
}


@operation(
    "GET",
    "/v1/invoices",
    title="List invoices",
    examples=[Example("Our newest invoices", {"limit": 1}, {"object": "list", "data": [DRAFT], "has_more": True})],
)
async def list_invoices(ctx: Ctx, params: InvoicePage) -> ListOf[ShownInvoice]:
    """List your organisation's invoices without their lines, newest first."""
    read, site = ctx.deps.store.read, ctx.deps.site
    rows = await read(read_invoices, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    return page([shown_invoice(row, site) for row in rows], params.limit)


@operation(
    "GET",
    "/v1/invoices/{id}",
    title="Get invoice",
    raises=[NotFound],
    tool_defaults={"limit": 20},
    examples=[
        Example("An invoice with its lines", {"id": ID}, {**DRAFT, "period": OF_EXAMPLE, "line_items_total": 1, "line_items": [LINE]}),
    ],
)
async def get_invoice(ctx: Ctx, params: InvoiceLines) -> WholeInvoice | Passed:
    """Get one invoice with its period and one line per SIM.

    Totals are of the whole invoice, whatever `limit` is; `line_items_total` says how many lines there are.

    Without `limit` HTTP gives all lines, in the thousands as a stream: a credential reads one answer above 1 MB at a time. With
    `limit` the next page is named by the header Link, over MCP by `_meta.next`. Lines never change, so pages of one invoice agree.
    """
    read = ctx.deps.store.read
    found = await read(find_with_period, invoice=params.id, organisation=ctx.organisation)
    if found is None:
        raise no_such_invoice("id")
    after = await line_position(ctx, found, params.starting_after)
    left = max(0, found.row.lines - after)
    if params.limit is None and left > MANY:
        return Passed(invoice_pieces(ctx, found, after), size=left * LINE_BYTES)
    most = left if params.limit is None else params.limit
    lines = await read(read_lines, invoice=found.row.id, after=after, most=most)
    if left > most:
        ctx.next_cursor = str(after + most)
        ctx.note = f"{most} of {found.row.lines} lines."
    return {**invoice_head(ctx, found), "line_items": shown_lines(found.row, lines, found.period.month)}


class InvoiceHead(ShownInvoice):
    """An invoice without its lines, as `WholeInvoice` begins."""

    period: InvoicePeriod
    line_items_total: int


def invoice_head(ctx: Ctx, found: InvoiceWithPeriod) -> InvoiceHead:
    """What stands before the lines."""
    return {
        **shown_invoice(found.row, ctx.deps.site),
        "period": period_of(found.period, ctx.now),
        "line_items_total": found.row.lines,
    }


async def line_position(ctx: Ctx, found: InvoiceWithPeriod, cursor: str | None) -> int:
    """The position that a page begins behind; BadRequest for a cursor that names no line of the invoice."""
    if cursor is None:
        return 0
    if cursor.isascii() and cursor.isdigit():
        return min(int(cursor), found.row.lines)
    look = Long(find_position) if found.row.lines > MANY else find_position
    position = await ctx.deps.store.read(look, invoice=found.row.id, line=cursor)
    if position is None:
        raise BadRequest(
            "starting_after: no line of this invoice", param="starting_after", hint="Take it from the page before: `next`, or its last id"
        )
    return position


async def invoice_pieces(ctx: Ctx, found: InvoiceWithPeriod, after: int) -> AsyncGenerator[bytes]:
    """The same bytes as the whole answer would be, read page by page as they are sent: no read stays open while a reader is waited for."""

    def piece(connection: Connection, *, after: int) -> bytes:
        lines = read_lines(connection, invoice=found.row.id, after=after, most=PIECE_LINES)
        return orjson.dumps(shown_lines(found.row, lines, found.period.month))[1:-1]

    yield orjson.dumps(invoice_head(ctx, found))[:-1] + b',"line_items":['
    for position in range(after, found.row.lines, PIECE_LINES):
        part = await ctx.deps.store.read(piece, after=position)
        yield part if position == after else b"," + part
        await checkpoint()  # a reader who is never waited for would keep the loop to itself
    yield b"]}"
