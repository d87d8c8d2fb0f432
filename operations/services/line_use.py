"""What a line used over some days, kept small: bytes and costs by day, and by country, network and kind of use.

Costs are whole micro-euros, so that sums are exact whatever their order. Weeks that ended days ago do not change any more and are kept.
"""

from collections.abc import Iterable
from datetime import date, timedelta

from clients.ocs.wire.statistics import CallRecord, PeriodUsage
from operations.services.fleet_reading import FleetLine
from operations.services.reached import Upstream
from operations.services.usage_weeks import DayUse, LineUse, PlaceUse, UsageWeeks
from operations.services.windows import Window, today, weeks

DATA = 33
MICRO = 1_000_000
SETTLED_DAYS = 3
"""Records may come late by so many days; a week that ended earlier is as it will stay."""


async def use_of(upstream: Upstream, line: FleetLine, window: Window, kept: UsageWeeks, now: float) -> LineUse:
    """A line's use over a window, read week by week. A week that cannot be read fails the line: part of a sum would be a wrong sum."""
    parts: list[LineUse] = []
    for week in weeks(window):
        found = kept.find(upstream.identity, line.subscriber_id, week.first, week.last)
        if found is None:
            answer = await upstream.ocs.statistics.usage_over_period(line.subscriber_id, week.first, week.last)
            found = condensed(answer)
            if week.last <= today(now) - timedelta(days=SETTLED_DAYS):
                kept.keep(upstream.identity, line.subscriber_id, week.first, week.last, found)
        parts.append(found)
    return joined(parts)


def condensed(answer: PeriodUsage) -> LineUse:
    """The figures of an answer."""
    days: dict[date, DayUse] = {}
    records: list[CallRecord] = []
    for usage in answer.get("usages", []):
        for row in usage.get("subsPeriodUsages", []):
            day, own = date.fromisoformat(row.get("day", "")[:10]), row.get("subsDailyUsages", [])
            records += own
            total = row.get("total", {})
            use = DayUse(
                day,
                total.get("quantityPerType", {}).get(str(DATA), 0),
                micro(total.get("resellerCost")),
                micro(total.get("subscriberCost")),
            )
            days[day] = added_day(days.get(day), use)
    whole = answer.get("total", {})
    return LineUse(
        tuple(days[day] for day in sorted(days)),
        places_of(records),
        micro(whole.get("resellerCost")),
        micro(whole.get("subscriberCost")),
    )


def places_of(records: Iterable[CallRecord]) -> tuple[PlaceUse, ...]:
    """Records by network and kind, in the order of their codes."""
    return summed(
        PlaceUse(
            row.get("mcc", 0),
            row.get("mnc", 0),
            row.get("countryAlpha2", "").upper(),
            row.get("operator", ""),
            row.get("usageType", 0),
            row.get("quantity", 0),
            micro(row.get("resellerCost")),
            micro(row.get("subscriberCost")),
            row.get("subscriberPrepaidPackageQty", 0),
        )
        for row in records
    )


def summed(places: Iterable[PlaceUse]) -> tuple[PlaceUse, ...]:
    """The same network and kind once."""
    found: dict[tuple[int, int, int], PlaceUse] = {}
    for place in places:
        key = place.mcc, place.mnc, place.usage_type
        former = found.get(key)
        found[key] = place if former is None else added_place(former, place)
    return tuple(found[key] for key in sorted(found))


def added_place(one: PlaceUse, other: PlaceUse) -> PlaceUse:
    """Two uses of the same network and kind."""
    return one._replace(
        quantity=one.quantity + other.quantity,
        reseller_cost=one.reseller_cost + other.reseller_cost,
        subscriber_cost=one.subscriber_cost + other.subscriber_cost,
        in_package=one.in_package + other.in_package,
    )


def added_day(one: DayUse | None, other: DayUse) -> DayUse:
    """Two parts of the same day."""
    if one is None:
        return other
    bytes_, reseller, subscriber = one.data_bytes + other.data_bytes, one.reseller_cost, one.subscriber_cost
    return DayUse(one.day, bytes_, reseller + other.reseller_cost, subscriber + other.subscriber_cost)


def joined(parts: Iterable[LineUse]) -> LineUse:
    """Weeks in a row as one stretch."""
    listed = list(parts)
    days: dict[date, DayUse] = {}
    for part in listed:
        for day in part.days:
            days[day.day] = added_day(days.get(day.day), day)
    return LineUse(
        tuple(days[day] for day in sorted(days)),
        summed(place for part in listed for place in part.places),
        sum(part.reseller_cost for part in listed),
        sum(part.subscriber_cost for part in listed),
    )


def micro(cost: float | None) -> int:
    """A cost in whole micro-euros. The upstream's floats are such numbers to begin with."""
    return round((cost or 0.0) * MICRO)
