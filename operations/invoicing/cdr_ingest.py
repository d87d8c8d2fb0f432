"""Call detail records (CDRs) of the organisation's own SIMs, as its systems report them."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, FailFast, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.invoicing.cdr_moment import RecordMoment
from operations.services.plain_line import plain_line
from operations.vocabulary import Iccid
from registry.errors import BadRequest
from registry.ids import Ids
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, operation
from registry.policy import stamp
from storage.connection import Connection
from storage.long import Long
from storage.money.cdr_events import CdrEvent, ingest

MOST_EVENTS = 1000
BODY_LIMIT = 2 * 1024 * 1024
# Choice: clocks differ, and whatever is further ahead is a mistake that would open a month that has not begun.
AHEAD = 300


def trimmed(network: str | None) -> str | None:
    """On one line, as it is printed on an invoice."""
    return None if network is None else plain_line(network)


def upper(country: str | None) -> str | None:
    """As ISO writes it."""
    return None if country is None else country.upper()


Bytes = Annotated[int, Field(ge=0, le=10**15, description="Bytes, 0-10^15.")]


class NewCdrEvent(Input):
    """One record: the data that a SIM used in one session or part of it."""

    id: Annotated[str, Field(pattern=r"^[!-~]{1,128}$", description="The record's own id: 1-128 visible ASCII characters without space.")]
    iccid: Iccid
    occurred_at: RecordMoment
    bytes_up: Bytes
    bytes_down: Bytes
    network: Annotated[
        str | None, Field(min_length=1, max_length=64, description="Network it was used in, 1-64 characters."), AfterValidator(trimmed)
    ] = None
    # Choice: any two letters, in either case: networks at sea and in the air have codes that ISO 3166 leaves to its users.
    country: Annotated[
        str | None, Field(pattern=r"^[A-Za-z]{2}$", description='Country it was used in, ISO 3166-1 alpha-2: "NO".'), AfterValidator(upper)
    ] = None


class CdrBatch(Input):
    """Records to store."""

    events: Annotated[
        list[NewCdrEvent], FailFast(), Field(min_length=1, max_length=MOST_EVENTS, description="1-1000 records, in any order.")
    ]


class CdrIngested(TypedDict):
    """How many records came, how many of them were new, and how many were there already."""

    received: int
    stored: int
    skipped: int


@operation(
    "POST",
    "/v1/cdr/ingest",
    scope=Scope.WRITE,
    body_limit=BODY_LIMIT,
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
    refuse_future(params.events, ctx.now)
    events = [CdrEvent(e.id, e.iccid, e.occurred_at, e.bytes_up, e.bytes_down, e.network, e.country) for e in params.events]
    return await ctx.settle_result(keep, organisation=ctx.organisation, events=events, now=ctx.now, ids=ctx.deps.ids)


def refuse_future(events: Sequence[NewCdrEvent], now: float) -> None:
    """No record is of data that will be used."""
    latest = now + AHEAD
    ahead = next((n for n, event in enumerate(events) if event.occurred_at > latest), None)
    if ahead is not None:
        raise BadRequest(
            f"events[{ahead}].occurred_at: {stamp(events[ahead].occurred_at)} is more than 5 minutes ahead of {stamp(now)}",
            param=f"events[{ahead}].occurred_at",
            hint="Check the sender's clock and the offset of its times; Unix seconds, not milliseconds",
        )


@Long
def keep(connection: Connection, *, organisation: str, events: Sequence[CdrEvent], now: float, ids: Ids) -> CdrIngested:
    """Store the batch, and count."""
    stored = ingest(connection, organisation=organisation, events=events, now=now, ids=ids)
    return {"received": len(events), "stored": stored, "skipped": len(events) - stored}
