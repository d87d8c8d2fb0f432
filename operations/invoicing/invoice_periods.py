"""Periods: the months that have records, as invoices are made for them (api.md 2.8, 3.3)."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.vocabulary import ListOf, StartingAfter, list_page
from registry.errors import BadRequest
from registry.model import Input
from registry.operation import Example, operation
from storage.engine.connection import Connection
from storage.invoices import InvoicePeriodRow, find_period, list_periods

PERIOD_GRACE_SECONDS = 48 * 3600
PERIOD_PAGE_LIMIT = 24


class InvoicePeriodPage(Input):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=PERIOD_PAGE_LIMIT, description="Page size.")] = PERIOD_PAGE_LIMIT
    starting_after: StartingAfter = None


class InvoicePeriod(TypedDict):
    """A calendar month in UTC that has records. Times are Unix seconds; `closed_at` is null until the month has closed.

    `open` until 48 hours after the end of the month, then `closed`; `invoiced` as soon as an invoice was made for it, also before.
    """

    id: str
    org_id: str
    year: int
    month: int
    status: Literal["open", "closed", "invoiced"]
    closed_at: int | None
    created_at: int


INVOICE_PERIOD_EXAMPLE: InvoicePeriod = {
    "id": "per_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "org_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "year": 2026,
    "month": 11,
    "status": "closed",
    "closed_at": 1796256000,
    "created_at": 1793491325,
}


@operation(
    "GET",
    "/v1/invoices/periods",
    title="List invoice periods",
    raises=[BadRequest],
    examples=[Example("Which months can be invoiced?", {}, {"object": "list", "data": [INVOICE_PERIOD_EXAMPLE], "has_more": False})],
)
async def list_invoice_periods(ctx: Ctx, params: InvoicePeriodPage) -> ListOf[InvoicePeriod]:
    """List the months that have call records, newest first.

    `id` is the `period_id` of an invoice. A month is here once ingest_cdr_events stored a record of it.

    A period is closed 48 hours after its month has ended in UTC, so that late records still find it open; records that come later
    are stored all the same and change no invoice that was made. An open period can be invoiced, and stays invoiced.
    """
    rows = await ctx.deps.store.read(
        read_invoice_periods, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1
    )
    return list_page([render_invoice_period(row, ctx.now) for row in rows], params.limit)


def read_invoice_periods(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[InvoicePeriodRow]:
    """The months before the one that the caller saw last."""
    if after is None:
        return list_periods(connection, organisation=organisation, most=most)
    last = find_period(connection, period=after, organisation=organisation)
    if last is None:
        raise BadRequest(
            "starting_after: none of your periods has this id",
            param="starting_after",
            hint="Give the `id` of the last period of the page before, or leave it out for the newest",
        )
    return list_periods(connection, organisation=organisation, most=most, before=last.month)


def render_invoice_period(row: InvoicePeriodRow, now: float) -> InvoicePeriod:
    """The period as it is at a moment."""
    # Choice: the first record of a month may come after it has closed; its period is closed from the beginning then.
    closing = max(period_closes_at(row.month), row.created)
    closed = now >= closing
    return {
        "id": row.id,
        "org_id": row.organisation,
        "year": row.month // 100,
        "month": row.month % 100,
        "status": "invoiced" if row.invoiced else "closed" if closed else "open",
        "closed_at": closing if closed else None,
        "created_at": row.created,
    }


def period_closes_at(month: int) -> int:
    """48 hours after the month's end in UTC."""
    year, number = divmod(month, 100)
    end = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    return int(end.timestamp()) + PERIOD_GRACE_SECONDS
