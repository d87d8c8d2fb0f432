"""What a line used in ninety days, day by day: its newest week read live, older days from the read model where that has them for good.

Days that have ended do not change, so a line of a fleet that was read costs one call. Of another line older weeks are read at once, a
few at a time, as far as the time suffices.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import NamedTuple

import anyio

from clients.ocs.resellers import Account
from operations.deps import Ctx
from operations.fleet.line_reading import FINAL_AFTER_DAYS, WEEK, UsageSpanDays, final_day, oldest_day
from operations.fleet.sync import fleet_identity
from operations.fleet.wire_rows import UsageOfDays, ordinal, usage_of_days
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse, day_places, day_totals, last_day_to_read, sum_line_days
from operations.upstream.lines import Line
from registry.clock import seconds_left
from registry.errors import Refusal
from storage.fleet_judgements import LinePast, past_of_line
from storage.fleet_lines import ListedLine
from storage.fleet_usage import KEPT_USAGE_DAYS, FleetNetworkRow, FleetUsageRow

PARALLEL_WEEKS = 4
OLDER_DAYS_SECONDS, SPARE_SECONDS = 20.0, 5.0
"""How long older weeks are read at most, and how much of the time of the call is left for the answer."""


class LineDays(NamedTuple):
    """What a line used, in the order of days. All days are ordinals of UTC days.

    From day `first` on all use is known; `wanted` is the first day that matters. `week`: the last seven days with today.
    """

    rows: list[FleetUsageRow]
    networks: list[FleetNetworkRow]
    first: int
    wanted: int
    week: LineUse


class LineDaysReader:
    """Reads the days of one line at `now`, Unix seconds."""

    def __init__(self, ctx: Ctx, line: Line, told: FleetLine, listed: ListedLine) -> None:
        self._ctx, self._line, self._told, self._listed = ctx, line, told, listed
        self._today = ordinal(ctx.now)

    async def past(self) -> LinePast | None:
        """What the read model has of the line. Waits for the database."""
        upstream = self._line.upstream
        identity = fleet_identity(upstream, self._ctx.deps.network_instance)
        return await self._ctx.deps.store.read(
            past_of_line,
            organisation=upstream.organisation,
            identity=identity,
            subscriber_id=self._line.subscriber_id,
            first=self._today - KEPT_USAGE_DAYS,
            last=self._today,
        )

    async def read(self, past: LinePast | None, own: Sequence[Account]) -> LineDays:
        """The newest week, which must be readable, and what can be read of the days before. Waits for the network; raises Refusal.

        `own`: the caller's accounts; use in another one is not told.
        """
        accounts = frozenset(account.get("id", 0) for account in own)
        newest, week = await self._newest(accounts)
        wanted = missing_weeks(self._listed, past, self._today)
        seconds = min(OLDER_DAYS_SECONDS, seconds_left(OLDER_DAYS_SECONDS + SPARE_SECONDS) - SPARE_SECONDS)
        older = await self._weeks(wanted, accounts, seconds)
        oldest = oldest_day(self._listed, self._today)
        first = max((each.last + 1 for each in wanted if each not in older), default=oldest)
        stored = [] if past is None else [row for row in past.usage if is_known(past, row.day) and row.day <= self._today - WEEK]
        rows = [*stored, *(row for part in older.values() for row in part.rows), *newest.rows]
        networks = [*([] if past is None else past.networks), *(row for part in (*older.values(), newest) for row in part.networks)]
        return LineDays(sorted(row for row in rows if row.day >= first), networks, first, oldest, week)

    async def _newest(self, accounts: frozenset[int]) -> tuple[UsageOfDays, LineUse]:
        """The last seven days. A line whose last use is longer ago costs no call."""
        first, last = self._today - WEEK + 1, self._today
        if last_day_to_read(self._told) < first:
            return UsageOfDays([], []), LineUse((), (), 0, 0)
        answer = await self._line.upstream.ocs.statistics.usage_over_period(
            self._line.subscriber_id, date.fromordinal(first), date.fromordinal(last)
        )
        span = self._ctx.deps.weeks.pack(first, last, day_totals(answer), day_places(answer))
        found = usage_of_days(answer, accounts)
        return found._replace(rows=[row for row in found.rows if first <= row.day <= last]), sum_line_days(span, first, last)

    async def _weeks(self, wanted: Sequence[UsageSpanDays], accounts: frozenset[int], seconds: float) -> dict[UsageSpanDays, UsageOfDays]:
        found: dict[UsageSpanDays, UsageOfDays] = {}
        waiting = iter(wanted)
        with anyio.move_on_after(max(0.0, seconds)):
            async with anyio.create_task_group() as group:
                for _ in range(min(PARALLEL_WEEKS, len(wanted))):
                    group.start_soon(self._work, waiting, accounts, found)
        return found

    async def _work(self, waiting: Iterator[UsageSpanDays], accounts: frozenset[int], found: dict[UsageSpanDays, UsageOfDays]) -> None:
        statistics = self._line.upstream.ocs.statistics
        for each in waiting:
            with suppress(Refusal):
                first, last = date.fromordinal(each.first), date.fromordinal(each.last)
                found[each] = days_between(
                    usage_of_days(await statistics.usage_over_period(self._line.subscriber_id, first, last), accounts), each
                )


def days_between(found: UsageOfDays, days: UsageSpanDays) -> UsageOfDays:
    return found._replace(rows=[row for row in found.rows if days.first <= row.day <= days.last])


def is_known(past: LinePast, day: int) -> bool:
    """Whether the read model has all use of the day, and it will not change any more."""
    return 0 < past.line.usage_first <= day <= final_day(past.line)


def missing_weeks(listed: ListedLine, past: LinePast | None, today: int) -> list[UsageSpanDays]:
    """The weeks before the newest one that must be read, newest first: up to the last use, without what the read model has for good."""
    if listed.last_used <= 0:
        return []
    oldest = oldest_day(listed, today)
    day = min(ordinal(listed.last_used) + FINAL_AFTER_DAYS - 1, today - WEEK)
    found: list[UsageSpanDays] = []
    while day >= oldest:
        if past is not None and is_known(past, day):
            day = past.line.usage_first - 1
            continue
        known = final_day(past.line) if past is not None and past.line.usage_first else 0
        first = max(day - WEEK + 1, oldest, known + 1 if known < day else 0)
        found.append(UsageSpanDays(first, day))
        day = first - 1
    return found


def newest_networks(networks: Iterable[FleetNetworkRow]) -> dict[tuple[int, int], FleetNetworkRow]:
    """Networks by their codes; the first name that was told stays, as it does in the read model."""
    found: dict[tuple[int, int], FleetNetworkRow] = {}
    for row in networks:
        found.setdefault((row.mcc, row.mnc), row)
    return found
