"""When a schedule fires: cron in a time zone, through changes of the clock; which expressions it takes, and what is said of the others.

Choice: as Debian's cron, which cronsim follows. A time that the clock skips comes once, at the moment after the gap; one that it shows
twice comes once, the first time. Where the minute or the hour begins with a star the schedule goes by elapsed time: hourly stays hourly.
"""

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from registry.errors import BadRequest
from registry.redaction import redact

# How far back the newest boundary is looked for, step by step: most schedules have one in the last hour, some one in four years.
BOUNDARY_WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 24, 24 * 40, 24 * 400))


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
    for window in BOUNDARY_WINDOWS:
        start_ms = now_ms - int(window.total_seconds()) * 1000
        if start_ms <= since_ms:
            break
        found = newest_boundary_after(cron, timezone, start_ms, now_ms)
        if found is not None:
            return found
    return newest_boundary_after(cron, timezone, since_ms, now_ms) or since_ms


def newest_boundary_after(cron: str, timezone: str, start_ms: int, now_ms: int) -> int | None:
    """The last boundary of those after the start that have come."""
    newest, found = None, next_boundary(cron, timezone, start_ms)
    while found is not None and found <= now_ms:
        newest, found = found, next_boundary(cron, timezone, found)
    return newest


CRON_CHECK_START = datetime(2026, 1, 1, tzinfo=UTC)
CRON_FIELDS = 5
DAY_MINUTES = 24 * 60
# Choice: a report reads a whole fleet and its figures change slowly; oftener it would only use up the daily quota.
SCHEDULE_INTERVAL_MINUTES = 15
CRON_EXAMPLES = "`0 6 * * *` is daily at 6, `30 7 * * MON` Mondays at 7:30, `*/15 * * * *` every 15 minutes"


def first_boundary(cron: str, timezone: str, now: float) -> int:
    """The first boundary from now on, in milliseconds; a refusal when the schedule would be none."""
    check_timezone(timezone)
    check_cron(cron)
    found = next_boundary(cron, timezone, int(now * 1000))
    if found is None:
        raise BadRequest(f"cron: {quote_schedule_text(cron)} names no day of the next fifty years", param="cron", hint=CRON_EXAMPLES)
    return found


def check_cron(cron: str) -> None:
    """Five fields that cronsim reads, and no two boundaries too near each other."""
    count = len(cron.split())
    if count != CRON_FIELDS:
        raise BadRequest(
            f"cron: {quote_schedule_text(cron)} has {count} field{'' if count == 1 else 's'}; "
            f"minute, hour, day, month and weekday are {CRON_FIELDS}",
            param="cron",
            hint=CRON_EXAMPLES,
        )
    try:
        parsed = CronSim(cron, CRON_CHECK_START)
    except (CronSimError, ValueError, AssertionError) as error:
        field = str(error).removeprefix("Bad ") if isinstance(error, CronSimError) else "one of its fields"
        raise BadRequest(
            f"cron: {quote_schedule_text(cron)} cannot be read; look at its {field}", param="cron", hint=CRON_EXAMPLES
        ) from None
    nearest = shortest_interval(parsed.minutes, parsed.hours)
    if nearest < SCHEDULE_INTERVAL_MINUTES:
        raise BadRequest(
            f"cron: {quote_schedule_text(cron)} comes again after {nearest} minute{'' if nearest == 1 else 's'}; "
            f"at least {SCHEDULE_INTERVAL_MINUTES} must be between two reports",
            param="cron",
            hint=CRON_EXAMPLES,
        )


def shortest_interval(minutes: set[int], hours: set[int]) -> int:
    """The least time between two boundaries of a day, or of a day and the next."""
    times = sorted(hour * 60 + minute for hour in hours for minute in minutes)
    return min(later - earlier for earlier, later in zip(times, [*times[1:], times[0] + DAY_MINUTES], strict=True))


def check_timezone(timezone: str) -> None:
    """A name of the IANA database, spelled as there: neither the machine's own zones nor paths."""
    known = timezone_names()
    if timezone in known:
        return
    near = get_close_matches(timezone.casefold()[:40], list(known.values()), n=1) if timezone else []
    meant = next((name for name, folded in known.items() if near and folded == near[0]), None)
    names = "a name such as Europe/Berlin, America/New_York or UTC"
    hint = f"Did you mean {meant}? Else give {names}" if meant else f"Give {names}"
    raise BadRequest(f"timezone: {quote_schedule_text(timezone)} is no time zone of the IANA database", param="timezone", hint=hint)


@cache
def timezone_names() -> dict[str, str]:
    """Every name, with its letters folded."""
    return {name: name.casefold() for name in (files("tzdata") / "zones").read_text().split()}


def quote_schedule_text(text: str) -> str:
    """What was given, for a refusal."""
    return repr(redact(text[:60]))
