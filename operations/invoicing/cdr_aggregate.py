"""What the call records of a month add up to."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.vocabulary import Iccid
from registry.model import Input
from registry.operation import Example, operation
from storage.money.cdr_sums import MonthLine, largest_of_month, one_of_month

MOST = 1000


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


LINE: CdrLine = {
    "iccid": "8988303000000912345",
    "bytes_up": 1_213_224,
    "bytes_down": 48_310_000,
    "bytes_total": 49_523_224,
    "events": 2,
}
ANSWER: CdrAggregate = {"year": 2026, "month": 11, "total_bytes": 49_523_224, "data": [LINE], "truncated": False}


@operation(
    "GET",
    "/v1/cdr/aggregate",
    title="Sum call records of a month",
    examples=[
        Example("Which SIMs used most in November?", {"year": 2026, "month": 11}, ANSWER),
        Example("What did one SIM use?", {"year": 2026, "month": 11, "iccid": "8988303000000912345"}, ANSWER),
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
        sums = await read(one_of_month, organisation=ctx.organisation, month=month, iccid=params.iccid)
    else:
        sums = await read(largest_of_month, organisation=ctx.organisation, month=month, most=MOST + 1)
    return {
        "year": params.year,
        "month": params.month,
        "total_bytes": sums.bytes_total,
        "data": [line_of(line) for line in sums.lines[:MOST]],
        "truncated": len(sums.lines) > MOST,
    }


def line_of(line: MonthLine) -> CdrLine:
    """A sum as it is shown."""
    return {
        "iccid": line.iccid,
        "bytes_up": line.bytes_up,
        "bytes_down": line.bytes_down,
        "bytes_total": line.bytes_up + line.bytes_down,
        "events": line.events,
    }
