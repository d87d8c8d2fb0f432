"""What a line used and signalled over days, since when it was used, and its counter of the green zone.

Longer ranges are read in parts and added up.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Annotated, Literal, NamedTuple, NotRequired, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.statistics import (
    CountryQuantity,
    DayUsage,
    EventSection,
    NetworkEvents,
    OperatorQuantity,
    PeriodUsage,
    SubscriberPeriod,
    SubscriberUsage,
    UsageTotal,
)
from clients.ocs.subscribers import GreenZoneCounter
from clients.ocs.times import event_seconds
from clients.ocs.wire_schema import keeps_unknown
from operations.deps import Ctx
from operations.times import DayRange, DayWindow, day_window, split_weeks, utc_time_text
from operations.upstream.lines import Line, LineRef, own_line
from operations.upstream.package_losses import data_text
from operations.upstream.paging import Data
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import EndOfLife, NotFound, OcsError
from registry.operation import Example, Scope, SpendKind, operation

DATA_TYPES, CALL_TYPES, VOIP_TYPES, MESSAGE_TYPES = ("33",), ("1", "15"), ("40", "41"), ("21", "22")
"""Usage types by what their quantities are."""


class UsageQuery(DayRange, LineRef):
    """Which line, which days, and how closely."""

    # Choice: single records are most of the answer's bytes, so a caller that needs the sums only can leave them out.
    records: Annotated[bool, Field(description="With every single record of each day.")] = True


class NetworkEventQuery(DayRange, LineRef):
    """Which line, which days, and how many events."""

    newest: Annotated[int | None, Field(ge=1, le=100_000, description="Last events of each protocol.")] = None


class LineWindow(NamedTuple):
    """A line of the caller's and the days that were meant."""

    line: Line
    window: DayWindow


@keeps_unknown
class Usage(TypedDict, total=False):
    """Usage and costs of a line."""

    total: UsageTotal
    usages: list[SubscriberUsage]
    dataBytes: Annotated[int, Field(description="Data in all, bytes")]
    callSeconds: Annotated[int, Field(description="Calls made and received, seconds")]
    voipSeconds: Annotated[int, Field(description="Calls over IP, seconds; the charging system may count such a call in callSeconds, too")]
    messages: Annotated[int, Field(description="SMS sent and received")]


LINE_USAGE_EXAMPLE: Usage = {
    "total": {
        "resellerCost": 0.2,
        "subscriberCost": 0.0,
        "quantityPerType": {"33": 104857600},
        "quantityPerCountry": [{"mcc": 242, "name": "Norway", "alpha2": "no", "qty": 104857600, "quantityPerOperator": []}],
    },
    "usages": [],
    "dataBytes": 104857600,
    "callSeconds": 0,
    "voipSeconds": 0,
    "messages": 0,
}
NETWORK_EVENTS_EXAMPLE: NetworkEvents = {
    "mapAnswer": {"events": []},
    "s6aAnswer": {
        "events": [
            {"eventTime": "2027-01-14T10:00:00.000+00:00", "cmdNameShort": "ULR", "protocol": "S6a", "countryAlpha2": "no"},
        ]
    },
    "gyAnswer": {"events": []},
}


async def own_line_window(ctx: Ctx, params: UsageQuery | NetworkEventQuery) -> LineWindow:
    """The caller's own line and the days; a range that cannot be read is refused before any call upstream."""
    window = day_window(params.start, params.end, ctx.now)
    return LineWindow(await own_line(ctx, params), window)


@operation(
    "POST",
    "/v1/subscribers/{iccid}/usage",
    upstream=True,
    operator=True,
    title="Get usage",
    access=own_line_window,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "How much data did this line use in the first half of January?",
            {"iccid": "8988303700000100286", "start": "2027-01-01", "end": "2027-01-15", "records": False},
            {"data": LINE_USAGE_EXAMPLE},
        )
    ],
    tool_defaults={"records": False},
)
async def subscriber_usage(ctx: Ctx, params: UsageQuery, found: LineWindow) -> Data[Usage]:
    """Get usage and costs of a line: totals, by country, by day.

    Both days included, UTC; without days the last seven. `dataBytes` is all data. list_subscriber_packages shows what packages have left.

    `dataBytes`, `callSeconds`, `voipSeconds` and `messages` are the sums by kind. The charging system's own members stay as they are:
    `quantityPerType` counts bytes (33), seconds (1, 15, 40, 41) and messages (21, 22), and `qty` of a country adds these up, so that it
    says little where a line does more than one. Longer ranges are read week by week and added up; when one week cannot be read the whole
    call fails.
    """
    line = found.line
    statistics = line.upstream.ocs.statistics
    parts = await read_by_week(ctx, found.window, lambda first, last: statistics.usage_over_period(line.subscriber_id, first, last))
    usage = sum_usage(parts)
    usages = usage.get("usages", [])
    rows = usages if params.records else [without_usage_records(row) for row in usages]
    return {"data": cast(Usage, {**usage, "usages": rows, **usage_by_kind(usage.get("total", {}))})}


def usage_by_kind(total: UsageTotal) -> Mapping[str, int]:
    """Data in bytes, calls in seconds and messages, by the names of the answer."""
    quantities = total.get("quantityPerType", {})
    kinds = {"dataBytes": DATA_TYPES, "callSeconds": CALL_TYPES, "voipSeconds": VOIP_TYPES, "messages": MESSAGE_TYPES}
    return {name: sum(quantities.get(code, 0) for code in codes) for name, codes in kinds.items()}


def without_usage_records(usage: SubscriberUsage) -> SubscriberUsage:
    days = usage.get("subsPeriodUsages", [])
    return {**usage, "subsPeriodUsages": [{**day, "subsDailyUsages": []} for day in days]}


@operation(
    "POST",
    "/v1/subscribers/{iccid}/network-events",
    upstream=True,
    operator=True,
    title="Get network events",
    access=own_line_window,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Did this line register in a network yesterday?",
            {"iccid": "8988303700000100286", "start": "2027-01-14", "end": "2027-01-14"},
            {"data": NETWORK_EVENTS_EXAMPLE},
        )
    ],
    tool_defaults={"newest": 5},
)
async def subscriber_network_events(ctx: Ctx, params: NetworkEventQuery, found: LineWindow) -> Data[NetworkEvents]:
    """Get a line's signalling: registrations (MAP, S6a) and data sessions (Gy).

    Both days included, UTC; without days the last seven. Shows why a line has no service.
    """
    line = found.line
    statistics = line.upstream.ocs.statistics
    parts = await read_by_week(
        ctx, found.window, lambda first, last: statistics.network_events_over_period(line.subscriber_id, first, last)
    )
    return {"data": merge_network_events(parts, params.newest)}


WeekAnswer = TypeVar("WeekAnswer")


async def read_by_week(ctx: Ctx, window: DayWindow, ask: Callable[[date, date], Awaitable[WeekAnswer]]) -> Sequence[WeekAnswer]:
    """The answer of `ask` for every week, in order. If one week fails, so does the call: a partial sum would be wrong. Waits for the
    network."""
    parts: list[WeekAnswer] = []
    cut = split_weeks(window)
    for week in cut:
        parts.append(await ask(week.first, week.last))
        if len(cut) > 1:
            await ctx.progress(len(parts), len(cut), f"Read until {week.last}")
    return parts


UsageRow = TypeVar("UsageRow")
UsageKey = TypeVar("UsageKey", bound=Hashable)
COST_DECIMALS = 9
"""Digits of a sum of costs: prices have fewer, and floats add noise beyond them."""
QUANTITY_MEMBERS = ("quantityPerType", "quantityPerCountry")


def sum_usage(parts: Sequence[PeriodUsage]) -> PeriodUsage:
    if len(parts) == 1:
        return parts[0]
    lines = group_usage((line for part in parts for line in part.get("usages", [])), lambda line: line.get("subscriberId", 0))
    return {"total": sum_usage_totals([part.get("total", {}) for part in parts]), "usages": [sum_line_usage(same) for same in lines]}


def sum_line_usage(parts: Sequence[SubscriberUsage]) -> SubscriberUsage:
    """One line of several parts: its total, and its days in order."""
    days = group_usage((day for part in parts for day in part.get("subsPeriodUsages", [])), lambda day: day.get("day", ""))
    return {
        **parts[0],
        "total": sum_usage_totals([part.get("total", {}) for part in parts]),
        "subsPeriodUsages": sorted((sum_day_usage(same) for same in days), key=lambda day: day.get("day", "")),
    }


def sum_day_usage(parts: Sequence[DayUsage]) -> DayUsage:
    """One day, which is usually in one part only."""
    if len(parts) == 1:
        return parts[0]
    return {
        **parts[0],
        "total": sum_usage_totals([part.get("total", {}) for part in parts]),
        "subsDailyUsages": [record for part in parts for record in part.get("subsDailyUsages", [])],
    }


def sum_usage_totals(parts: Sequence[UsageTotal]) -> UsageTotal:
    """Costs by member; quantities by type, country and operator. Costs that newer servers add are included."""
    names = dict.fromkeys(name for part in parts for name in part if name not in QUANTITY_MEMBERS)
    costs: dict[str, object] = {name: sum_numbers([part.get(name) for part in parts]) for name in names}
    kinds = dict.fromkeys(kind for part in parts for kind in part.get("quantityPerType", {}))
    types = {kind: sum(part.get("quantityPerType", {}).get(kind, 0) for part in parts) for kind in kinds}
    countries = group_usage((row for part in parts for row in part.get("quantityPerCountry", [])), lambda row: row.get("mcc", 0))
    quantities: UsageTotal = {"quantityPerCountry": [sum_country_usage(same) for same in countries]}
    if types:
        quantities["quantityPerType"] = types
    return cast(UsageTotal, {**costs, **quantities})


def sum_numbers(values: Iterable[object]) -> object:
    """The sum of the numbers in `values`; without any, the first value."""
    found = [value for value in values if value is not None]
    numbers = [value for value in found if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return round(sum(numbers), COST_DECIMALS) if numbers else found[0] if found else None


def sum_country_usage(parts: Sequence[CountryQuantity]) -> CountryQuantity:
    operators = group_usage((row for part in parts for row in part.get("quantityPerOperator", [])), lambda row: row.get("mnc", 0))
    sums: list[OperatorQuantity] = [{**same[0], "qty": sum(part.get("qty", 0) for part in same)} for same in operators]
    return {**parts[0], "qty": sum(part.get("qty", 0) for part in parts), "quantityPerOperator": sums}


def group_usage(rows: Iterable[UsageRow], key: Callable[[UsageRow], UsageKey]) -> list[list[UsageRow]]:
    """Rows with the same `key` together, in order of the first occurrence of each key."""
    groups: dict[UsageKey, list[UsageRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


EVENT_SECTIONS = ("mapAnswer", "s6aAnswer", "gyAnswer")


def merge_network_events(parts: Sequence[NetworkEvents], newest: int | None) -> NetworkEvents:
    """Always all three sections; with `newest`, that many of the last events of each."""
    extra = {name: value for part in parts for name, value in part.items() if name not in EVENT_SECTIONS}
    sections = {name: merge_event_section([cast(EventSection, part.get(name, {})) for part in parts], newest) for name in EVENT_SECTIONS}
    return cast(NetworkEvents, {**sections, **extra})


def merge_event_section(parts: Sequence[EventSection], newest: int | None) -> EventSection:
    events = sorted((event for part in parts for event in part.get("events", [])), key=event_seconds)
    return cast(EventSection, {**(parts[0] if parts else {}), "events": events if newest is None else events[-newest:]})


LINE_PERIOD_EXAMPLE: SubscriberPeriod = {
    "subscriberId": 910045,
    "period": {"start": "2026-11-02T07:12:44", "end": "2027-01-15T09:41:07"},
}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/active-period",
    upstream=True,
    operator=True,
    title="Get first and last usage",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[Example("Is this line still in use?", {"iccid": "8988303700000100286"}, {"data": LINE_PERIOD_EXAMPLE})],
)
async def subscriber_active_period(ctx: Ctx, params: LineRef, line: Line) -> Data[SubscriberPeriod]:
    """Get the first and last usage of a line, UTC.

    `period` is null when it was never used.
    """
    found = await line.upstream.ocs.statistics.active_period(line.subscriber_id)
    return {"data": {"period": None, **found, "subscriberId": line.subscriber_id}}


async def name_counter(_ctx: Ctx, params: LineRef, line: Line) -> Challenge:
    """What the counter reads now. Waits for the network."""
    row = await line.upstream.ocs.subscriber.get_single_subscriber(line.subscriber_id, with_gz_counter=True)
    counter = row.get("greenZoneCounter", {})
    volume, since = counter.get("volumeOnGZ"), utc_time_text(counter.get("lastResetDate"))
    loss = describe_loss("counter", params.iccid, volume=None if volume is None else data_text(volume), counted_since=since)
    return Challenge(
        f"This will set the green-zone counter of a line to zero: {name_losses((loss,))}. What it has counted is lost for good.", (loss,)
    )


class CounterReset(TypedDict):
    """The counter as it reads afterwards, where it could be read."""

    reset: Literal[True]
    counter: NotRequired[GreenZoneCounter]


@operation(
    "POST",
    "/v1/subscribers/{iccid}/gz-counter/reset",
    spends=SpendKind.OPEN,
    irreversible=True,
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    moves=True,
    access=own_line,
    challenge=name_counter,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Let a line use the green zone again",
            {"iccid": "8988303700000100286"},
            {"data": {"reset": True, "counter": {"subscriberId": 910045, "volumeOnGZ": 0, "lastResetDate": "2027-01-15T12:00:00"}}},
        )
    ],
)
async def reset_subscriber_gz_counter(ctx: Ctx, params: LineRef, line: Line) -> Data[CounterReset]:
    """Set a line's green-zone volume counter to zero.

    Cannot be undone. The green zone is what stays reachable when a line's data is used up.
    """
    subscribers = line.upstream.ocs.subscriber
    counter = await subscribers.reset_gz_counter(line.subscriber_id)
    if counter is None:
        with suppress(OcsError):  # the reset itself is done and certain
            counter = (await subscribers.get_single_subscriber(line.subscriber_id, with_gz_counter=True)).get("greenZoneCounter")
    return {"data": {"reset": True} if counter is None else {"reset": True, "counter": counter}}
