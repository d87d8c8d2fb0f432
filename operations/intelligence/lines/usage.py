"""What a line used over some days: bytes and costs by day, country, network and kind of use; and how long it rests between two days of use.

Costs are whole micro-euros, so that sums are exact whatever their order. Days that ended a while ago do not change any more and are
cached.

A rest is a run of days without use. Whether a line comes back on a given day of rest has a probability of its own, unknown, which its past
rests teach; so long a silence then has beta-geometric odds (Fader, Hardie and Shang 2010). A traveller who rested for two weeks before
teaches that rests are long, and a line that is used on nearly every day that they are short.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

from clients.ocs.statistics import CallRecord, PeriodUsage
from operations.caches.usage import (
    RECENT_USAGE_SECONDS,
    DayPlace,
    DayUse,
    PlaceUse,
    UsageCache,
    UsageSpan,
    cut_span,
    span_days,
    span_places,
)
from operations.deps import Ctx
from operations.intelligence.lines.fleet_lines import FleetLine, day_of_time
from operations.times import WEEK_DAYS, DayWindow, utc_today
from operations.upstream.connection import Upstream
from operations.upstream.usage import USAGE_TYPE_DATA, micro_euros, usage_country, usage_day, usage_rows


class CountryVisit(NamedTuple):
    """A day with use in a country."""

    day: date
    iso2: str


class LineUse(NamedTuple):
    """All of a line's use in some days; days without use are left out."""

    days: tuple[DayUse, ...]
    places: tuple[PlaceUse, ...]
    reseller_cost: int
    """As the upstream's own totals of the days say, in micro-euros."""
    subscriber_cost: int
    visits: tuple[CountryVisit, ...] = ()
    """Every day and country once, by day."""

    @property
    def data_bytes(self) -> int:
        return sum(day.data_bytes for day in self.days)


LATE_RECORD_DAYS = 3
"""Records may come late by so many days; a day that ended earlier is as it will stay."""
BEFORE_ALL_DAYS = date.min.toordinal()


async def read_line_use(ctx: Ctx, upstream: Upstream, line: FleetLine, window: DayWindow) -> LineUse:
    """What `line` used in `window`, from the cache and, a week at a time, from the charging system.

    Waits for the network. A week that cannot be read fails the whole line, since part of a sum would be a wrong sum.
    """
    first, last = window.first.toordinal(), min(window.last.toordinal(), last_day_to_read(line))
    if last < first:
        return LineUse((), (), 0, 0)
    kept = ctx.deps.weeks
    known = kept.find(upstream.identity, line.subscriber_id, ctx.now)
    if known is None or known.last < first - 1 or last + 1 < known.first:
        known = None
    while (missing := next_missing_week(known, first, last)) is not None:
        week = await read_use_week(upstream, line, missing, kept)
        known = week if known is None else join_spans(known, week, kept)
        cache_line_use(upstream, line, known, kept, ctx.now)
    return LineUse((), (), 0, 0) if known is None else sum_line_days(known, first, last)


def last_day_to_read(line: FleetLine) -> int:
    """The ordinal of the last day worth reading: the last use by the list, and some days more for records that come late.

    Choice: a SIM in stock that was never used has none. A line whose last use is not told is read to the end.
    """
    told = line.row.get("lastUsageDate")
    if told is None:
        return BEFORE_ALL_DAYS if line.row.get("sim", {}).get("status") == "FREE" else date.max.toordinal()
    try:
        return date.fromisoformat(told[:10]).toordinal() + LATE_RECORD_DAYS
    except ValueError:
        return date.max.toordinal()


def next_missing_week(known: UsageSpan | None, first: int, last: int) -> tuple[int, int] | None:
    """At most seven days to read next to the cached ones: first the days before them, then those after."""
    if known is None:
        return first, min(first + WEEK_DAYS - 1, last)
    if first < known.first:
        return max(first, known.first - WEEK_DAYS), known.first - 1
    if known.last < last:
        return known.last + 1, min(known.last + WEEK_DAYS, last)
    return None


async def read_use_week(upstream: Upstream, line: FleetLine, week: tuple[int, int], kept: UsageCache) -> UsageSpan:
    """The use of `week` (seven days or fewer) as the charging system reports it now. Waits for the network."""
    first, last = week
    answer = await upstream.ocs.statistics.usage_over_period(line.subscriber_id, date.fromordinal(first), date.fromordinal(last))
    return kept.pack(first, last, day_totals(answer), day_places(answer))


def cache_line_use(upstream: Upstream, line: FleetLine, known: UsageSpan, kept: UsageCache, now: float) -> None:
    """Caches the days that have ended; the newest of them only for a short time."""
    ended = utc_today(now).toordinal() - 1
    if known.first <= ended:
        stretch = cut_span(known, known.first, min(known.last, ended))
        settled = (utc_today(now) - timedelta(days=LATE_RECORD_DAYS)).toordinal()
        until = known.until or now + RECENT_USAGE_SECONDS
        kept.keep(upstream.identity, line.subscriber_id, stretch._replace(settled=settled, until=until))


def day_totals(answer: PeriodUsage) -> Iterator[DayUse]:
    """The daily totals in `answer`, in order of days."""
    days: dict[date, DayUse] = {}
    for row in usage_rows(answer):
        day, total = usage_day(row), row.get("total", {})
        data = total.get("quantityPerType", {}).get(str(USAGE_TYPE_DATA), 0)
        use = DayUse(day, data, micro_euros(total.get("resellerCost")), micro_euros(total.get("subscriberCost")))
        days[day] = add_day_use(days.get(day), use)
    return (days[day] for day in sorted(days))


def day_places(answer: PeriodUsage) -> Iterator[DayPlace]:
    """The records in `answer` by day, network and kind."""
    found: dict[tuple[int, int, int, int], DayPlace] = {}
    for row in usage_rows(answer):
        day = usage_day(row).toordinal()
        for record in row.get("subsDailyUsages", []):
            place = place_use(record)
            key = day, place.mcc, place.mnc, place.usage_type
            former = found.get(key)
            found[key] = DayPlace(day, place if former is None else add_place_use(former.place, place))
    return (found[key] for key in sorted(found))


def place_use(row: CallRecord) -> PlaceUse:
    mcc, mnc = row.get("mcc", 0), row.get("mnc", 0)
    return PlaceUse(
        mcc,
        mnc,
        usage_country(row.get("countryAlpha2", ""), mcc, mnc),
        row.get("operator", ""),
        row.get("usageType", 0),
        row.get("quantity", 0),
        micro_euros(row.get("resellerCost")),
        micro_euros(row.get("subscriberCost")),
        row.get("subscriberPrepaidPackageQty", 0),
    )


def sum_line_days(known: UsageSpan, first: int, last: int) -> LineUse:
    """The use of the cached days from `first` to `last`."""
    days, placed = tuple(span_days(known, first, last)), list(span_places(known, first, last))
    visits = dict.fromkeys((day, place.iso2) for day, place in placed if place.iso2)
    return LineUse(
        days,
        sum_places(place for _, place in placed),
        sum(day.reseller_cost for day in days),
        sum(day.subscriber_cost for day in days),
        tuple(CountryVisit(date.fromordinal(day), iso2) for day, iso2 in visits),
    )


def sum_places(places: Iterable[PlaceUse]) -> tuple[PlaceUse, ...]:
    """One entry for each network and kind, in order of codes."""
    found: dict[tuple[int, int, int], PlaceUse] = {}
    for place in places:
        key = place.mcc, place.mnc, place.usage_type
        former = found.get(key)
        found[key] = place if former is None else add_place_use(former, place)
    return tuple(found[key] for key in sorted(found))


def add_place_use(one: PlaceUse, other: PlaceUse) -> PlaceUse:
    return one._replace(
        quantity=one.quantity + other.quantity,
        reseller_cost=one.reseller_cost + other.reseller_cost,
        subscriber_cost=one.subscriber_cost + other.subscriber_cost,
        in_package=one.in_package + other.in_package,
    )


def add_day_use(one: DayUse | None, other: DayUse) -> DayUse:
    if one is None:
        return other
    bytes_, reseller, subscriber = one.data_bytes + other.data_bytes, one.reseller_cost, one.subscriber_cost
    return DayUse(one.day, bytes_, reseller + other.reseller_cost, subscriber + other.subscriber_cost)


def join_spans(one: UsageSpan, other: UsageSpan, kept: UsageCache) -> UsageSpan:
    """Two adjoining ranges of days as one; `one` decides how long it stays cached."""
    early, late = (one, other) if one.first < other.first else (other, one)
    days = (day for part in (early, late) for day in span_days(part, part.first, part.last))
    places = (place for part in (early, late) for place in span_places(part, part.first, part.last))
    return kept.pack(early.first, late.last, days, places)._replace(until=one.until)


CALENDAR_DAYS = 28
"""Choice: four weeks, so that every weekday counts alike, for four calls a line."""


class LineCalendar(NamedTuple):
    """Whole UTC days in a row. `begun`: the line was in use before them, so that empty days at their beginning are days of rest."""

    window: DayWindow
    days: tuple[DayUse | None, ...]
    countries: tuple[tuple[str, ...], ...]
    """Where it was used on each day."""
    begun: bool

    @property
    def used(self) -> list[bool]:
        """For each day whether the line was used, without the days before the line began."""
        known = [day is not None for day in self.days]
        return known if self.begun or True not in known else known[known.index(True) :]


def last_whole_days(now: float, days: int = CALENDAR_DAYS) -> DayWindow:
    """The last `days` UTC days that have ended at `now`, Unix seconds."""
    last = utc_today(now) - timedelta(days=1)
    return DayWindow(last - timedelta(days=days - 1), last)


def line_calendar(line: FleetLine, use: LineUse, window: DayWindow) -> LineCalendar:
    days: list[DayUse | None] = [None] * window.days
    countries: list[tuple[str, ...]] = [()] * window.days
    for day in use.days:
        days[(day.day - window.first).days] = day
    for visit in use.visits:
        place = (visit.day - window.first).days
        countries[place] = (*countries[place], visit.iso2)
    return LineCalendar(window, tuple(days), tuple(countries), was_active_before(line, window))


def was_active_before(line: FleetLine, window: DayWindow) -> bool:
    """Whether the line was active before `window`. Choice: a line without a known start began with its first use."""
    begun = day_of_time(line.row.get("activationDate"))
    return begun is not None and begun < window.first


INTER_USE_PRIOR = 8.0
"""Days of rest that a line's share of used days counts for, before its own rests have taught anything."""


class InterUseModel(NamedTuple):
    """What a line did from its first day to its last use."""

    days: int
    used: int
    returns: int
    """Rests that ended."""
    rested: int
    """Days of these rests."""

    @property
    def share(self) -> float:
        """The share of days with use, moved slightly towards one half, since few days prove little."""
        return (self.used + 1) / (self.days + 2)


def inter_use_model(used: Sequence[bool]) -> InterUseModel:
    """The model of consecutive days. The days after the last use are left out, since that rest has not ended."""
    last = max((place for place, day in enumerate(used) if day), default=-1)
    known = used[: last + 1]
    rests = [len(list(run)) for day, run in groupby(known) if not day]
    return InterUseModel(len(known), sum(known), len(rests), sum(rests))


def silence_odds(inter_use: InterUseModel, days: int) -> float:
    """The probability that a line of this model stays silent for `days` days after a use; 1 for 0 days."""
    back = INTER_USE_PRIOR * inter_use.share + inter_use.returns
    away = INTER_USE_PRIOR * (1 - inter_use.share) + inter_use.rested - inter_use.returns
    odds = 1.0
    for day in range(days):
        odds *= (away + day) / (away + back + day)
    return odds
