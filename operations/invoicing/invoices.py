"""Reading invoices."""

from operations.deps import Ctx
from operations.invoicing.invoice.whole import WholeInvoiceRows, with_whole
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
from registry.errors import NotFound
from registry.model import Input
from registry.operation import Example, operation
from storage.money.invoices import list_invoices as read_invoices


class InvoicePage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: StartingAfter = None


class WholeInvoice(ShownInvoice):
    """An invoice with its period and `line_items`, one per SIM in the order of the ICCIDs; they add up to `subtotal_cents`."""

    period: InvoicePeriod
    line_items: list[LineItem]


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
    examples=[Example("An invoice with its lines", {"id": ID}, {**DRAFT, "period": OF_EXAMPLE, "line_items": [LINE]})],
)
async def get_invoice(ctx: Ctx, params: InvoiceRef) -> WholeInvoice:
    """Get one invoice with its period and one line per SIM.

    An invoice of thousands of SIMs is a long answer: list_invoices shows the totals alone.
    """

    def shown(whole: WholeInvoiceRows) -> WholeInvoice:
        lines = shown_lines(whole.row, whole.lines, whole.period.month)
        return {**shown_invoice(whole.row, ctx.deps.site), "period": period_of(whole.period, ctx.now), "line_items": lines}

    found = await with_whole(ctx.deps, invoice=params.id, organisation=ctx.organisation, work=shown)
    if found is None:
        raise no_such_invoice("id")
    return found
