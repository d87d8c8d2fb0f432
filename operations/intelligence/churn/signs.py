"""Reading what tells whether a line is being given up: its days, and its packages where they matter."""

from datetime import date

from operations.deps import Ctx
from operations.intelligence.churn.score import SUPPLIED_DAYS, Signs, weeks_of
from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.lines.calendar import DAYS, Calendar, calendar_of, last_use, whole_days
from operations.intelligence.lines.rhythm import rhythm_of
from operations.intelligence.lines.use import use_of
from operations.intelligence.packages.supply import supply_of
from operations.services.network.reached import Upstream
from operations.services.network.windows import today

QUIET_DAYS = 7
LONG_DAYS = 2 * DAYS
"""Choice: a line that has been quiet for a week is looked at for eight weeks, since its last four tell little of how it lived."""


async def signs_of(ctx: Ctx, upstream: Upstream, line: FleetLine) -> tuple[date, Signs]:
    """The day of its last use, and what is seen of the line."""
    calendar = await calendar_over(ctx, upstream, line, DAYS)
    used = used_on(line, calendar)
    silent = max(0, (today(ctx.now) - used).days - 1)
    if silent >= QUIET_DAYS:
        calendar = await calendar_over(ctx, upstream, line, LONG_DAYS)
    signs = Signs(silent, rhythm_of(calendar.used), weeks_of(calendar.used), line.status == "ACTIVE")
    if silent < SUPPLIED_DAYS:
        return used, signs
    supply = supply_of(await upstream.ocs.packages.list_packages(line.subscriber_id), ctx.now, used)
    since = None if supply.in_force or supply.ended is None else max(supply.ended, used)
    return used, signs._replace(
        unsupplied=None if since is None else max(0, (today(ctx.now) - since).days - 1),
        series_stopped=supply.series_stopped,
        penniless=is_penniless(line),
    )


async def calendar_over(ctx: Ctx, upstream: Upstream, line: FleetLine, days: int) -> Calendar:
    """The last whole days of the line."""
    window = whole_days(ctx.now, days)
    return calendar_of(line, await use_of(upstream, line, window, ctx.deps.weeks, ctx.now), window)


def used_on(line: FleetLine, calendar: Calendar) -> date:
    """The last use: what the list tells, or a later day of which there are records."""
    days = [day.day for day in calendar.days if day is not None]
    return max([*days[-1:], last_use(line) or calendar.window.first])


def is_penniless(line: FleetLine) -> bool:
    """Whether use outside packages has nobody to pay for it. Choice: an account's balance is not looked at, it is the caller's own."""
    return not line.row.get("useAccountForCharging", False) and line.row.get("balance", 0.0) <= 0
