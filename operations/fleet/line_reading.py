"""Reading one line into the model: what is to be read of it now, and when it is to be read again.

Packages and the use of today are read when a line was used, at most every eight hours; a day of use that has ended is read once more
when its records have come in; older days are read a week at a time. A line that nothing happened to costs one call a week: other
programs may give it packages, and no list tells that.
"""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import orjson

from clients.ocs.packages import PackageList, RecurringSeries
from clients.ocs.times import wire_seconds
from operations.fleet.wire_rows import NamesKept, day_start, line_rows, line_supply_at, ordinal, package_rows, usage_of_days
from operations.upstream.connection import Upstream
from operations.upstream.lines import package_start, series_continues
from operations.upstream.signalling import line_signalling
from registry.errors import OcsNotFound
from storage.fleet_judgements import JudgedLine
from storage.fleet_lines import LineDetail, LineReadState, ListedLine
from storage.fleet_readings import LineReading, LineWork
from storage.fleet_usage import KEPT_USAGE_DAYS, FleetNetworkRow, FleetUsageRow
from storage.fleets import BACKFILL, CHANGED, FINISH_DAY, LOOK_AGAIN, MARKED, NEVER_READ, RADIO

FINAL_AFTER_DAYS = 2
"""A day of use is as it will stay when it is read on the second day after it, or later: records come late by a day."""
WEEK = 7
REFUSED_KEPT = 60
"""Refused sessions of a line that are kept, the newest."""
FINISH_SPREAD_SECONDS = 4 * 3600
"""Finished days are read within so many seconds after midnight, each line at its own time."""
CHANGED_EVERY_SECONDS = 8 * 3600.0
NEAR_LIMIT_SHARE = 10
"""With a tenth of its data left a line is near its limit: if it is used, it is read again each hour."""
NEAR_LIMIT_SECONDS = 3600.0
LOOK_AGAIN_SECONDS = 7 * 86_400.0
"""Packages are read again after so long, whatever is told of the line."""
SETTLED_SECONDS = 5.0
"""A line that was read so soon after its last use is read again, as if it had been used since: no list shows a second use in the same
second, and clocks may differ."""
SERIES_AHEAD_SECONDS = 12 * 3600.0
"""A series makes its next package so long before that begins."""
SERIES_LATE_SECONDS = 600.0
"""And it has done so by so many seconds later."""
LONGEST_PERIOD_DAYS = (1, 7, 31)
FREQUENCY_LIMIT = 1200
"""Periods of a series; one that repeats more seldom is looked at each day."""
NO_RANK, NO_DUE = RADIO + 1, 0.0
JUDGED_DAYS = (28, 56)
"""A line whose older days are being read is judged when so many are known, and when all are: not after each week."""
AS_BEFORE = -1.0


class UsageSpanDays(NamedTuple):
    """Days to read the use of, both included, as ordinals."""

    first: int
    last: int


def oldest_day(line: LineWork | ListedLine | JudgedLine, today: int) -> int:
    """The first day whose use matters: the line's first day of service, and no older than usage is kept."""
    begun = min((moment for moment in (line.activated, line.issued) if moment > 0), default=0.0)
    return max(today - KEPT_USAGE_DAYS + 1, ordinal(begun) if begun else 0)


def newest_days(line: LineWork, now: float) -> UsageSpanDays | None:
    """The days to read up to today, a week at most, oldest first; None where all use is known. `now`: Unix seconds."""
    today = ordinal(now)
    if line.last_used <= 0:
        return None
    used = min(ordinal(line.last_used), today)
    known = final_day(line)
    first = max(known + 1 if known else today - WEEK + 1, oldest_day(line, today))
    last = min(used + FINAL_AFTER_DAYS - 1, today, first + WEEK - 1)
    return UsageSpanDays(first, last) if first <= min(used, last) else None


def final_day(line: LineWork) -> int:
    """The last day whose use is known for good, as an ordinal; 0 where none is."""
    if not line.usage_last:
        return 0
    return min(line.usage_last, ordinal(line.usage_read) - FINAL_AFTER_DAYS)


def older_days(line: LineWork | JudgedLine, now: float) -> UsageSpanDays | None:
    """The week before the days that are known; None where nothing older matters. `now`: Unix seconds."""
    first_known = line.usage_first
    oldest = oldest_day(line, ordinal(now))
    if not first_known or first_known <= oldest or line.last_used <= 0:
        return None
    last = min(first_known - 1, ordinal(line.last_used))
    return UsageSpanDays(max(oldest, last - WEEK + 1), last) if last >= oldest else None


class LinePart(NamedTuple):
    """What was read of a line at `now`, Unix seconds. None: that was not asked for."""

    packages: PackageList | None
    usage: list[FleetUsageRow] | None
    days: UsageSpanDays | None
    networks: list[FleetNetworkRow]


async def read_line_part(upstream: Upstream, line: LineWork, accounts: frozenset[int], now: float) -> LinePart:
    """What is due of the line: packages unless only days of use are missing, and a week of use at most. Waits for the network."""
    ocs, packages = upstream.ocs, None
    if line.read <= 0 or line.rank not in (FINISH_DAY, BACKFILL):
        packages = await ocs.packages.list_packages(line.subscriber_id, version="v2")
    days = older_days(line, now) if line.rank == BACKFILL else newest_days(line, now)
    if days is None:
        return LinePart(packages, None, None, [])
    answer = await ocs.statistics.usage_over_period(line.subscriber_id, date.fromordinal(days.first), date.fromordinal(days.last))
    found = usage_of_days(answer, accounts)
    return LinePart(packages, [row for row in found.rows if days.first <= row.day <= days.last], days, found.networks)


class LineGone(NamedTuple):
    """A line that is in none of the caller's accounts any more."""

    line: LineWork


class OwnRow(NamedTuple):
    """A line as it was asked for alone. `seen`: when a network saw it last, Unix seconds, 0: never."""

    listed: ListedLine
    detail: LineDetail
    seen: float

    def of(self, line: LineWork, now: float) -> LineWork:
        """`line` as it is now that it was asked for, at `now` (Unix seconds)."""
        told = self.listed
        line = line._replace(last_used=told.last_used, status=told.status, issued=told.issued, activated=told.activated)
        return line._replace(sighted=self.seen, asked=now)


async def read_own_row(upstream: Upstream, line: LineWork, accounts: frozenset[int], names: NamesKept) -> OwnRow | LineGone | None:
    """The line as it is now; None where it has no ICCID. Waits for the network."""
    try:
        row = await upstream.ocs.subscriber.get_single_subscriber(line.subscriber_id)
    except OcsNotFound:
        return LineGone(line)
    if row.get("accountId") not in accounts:
        return LineGone(line)
    made = line_rows(row, personal=names.of(line.subscriber_id))
    seen = wire_seconds(row.get("networkInfo", {}).get("time")) or 0.0
    # The next listing looks at the line again, since a list tells less than this.
    return None if made is None else OwnRow(made[0]._replace(digest=0), made[1], seen)


class ReadingTime(NamedTuple):
    """When a line is read, and up to when its last use is known (`told`): both Unix seconds.

    A list that is older than the line's use says nothing of the days since.
    """

    now: float
    told: float


async def read_fleet_line(
    upstream: Upstream, line: LineWork, accounts: frozenset[int], time: ReadingTime, *, names: NamesKept, known: PackageList, own_row: bool
) -> LineReading | LineGone:
    """Reads what is due of a line, and with `own_row` its own row before. Waits for the network; raises OcsError.

    `known`: its packages as they are stored; they tell when the next one is made, where they are not read now.
    """
    radio = line.rank == RADIO
    renewed = await read_own_row(upstream, line, accounts, names) if own_row or radio else None
    if isinstance(renewed, LineGone):
        return renewed
    waits = (NO_RANK, NO_DUE) if renewed is None else reading_after_listing(line, renewed.listed, time.now)
    if renewed is not None:
        time = time._replace(told=time.now)
        line = renewed.of(line, time.now)
    written = None if renewed is None else (renewed.listed, renewed.detail)
    if radio:
        line = line._replace(radio=await read_refused_sessions(upstream, line, time.now))
        rank, due = next_reading(line, known, time.now)
        state = unchanged_state(line, time.now)._replace(rank=rank, due=due)
        return LineReading(line.subscriber_id, line.version, what_waits_more(state, *waits), line=written)
    part = await read_line_part(upstream, line, accounts, time.now)
    return line_reading(line, part, known, time)._replace(line=written)


async def read_refused_sessions(upstream: Upstream, line: LineWork, now: float) -> str:
    """JSON of the data sessions of the last seven days that the charging system refused: when and where. Waits for the network."""
    last = date.fromordinal(ordinal(now))
    found = await upstream.ocs.statistics.network_events_over_period(line.subscriber_id, last - timedelta(days=WEEK - 1), last)
    refused = [attempt for attempt in line_signalling(found).sessions if attempt.refused and attempt.code is not None]
    return orjson.dumps([[attempt.at, *(attempt.code or ())] for attempt in refused[-REFUSED_KEPT:]]).decode()


async def look_at_line(
    upstream: Upstream, line: LineWork, accounts: frozenset[int], now: float, *, names: NamesKept
) -> LineReading | LineGone:
    """Reads the line's own row alone; what else it shows to be due is read later. Waits for the network; raises OcsError."""
    renewed = await read_own_row(upstream, line, accounts, names)
    if isinstance(renewed, LineGone):
        return renewed
    if renewed is None:
        return LineReading(line.subscriber_id, line.version, unchanged_state(line, now))
    state = unchanged_state(line._replace(sighted=renewed.seen, asked=now), now)
    state = what_waits_more(state, *reading_after_listing(line, renewed.listed, now))
    return LineReading(line.subscriber_id, line.version, state, line=(renewed.listed, renewed.detail))


def what_waits_more(state: LineReadState, rank: int, due: float) -> LineReadState:
    """`state` with the reading `rank` from `due` on, where that is more pressing than what it waits for; 0.0: for nothing."""
    if due and (not state.due or rank < state.rank or (rank == state.rank and due < state.due)):
        return state._replace(rank=rank, due=due)
    return state


def reading_after_listing(before: LineWork | None, listed: ListedLine, now: float) -> tuple[int, float]:
    """What a line waits for after it was told of so, and from when on; `before`: as it was, None where it is new."""
    if before is None:
        idle = listed.sim_status == "FREE" and listed.last_used <= 0 and listed.activated <= 0  # in stock: it never had a package
        return (NO_RANK, NO_DUE) if idle else (NEVER_READ, now)
    if before.status != listed.status or before.account_id != listed.account_id:
        return MARKED, now
    moved = before.last_used != listed.last_used or (before.mcc, before.mnc) != (listed.mcc, listed.mnc)
    if not moved and before.sim_status == listed.sim_status:
        return NO_RANK, NO_DUE
    if before.read <= 0 or before.sim_status != listed.sim_status:
        return NEVER_READ, now
    return CHANGED, max(now, min(now, before.read) + changes_every(before))  # one that was read in the future was so by a wrong clock


def changes_every(line: LineWork) -> float:
    """So many seconds after a line was read it is read again where it was used since."""
    near = 0 <= line.data_left * NEAR_LIMIT_SHARE < line.data_limit
    return NEAR_LIMIT_SECONDS if near else CHANGED_EVERY_SECONDS


def unchanged_state(line: LineWork, now: float) -> LineReadState:
    """How far the line has been read, as before; it is judged anew."""
    return LineReadState(
        rank=line.rank,
        due=line.due,
        read=line.read,
        usage_first=line.usage_first,
        usage_last=line.usage_last,
        usage_read=line.usage_read,
        package_state=line.package_state,
        package_ends=line.package_ends,
        data_left=line.data_left,
        data_limit=line.data_limit,
        judged=0.0,
        judge_due=now if line.read > 0 else 0.0,
        missed=0,
        sighted=line.sighted,
        asked=line.asked,
        radio=line.radio,
    )


def line_reading(line: LineWork, part: LinePart, before: PackageList, time: ReadingTime) -> LineReading:
    """What to store of a line after `part` was read, and when it is to be read again. Raises OcsError where a date cannot be read.

    `before`: its packages as they are stored.
    """
    now, told, known = time.now, ordinal(time.told), line
    supply = None if part.packages is None else line_supply_at(part.packages, now)
    if part.days is not None:
        if line.rank == BACKFILL:
            known = line._replace(usage_first=part.days.first)
        else:
            known = line._replace(usage_first=line.usage_first or part.days.first, usage_last=part.days.last, usage_read=now)
    elif line.rank == BACKFILL:
        known = line._replace(usage_first=oldest_day(line, ordinal(now)))
    elif told > line.usage_last:
        # Nothing was used since: all days up to when that was told are known to be without use.
        known = line._replace(usage_first=line.usage_first or unused_since(line, told), usage_last=told, usage_read=time.told)
    known = known._replace(read=now if part.packages is not None else line.read)
    rank, due = next_reading(known, before if part.packages is None else part.packages, now)
    state = unchanged_state(known, now)._replace(rank=rank, due=due, judge_due=now)
    if rank == line.rank == BACKFILL and not completes_weeks(line, known, now):
        state = state._replace(judged=AS_BEFORE, judge_due=AS_BEFORE)
    if supply is not None:
        state = state._replace(
            package_state=supply.state, package_ends=supply.ends, data_left=supply.data_left, data_limit=supply.data_limit
        )
    first, last = part.days or (0, 0)
    return LineReading(
        line.subscriber_id,
        line.version,
        state,
        packages=None if part.packages is None else package_rows(part.packages),
        usage=part.usage,
        first=first,
        last=last,
        networks=part.networks,
    )


def completes_weeks(before: LineWork, line: LineWork, now: float) -> bool:
    """Whether the days that verdicts and figures look at are known of the line now, and were not before."""
    return any(line.usage_first <= ordinal(now) - days < before.usage_first for days in JUDGED_DAYS)


def unused_since(line: LineWork, last: int) -> int:
    """The first day of the days without use that end on the day `last`."""
    if line.last_used <= 0:
        return min(oldest_day(line, last), last)
    return min(max(ordinal(line.last_used) + 1, oldest_day(line, last)), last)


def next_reading(line: LineWork, packages: PackageList, now: float) -> tuple[int, float]:
    """What the line waits for after it was read, and from when on; 0.0: for nothing but a change."""
    used = ordinal(line.last_used) if line.last_used > 0 else 0
    if line.usage_last < min(used + 1, ordinal(now)) and newest_days(line, now) is not None:
        return FINISH_DAY, now  # more than a week was missing
    if older_days(line, now) is not None:
        return BACKFILL, now
    waits: list[tuple[float, int]] = []
    if line.last_used > 0 and line.read - line.last_used < SETTLED_SECONDS:
        waits.append((max(now, line.read + changes_every(line)), CHANGED))
    spread = line.subscriber_id * 2654435761 % FINISH_SPREAD_SECONDS
    if used and final_day(line) < used:
        waits.append((max(now, day_start(used + FINAL_AFTER_DAYS) + spread), FINISH_DAY))
    if line.status != "END_OF_LIFE":
        waits.append((max(now, line.read + LOOK_AGAIN_SECONDS + spread), LOOK_AGAIN))
    if (made := next_package_moment(packages, now)) is not None:
        waits.append((made, LOOK_AGAIN))
    if not waits:
        return NO_RANK, NO_DUE
    due, rank = min(waits)
    return rank, due


def next_package_moment(packages: PackageList, now: float) -> float | None:
    """When a series will have made another package, or one that it made begins and may take over what is left of the one before.

    None where neither will happen. Raises OcsError where a date cannot be read.
    """
    moments = [moment for row in packages.get("recurring", []) if (moment := next_repetition(row, now)) is not None]
    for row in packages.get("packages", []):
        begins = package_start(row)
        if begins is not None and begins.timestamp() > now and row.get("recurringPackage") is not None:
            moments.append(begins.timestamp())
    return min(moments) + SERIES_LATE_SECONDS if moments else None


def next_repetition(series: RecurringSeries, now: float) -> float | None:
    """When the series makes its next package, Unix seconds; None where it makes none, or waits for the first use."""
    start = wire_seconds(series.get("startTimeUTC"))
    if start is None or not series_continues(series):
        return None
    kind, frequency = series.get("recurringPeriodicityType"), series.get("recurringPeriodicityFrequency", 0)
    if kind not in (0, 1, 2) or not 1 <= frequency <= FREQUENCY_LIMIT:
        return now + 86_400.0
    number = max(0, int((now + SERIES_AHEAD_SECONDS - start) // 86_400) // (LONGEST_PERIOD_DAYS[kind] * frequency))
    while (moment := repetition_start(start, kind, number * frequency) - SERIES_AHEAD_SECONDS) <= now:
        number += 1
    return moment


def repetition_start(start: float, kind: int, steps: int) -> float:
    """When a repetition begins, `steps` days (kind 0), weeks (1) or months (2) after `start`: on the same day, or the month's last."""
    if kind < 2:
        return start + steps * 86_400.0 * (7 if kind else 1)
    begun = datetime.fromtimestamp(start, UTC)
    years, month = divmod(begun.month - 1 + steps, 12)
    last = monthrange(begun.year + years, month + 1)[1]
    return begun.replace(year=begun.year + years, month=month + 1, day=min(begun.day, last)).timestamp()
