"""Reading one line into the model: what is to be read of it now, and when it is to be read again.

Packages and the use of today are read when a line was used, at most every eight hours; a day of use that has ended is read once more
when its records have come in; older days are read a week at a time. A line that nothing happened to costs no call.
"""

from datetime import date, timedelta
from typing import NamedTuple

import orjson

from clients.ocs.packages import PackageList
from clients.ocs.times import wire_seconds
from operations.fleet.wire_rows import NamesKept, day_start, line_rows, line_supply_at, ordinal, package_rows, usage_of_days
from operations.upstream.connection import Upstream
from operations.upstream.lines import series_continues
from operations.upstream.signalling import line_signalling
from registry.errors import OcsNotFound
from storage.fleet_lines import LineDetail, LineReading, LineReadState, LineWork, ListedLine
from storage.fleet_usage import KEPT_USAGE_DAYS, FleetNetworkRow, FleetUsageRow
from storage.fleets import BACKFILL, CHANGED, FINISH_DAY, RADIO

FINAL_AFTER_DAYS = 2
"""A day of use is as it will stay when it is read on the second day after it, or later: records come late by a day."""
WEEK = 7
REFUSED_KEPT = 60
"""Refused sessions of a line that are kept, the newest."""
FINISH_SPREAD_SECONDS = 4 * 3600
"""Finished days are read within so many seconds after midnight, each line at its own time."""
NEAR_LIMIT_SHARE = 10
"""A tenth of the data left is near the limit: then a line that is used is read again each hour."""
NEAR_LIMIT_SECONDS = 3600.0
SERIES_AHEAD_SECONDS = 600.0
"""A series has made its next package by so many seconds after the last one ended."""


class UsageSpanDays(NamedTuple):
    """Days to read the use of, both included, as ordinals."""

    first: int
    last: int


def oldest_day(line: LineWork, today: int) -> int:
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
    first = known + 1 if known else max(today - WEEK + 1, oldest_day(line, today))
    last = min(used + FINAL_AFTER_DAYS - 1, today, first + WEEK - 1)
    return UsageSpanDays(first, last) if first <= min(used, last) else None


def final_day(line: LineWork) -> int:
    """The last day whose use is known for good, as an ordinal; 0 where none is."""
    if not line.usage_last:
        return 0
    return min(line.usage_last, ordinal(line.usage_read) - FINAL_AFTER_DAYS)


def older_days(line: LineWork, now: float) -> UsageSpanDays | None:
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


async def read_line(
    upstream: Upstream, line: LineWork, accounts: frozenset[int], now: float, *, names: NamesKept, own_row: bool, parts: bool = True
) -> LineReading | LineGone:
    """Reads a line: its own row, and what else is due of it (`parts`). Waits for the network; raises OcsError."""
    renewed = await read_own_row(upstream, line, accounts, names) if own_row or line.rank == RADIO else None
    if isinstance(renewed, LineGone):
        return renewed
    if renewed is not None:
        told = renewed.listed
        line = line._replace(last_used=told.last_used, status=told.status, issued=told.issued, activated=told.activated)
        line = line._replace(sighted=renewed.seen, asked=now)
    written = None if renewed is None else (renewed.listed, renewed.detail)
    if line.rank == RADIO:
        line = line._replace(radio=await read_refused_sessions(upstream, line, now))
        rank, due = next_reading(line, None, now)
        return LineReading(line.subscriber_id, line.version, unchanged_state(line, now)._replace(rank=rank, due=due), line=written)
    if parts:
        return line_reading(line, await read_line_part(upstream, line, accounts, now), now)._replace(line=written)
    return LineReading(line.subscriber_id, line.version, unchanged_state(line, now), line=written)


async def read_refused_sessions(upstream: Upstream, line: LineWork, now: float) -> str:
    """JSON of the data sessions of the last seven days that the charging system refused: when and where. Waits for the network."""
    last = date.fromordinal(ordinal(now))
    found = await upstream.ocs.statistics.network_events_over_period(line.subscriber_id, last - timedelta(days=WEEK - 1), last)
    refused = [attempt for attempt in line_signalling(found).sessions if attempt.refused and attempt.code is not None]
    return orjson.dumps([[attempt.at, *(attempt.code or ())] for attempt in refused[-REFUSED_KEPT:]]).decode()


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


def line_reading(line: LineWork, part: LinePart, now: float) -> LineReading:
    """What to store of a line after `part` was read, and when it is to be read again. Raises OcsError where a date cannot be read."""
    today = ordinal(now)
    supply = None if part.packages is None else line_supply_at(part.packages, now)
    known = line
    if part.days is not None:
        if line.rank == BACKFILL:
            known = line._replace(usage_first=part.days.first)
        else:
            known = line._replace(usage_first=line.usage_first or part.days.first, usage_last=part.days.last, usage_read=now)
    elif line.rank == BACKFILL:
        known = line._replace(usage_first=oldest_day(line, today))
    elif not line.usage_last or newest_days(line, now) is None:
        # Nothing was used since: all days up to today are known to be without use.
        known = line._replace(usage_first=line.usage_first or unused_since(line, today), usage_last=today, usage_read=now)
    known = known._replace(read=now if part.packages is not None else line.read)
    rank, due = next_reading(known, part.packages, now)
    state = unchanged_state(known, now)._replace(rank=rank, due=due, judge_due=now)
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


def unused_since(line: LineWork, today: int) -> int:
    """The first day of the days without use that end today."""
    if line.last_used <= 0:
        return oldest_day(line, today)
    return min(max(ordinal(line.last_used) + 1, oldest_day(line, today)), today)


def next_reading(line: LineWork, packages: PackageList | None, now: float) -> tuple[int, float]:
    """What the line waits for after it was read, and from when on; 0.0: for nothing but a change."""
    used = ordinal(line.last_used) if line.last_used > 0 else 0
    if line.usage_last < min(used + 1, ordinal(now)) and newest_days(line, now) is not None:
        return FINISH_DAY, now  # more than a week was missing
    if older_days(line, now) is not None:
        return BACKFILL, now
    waits: list[tuple[float, int]] = []
    if used and final_day(line) < used:
        spread = line.subscriber_id * 2654435761 % FINISH_SPREAD_SECONDS
        waits.append((max(now, day_start(used + FINAL_AFTER_DAYS) + spread), FINISH_DAY))
    if packages is not None and (made := next_package_moment(packages, now)) is not None:
        waits.append((made, CHANGED))
    if not waits:
        return BACKFILL, 0.0
    due, rank = min(waits)
    return rank, due


def next_package_moment(packages: PackageList, now: float) -> float | None:
    """When a series will have made another package; None where none will. Raises OcsError where a date cannot be read."""
    if not any(series_continues(row) for row in packages.get("recurring", [])):
        return None
    supply = line_supply_at(packages, now)
    return (supply.changes or now + 86_400.0) + SERIES_AHEAD_SECONDS
