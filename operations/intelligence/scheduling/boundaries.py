"""When a schedule fires: cron in a time zone, through changes of the clock.

Choice: as Debian's cron, which cronsim follows. A time that the clock skips comes once, at the moment after the gap; one that it shows
twice comes once, the first time. Where the minute or the hour begins with a star the schedule goes by elapsed time: hourly stays hourly.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

# How far back the newest boundary is looked for, step by step: most schedules have one in the last hour, some one in four years.
WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 24, 24 * 40, 24 * 400))


def next_boundary(cron: str, timezone: str, after_ms: int) -> int | None:
    """The first boundary after a moment; None when there is none in the next fifty years."""
    after = datetime.fromtimestamp(after_ms // 1000, UTC)
    for found in CronSim(cron, after.astimezone(ZoneInfo(timezone))):
        # In an hour that the clock shows twice cronsim names the first of two equal times, which may lie behind us.
        if (moment := found.astimezone(UTC)) > after:
            return int(moment.timestamp()) * 1000
    return None


def newest_boundary(cron: str, timezone: str, since_ms: int, now_ms: int) -> int:
    """The newest boundary that has come, of a schedule that waits for the one at `since_ms`."""
    for window in WINDOWS:
        start_ms = now_ms - int(window.total_seconds()) * 1000
        if start_ms <= since_ms:
            break
        found = newest_after(cron, timezone, start_ms, now_ms)
        if found is not None:
            return found
    return newest_after(cron, timezone, since_ms, now_ms) or since_ms


def newest_after(cron: str, timezone: str, start_ms: int, now_ms: int) -> int | None:
    """The last boundary of those after the start that have come."""
    newest, found = None, next_boundary(cron, timezone, start_ms)
    while found is not None and found <= now_ms:
        newest, found = found, next_boundary(cron, timezone, found)
    return newest
