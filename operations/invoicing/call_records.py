"""Call detail records (CDRs) of the organisation's own SIMs: storing them as its systems report them, summing a month of them, and the
periods that have some.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, FailFast, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.times import CdrMoment
from operations.vocabulary import Iccid, ListOf, ListPage, list_page, plain_line, render_fields, unknown_last_id
from registry.clock import rfc3339_utc
from registry.errors import BadRequest
from registry.operation import Example, Input, Scope, SpendKind, operation
from storage.cdr_events import CdrEvent, ingest_cdr
from storage.cdr_sums import largest_sims_of_month, sim_of_month
from storage.engine.sql import Connection, runs_in_thread
from storage.invoices import InvoicePeriodRow, find_period, list_periods

CDR_BATCH_LIMIT = 1000
CDR_BODY_LIMIT = 2 * 1024 * 1024
# Choice: clocks differ, and whatever is further ahead is a mistake that would open a month that has not begun.
CDR_SECONDS_AHEAD = 300
CdrBytes = Annotated[int, Field(ge=0, le=10**15, description="Bytes, 0-10^15.")]


class NewCdrEvent(Input):
    """One record: the data that a SIM used in one session or part of it."""

    id: Annotated[str, Field(pattern=r"^[!-~]{1,128}$", description="The record's own id: 1-128 visible ASCII characters without space.")]
    iccid: Iccid
    occurred_at: CdrMoment
    bytes_up: CdrBytes
    bytes_down: CdrBytes
    network: Annotated[
        str | None,
        Field(min_length=1, max_length=64, description="Network it was used in, 1-64 characters."),
        AfterValidator(lambda network: None if network is None else plain_line(network)),
    ] = None
    # Choice: any two letters, in either case: networks at sea and in the air have codes that ISO 3166 leaves to its users.
    country: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z]{2}$", description='Country it was used in, ISO 3166-1 alpha-2: "NO".'),
        AfterValidator(lambda country: None if country is None else country.upper()),
    ] = None


class CdrBatch(Input):
    """Records to store."""

    events: Annotated[
        list[NewCdrEvent], FailFast(), Field(min_length=1, max_length=CDR_BATCH_LIMIT, description="1-1000 records, in any order.")
    ]


class CdrIngested(TypedDict):
    """How many records came, how many of them were new, and how many were there already."""

    received: int
    stored: int
    skipped: int


@operation(
    "POST",
    "/v1/cdr/ingest",
    spends=SpendKind.OPEN,
    irreversible=True,
    scope=Scope.WRITE,
    body_limit=CDR_BODY_LIMIT,
    title="Ingest call records",
    raises=[BadRequest],
    examples=[
        Example(
            "Two sessions of one SIM",
            {
                "events": [
                    {
                        "id": "cdr-77120931",
                        "iccid": "8988303000000912345",
                        "occurred_at": "2026-11-20T09:00:00Z",
                        "bytes_up": 1_204_224,
                        "bytes_down": 48_000_000,
                        "network": "Telenor",
                        "country": "NO",
                    },
                    {
                        "id": "cdr-77120932",
                        "iccid": "8988303000000912345",
                        "occurred_at": 1_795_168_800,
                        "bytes_up": 9_000,
                        "bytes_down": 310_000,
                    },
                ]
            },
            {"received": 2, "stored": 2, "skipped": 0},
        )
    ],
)
async def ingest_cdr_events(ctx: Ctx, params: CdrBatch) -> CdrIngested:
    """Store up to 1,000 call detail records; each id counts once.

    Send the same batch again whenever an answer was lost: an id that is there already is skipped and changes nothing.

    A record counts towards its SIM in the month of `occurred_at`, in UTC, and opens that month's period. Records are accepted however
    late they come; invoices that were made do not change. A batch is stored whole or, where one of its records is refused, not at
    all. `occurred_at` may be at most five minutes ahead. A SIM's month holds at most 2^53-1 bytes, an organisation's 2^63-1.
    """
    refuse_future_cdrs(params.events, ctx.now)
    events = [CdrEvent(e.id, e.iccid, e.occurred_at, e.bytes_up, e.bytes_down, e.network, e.country) for e in params.events]

    @runs_in_thread
    def store(connection: Connection) -> CdrIngested:
        stored = ingest_cdr(connection, organisation=ctx.organisation, events=events, now=ctx.now, ids=ctx.deps.ids)
        return {"received": len(events), "stored": stored, "skipped": len(events) - stored}

    return await ctx.settle_result(store)


def refuse_future_cdrs(events: Sequence[NewCdrEvent], now: float) -> None:
    """Raises BadRequest for the first of `events` that is more than five minutes ahead of `now`, in Unix seconds."""
    latest = now + CDR_SECONDS_AHEAD
    ahead = next((n for n, event in enumerate(events) if event.occurred_at > latest), None)
    if ahead is not None:
        raise BadRequest(
            f"events[{ahead}].occurred_at: {rfc3339_utc(events[ahead].occurred_at)} is more than 5 minutes ahead of {rfc3339_utc(now)}",
            param=f"events[{ahead}].occurred_at",
            hint="Check the sender's clock and the offset of its times; Unix seconds, not milliseconds",
        )


CDR_LINES_LIMIT = 1000


class CdrMonth(Input):
    """Which month, in UTC."""

    year: Annotated[int, Field(ge=2010, le=9999, description="Year, from 2010.")]
    month: Annotated[int, Field(ge=1, le=12, description="Month, 1-12.")]
    iccid: Annotated[Iccid | None, Field(description="Only this SIM, 18-22 digits.")] = None


class CdrLine(TypedDict):
    """One SIM's bytes of the month, and from how many records; `bytes_total` is both directions."""

    iccid: str
    bytes_up: int
    bytes_down: int
    bytes_total: int
    events: int


class CdrAggregate(TypedDict):
    """A month's bytes. `total_bytes` is that of all SIMs, also of those that `truncated` left out, or of the one that was asked for."""

    year: int
    month: int
    total_bytes: int
    data: list[CdrLine]
    truncated: bool


CDR_LINE_EXAMPLE: CdrLine = {
    "iccid": "8988303000000912345",
    "bytes_up": 1_213_224,
    "bytes_down": 48_310_000,
    "bytes_total": 49_523_224,
    "events": 2,
}
CDR_AGGREGATE_EXAMPLE: CdrAggregate = {"year": 2026, "month": 11, "total_bytes": 49_523_224, "data": [CDR_LINE_EXAMPLE], "truncated": False}


@operation(
    "GET",
    "/v1/cdr/aggregate",
    title="Sum call records of a month",
    examples=[
        Example("Which SIMs used most in November?", {"year": 2026, "month": 11}, CDR_AGGREGATE_EXAMPLE),
        Example("What did one SIM use?", {"year": 2026, "month": 11, "iccid": "8988303000000912345"}, CDR_AGGREGATE_EXAMPLE),
    ],
)
async def aggregate_cdr(ctx: Ctx, params: CdrMonth) -> CdrAggregate:
    """Sum the bytes of one month's call records by SIM, largest first.

    At most 1,000 SIMs: `truncated` says that there are more, and `total_bytes` counts those, too.

    The figures are of the records that ingest_cdr_events has stored by now, exact to the byte; a month is one in UTC. A month or a
    SIM without records has an empty list. SIMs with the same total are in the order of their ICCIDs.
    """
    read, month = ctx.deps.store.read, params.year * 100 + params.month
    if params.iccid is not None:
        sums = await read(sim_of_month, organisation=ctx.organisation, month=month, iccid=params.iccid)
    else:
        sums = await read(largest_sims_of_month, organisation=ctx.organisation, month=month, most=CDR_LINES_LIMIT + 1)
    return {
        "year": params.year,
        "month": params.month,
        "total_bytes": sums.bytes_total,
        "data": [render_fields(line, CdrLine, bytes_total=line.bytes_up + line.bytes_down) for line in sums.lines[:CDR_LINES_LIMIT]],
        "truncated": len(sums.lines) > CDR_LINES_LIMIT,
    }


PERIOD_GRACE_SECONDS = 48 * 3600
PERIOD_PAGE_LIMIT = 24


class InvoicePeriodPage(ListPage):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=PERIOD_PAGE_LIMIT, description="Page size.")] = PERIOD_PAGE_LIMIT


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
    organisation, after, most = ctx.organisation, params.starting_after, params.limit + 1

    def read(connection: Connection) -> list[InvoicePeriodRow]:
        if after is None:
            return list_periods(connection, organisation=organisation, most=most)
        last = find_period(connection, period=after, organisation=organisation)
        if last is None:
            raise unknown_last_id("period")
        return list_periods(connection, organisation=organisation, most=most, before=last.month)

    rows = await ctx.deps.store.read(read)
    return list_page([render_invoice_period(row, ctx.now) for row in rows], params.limit)


def render_invoice_period(row: InvoicePeriodRow, now: float) -> InvoicePeriod:
    """The period `row` as it is at `now`, in Unix seconds."""
    # Choice: the first record of a month may come after it has closed; its period is closed from the beginning then.
    year, number = divmod(row.month, 100)
    end = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    closing = max(int(end.timestamp()) + PERIOD_GRACE_SECONDS, row.created)
    closed = now >= closing
    return {
        "id": row.id,
        "org_id": row.organisation,
        "year": year,
        "month": number,
        "status": "invoiced" if row.invoiced else "closed" if closed else "open",
        "closed_at": closing if closed else None,
        "created_at": row.created,
    }
