"""What a line used and signalled over days."""

from typing import Annotated, NamedTuple, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.statistics import NetworkEvents, PeriodUsage, SubscriberUsage, UsageTotal
from operations.deps import Ctx
from operations.services.network.event_sums import events_sum
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.services.network.usage_sums import usage_sum
from operations.services.network.windows import Range, Window, read_weeks, window_of
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

DATA_TYPE = "33"


class UsageRange(Range, LineRef):
    """Which line, which days, and how closely."""

    # Choice: single records are most of the answer's bytes, so whoever needs the sums only can leave them out.
    records: Annotated[bool, Field(description="With every single record of each day.")] = True


class EventRange(Range, LineRef):
    """Which line, which days, and how many events."""

    newest: Annotated[int | None, Field(ge=1, le=100_000, description="Last events of each protocol.")] = None


class LineWindow(NamedTuple):
    """A line of the caller's and the days that were meant."""

    line: Line
    window: Window


@keeps_unknown
class Usage(TypedDict, total=False):
    """Usage and costs of a line."""

    total: UsageTotal
    usages: list[SubscriberUsage]
    dataBytes: Annotated[int, Field(description="Data in all, bytes")]


EXAMPLE_USAGE: Usage = {
    "total": {
        "resellerCost": 0.2,
        "subscriberCost": 0.0,
        "quantityPerType": {"33": 104857600},
        "quantityPerCountry": [{"mcc": 242, "name": "Norway", "alpha2": "no", "qty": 104857600, "quantityPerOperator": []}],
    },
    "usages": [],
    "dataBytes": 104857600,
}
EXAMPLE_EVENTS: NetworkEvents = {
    "mapAnswer": {"events": []},
    "s6aAnswer": {
        "events": [
            {"eventTime": "2027-01-14T10:00:00.000+00:00", "cmdNameShort": "ULR", "protocol": "S6a", "countryAlpha2": "no"},
        ]
    },
    "gyAnswer": {"events": []},
}


async def own_line_over(ctx: Ctx, params: UsageRange | EventRange) -> LineWindow:
    """The caller's own line; a range that cannot be read costs nothing."""
    window = window_of(params.start, params.end, ctx.now)
    return LineWindow(await own_line(ctx, params), window)


@operation(
    "POST",
    "/v1/subscribers/{iccid}/usage",
    upstream=True,
    operator=True,
    title="Get usage",
    access=own_line_over,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "How much data did this line use in the first half of January?",
            {"iccid": "8988303700000100286", "start": "2027-01-01", "end": "2027-01-15", "records": False},
            {"data": EXAMPLE_USAGE},
        )
    ],
    tool_defaults={"records": False},
)
async def subscriber_usage(ctx: Ctx, params: UsageRange, found: LineWindow) -> Data[Usage]:
    """Get usage and costs of a line: totals, by country, by day.

    Both days included, UTC; without days the last seven. `dataBytes` is all data. list_subscriber_packages shows what packages have left.

    `quantityPerType` counts bytes (33), seconds (1, 15, 40, 41) and messages (21, 22); `qty` of a country adds these up. Longer ranges are
    read week by week and added up; when one week cannot be read the whole call fails.
    """
    line = found.line
    statistics = line.upstream.ocs.statistics
    parts = await read_weeks(ctx, found.window, lambda first, last: statistics.usage_over_period(line.subscriber_id, first, last))
    usage = usage_sum(parts)
    usages = usage.get("usages", [])
    shown = usages if params.records else [without_records(row) for row in usages]
    return {"data": cast(Usage, {**usage, "usages": shown, "dataBytes": data_bytes(usage)})}


def data_bytes(usage: PeriodUsage) -> int:
    """The data of the whole period."""
    return usage.get("total", {}).get("quantityPerType", {}).get(DATA_TYPE, 0)


def without_records(usage: SubscriberUsage) -> SubscriberUsage:
    """The days with their totals."""
    days = usage.get("subsPeriodUsages", [])
    return {**usage, "subsPeriodUsages": [{**day, "subsDailyUsages": []} for day in days]}


@operation(
    "POST",
    "/v1/subscribers/{iccid}/network-events",
    upstream=True,
    operator=True,
    title="Get network events",
    access=own_line_over,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Did this line register in a network yesterday?",
            {"iccid": "8988303700000100286", "start": "2027-01-14", "end": "2027-01-14"},
            {"data": EXAMPLE_EVENTS},
        )
    ],
    tool_defaults={"newest": 5},
)
async def subscriber_network_events(ctx: Ctx, params: EventRange, found: LineWindow) -> Data[NetworkEvents]:
    """Get a line's signalling: registrations (MAP, S6a) and data sessions (Gy).

    Both days included, UTC; without days the last seven. Shows why a line has no service.
    """
    line = found.line
    statistics = line.upstream.ocs.statistics
    parts = await read_weeks(ctx, found.window, lambda first, last: statistics.network_events_over_period(line.subscriber_id, first, last))
    return {"data": events_sum(parts, params.newest)}
