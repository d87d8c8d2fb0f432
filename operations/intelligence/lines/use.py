"""What a line used over some days, kept small: bytes and costs by day, and by country, network and kind of use.

Costs are whole micro-euros, so that sums are exact whatever their order. Days that ended a while ago do not change any more and are kept.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from clients.ocs.wire.statistics import CallRecord, DayUsage, PeriodUsage
from operations.intelligence.fleet.reading import FleetLine
from operations.services.network.mobile_countries import country_of
from operations.services.network.reached import Upstream
from operations.services.network.usage_weeks import (
    FRESH_SECONDS,
    DayPlace,
    DayUse,
    LineUse,
    PlaceUse,
    Stretch,
    UsageWeeks,
    Visit,
    cut,
    days_of,
    places_of,
)
from operations.services.network.windows import WEEK, Window, today
from registry.errors import OcsError

DATA = 33
MICRO = 1_000_000
MOST_EUR = 1e12
SETTLED_DAYS = 3
"""Records may come late by so many days; a day that ended earlier is as it will stay."""
NO_DAY = date.min.toordinal()


async def use_of(upstream: Upstream, line: FleetLine, window: Window, kept: UsageWeeks, now: float) -> LineUse:
    """A line's use over a window. What is not known yet is read, a week at a time; a week that cannot be read fails the line.

    Part of a sum would be a wrong sum.
    """
    first, last = window.first.toordinal(), min(window.last.toordinal(), quiet_after(line))
    if last < first:
        return LineUse((), (), 0, 0)
    known = kept.find(upstream.identity, line.subscriber_id, now)
    if known is None or known.last < first - 1 or last + 1 < known.first:
        known = None
    while (missing := next_week(known, first, last)) is not None:
        week = await read_week(upstream, line, missing, kept)
        known = week if known is None else joined(known, week, kept)
        remember(upstream, line, known, kept, now)
    return LineUse((), (), 0, 0) if known is None else summary(known, first, last)


def quiet_after(line: FleetLine) -> int:
    """The last day with use that the list told of, and some more for records that come late: nobody needs to read what follows.

    Choice: a SIM in stock that never was used has none. A line whose last use is not told is read.
    """
    told = line.row.get("lastUsageDate")
    if told is None:
        return NO_DAY if line.row.get("sim", {}).get("status") == "FREE" else date.max.toordinal()
    try:
        return date.fromisoformat(told[:10]).toordinal() + SETTLED_DAYS
    except ValueError:
        return date.max.toordinal()


def next_week(known: Stretch | None, first: int, last: int) -> tuple[int, int] | None:
    """Seven days at most that are to be read next to what is known: first what lies before it, then what comes after."""
    if known is None:
        return first, min(first + WEEK - 1, last)
    if first < known.first:
        return max(first, known.first - WEEK), known.first - 1
    if known.last < last:
        return known.last + 1, min(known.last + WEEK, last)
    return None


async def read_week(upstream: Upstream, line: FleetLine, week: tuple[int, int], kept: UsageWeeks) -> Stretch:
    """A week or less, as the charging system tells it now."""
    first, last = week
    answer = await upstream.ocs.statistics.usage_over_period(line.subscriber_id, date.fromordinal(first), date.fromordinal(last))
    return kept.pack(first, last, days_told(answer), places_told(answer))


def remember(upstream: Upstream, line: FleetLine, known: Stretch, kept: UsageWeeks, now: float) -> None:
    """Keep what was read of days that have ended: the newest of them for a short while only."""
    ended = today(now).toordinal() - 1
    if known.first <= ended:
        stretch = cut(known, known.first, min(known.last, ended))
        settled = (today(now) - timedelta(days=SETTLED_DAYS)).toordinal()
        until = known.until or now + FRESH_SECONDS
        kept.keep(upstream.identity, line.subscriber_id, stretch._replace(settled=settled, until=until))


def days_told(answer: PeriodUsage) -> Iterator[DayUse]:
    """The totals of days in an answer, in order."""
    days: dict[date, DayUse] = {}
    for row in rows_of(answer):
        day, total = day_of(row), row.get("total", {})
        data = total.get("quantityPerType", {}).get(str(DATA), 0)
        use = DayUse(day, data, micro(total.get("resellerCost")), micro(total.get("subscriberCost")))
        days[day] = added_day(days.get(day), use)
    return (days[day] for day in sorted(days))


def places_told(answer: PeriodUsage) -> Iterator[DayPlace]:
    """The records of an answer by day, network and kind."""
    found: dict[tuple[int, int, int, int], DayPlace] = {}
    for row in rows_of(answer):
        day = day_of(row).toordinal()
        for record in row.get("subsDailyUsages", []):
            place = place_of(record)
            key = day, place.mcc, place.mnc, place.usage_type
            former = found.get(key)
            found[key] = DayPlace(day, place if former is None else added_place(former.place, place))
    return (found[key] for key in sorted(found))


def rows_of(answer: PeriodUsage) -> Iterator[DayUsage]:
    """Every day of every part."""
    return (row for usage in answer.get("usages", []) for row in usage.get("subsPeriodUsages", []))


def day_of(row: DayUsage) -> date:
    """Which day it is."""
    try:
        return date.fromisoformat(row.get("day", "")[:10])
    except ValueError:
        raise OcsError("The charging system gave a day of usage that cannot be read") from None


def place_of(row: CallRecord) -> PlaceUse:
    """Where and how much."""
    mcc, mnc = row.get("mcc", 0), row.get("mnc", 0)
    return PlaceUse(
        mcc,
        mnc,
        iso2_of(row.get("countryAlpha2", ""), mcc, mnc),
        row.get("operator", ""),
        row.get("usageType", 0),
        row.get("quantity", 0),
        micro(row.get("resellerCost")),
        micro(row.get("subscriberCost")),
        row.get("subscriberPrepaidPackageQty", 0),
    )


def iso2_of(told: str, mcc: int, mnc: int) -> str:
    """The country as it is told, where that is a code; else by the network's."""
    if len(told) == 2 and told.isascii() and told.isalpha():
        return told.upper()
    return country_of(f"{mcc:03}", f"{mnc:02}") or ""


def summary(known: Stretch, first: int, last: int) -> LineUse:
    """The use of some of the days that are known."""
    days, placed = tuple(days_of(known, first, last)), list(places_of(known, first, last))
    visits = dict.fromkeys((day, place.iso2) for day, place in placed if place.iso2)
    return LineUse(
        days,
        summed(place for _, place in placed),
        sum(day.reseller_cost for day in days),
        sum(day.subscriber_cost for day in days),
        tuple(Visit(date.fromordinal(day), iso2) for day, iso2 in visits),
    )


def summed(places: Iterable[PlaceUse]) -> tuple[PlaceUse, ...]:
    """The same network and kind once, in the order of their codes."""
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


def joined(one: Stretch, other: Stretch, kept: UsageWeeks) -> Stretch:
    """Two stretches of days next to each other as one; what was known before says how long it is believed."""
    early, late = (one, other) if one.first < other.first else (other, one)
    days = (day for part in (early, late) for day in days_of(part, part.first, part.last))
    places = (place for part in (early, late) for place in places_of(part, part.first, part.last))
    return kept.pack(early.first, late.last, days, places)._replace(until=one.until)


def micro(cost: float | None) -> int:
    """A cost in whole micro-euros. The upstream's floats are such numbers to begin with; one that no bill can hold is cut."""
    return round(max(-MOST_EUR, min(MOST_EUR, cost or 0.0)) * MICRO)
