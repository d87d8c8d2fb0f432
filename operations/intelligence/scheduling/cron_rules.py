"""Which cron expressions and time zones a schedule takes, and what is said of the others."""

from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from cronsim import CronSim, CronSimError

from operations.intelligence.scheduling.boundaries import next_boundary
from registry.errors import BadRequest
from registry.redaction import mask

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = 5
DAY_MINUTES = 24 * 60
# Choice: a report reads a whole fleet and its figures change slowly; oftener it would only use up the daily quota.
LEAST_MINUTES = 15
EXAMPLES = "`0 6 * * *` is daily at 6, `30 7 * * MON` Mondays at 7:30, `*/15 * * * *` every 15 minutes"


def first_boundary(cron: str, timezone: str, now: float) -> int:
    """The first boundary from now on, in milliseconds; a refusal when the schedule would be none."""
    check_timezone(timezone)
    check_cron(cron)
    found = next_boundary(cron, timezone, int(now * 1000))
    if found is None:
        raise BadRequest(f"cron: {shown(cron)} names no day of the next fifty years", param="cron", hint=EXAMPLES)
    return found


def check_cron(cron: str) -> None:
    """Five fields that cronsim reads, and no two boundaries too near each other."""
    count = len(cron.split())
    if count != FIELDS:
        raise BadRequest(
            f"cron: {shown(cron)} has {count} field{'' if count == 1 else 's'}; minute, hour, day, month and weekday are {FIELDS}",
            param="cron",
            hint=EXAMPLES,
        )
    try:
        parsed = CronSim(cron, EPOCH)
    except (CronSimError, ValueError, AssertionError) as error:
        field = str(error).removeprefix("Bad ") if isinstance(error, CronSimError) else "one of its fields"
        raise BadRequest(f"cron: {shown(cron)} cannot be read; look at its {field}", param="cron", hint=EXAMPLES) from None
    nearest = least_minutes(parsed.minutes, parsed.hours)
    if nearest < LEAST_MINUTES:
        raise BadRequest(
            f"cron: {shown(cron)} comes again after {nearest} minute{'' if nearest == 1 else 's'}; "
            f"at least {LEAST_MINUTES} must be between two reports",
            param="cron",
            hint=EXAMPLES,
        )


def least_minutes(minutes: set[int], hours: set[int]) -> int:
    """The least time between two boundaries of a day, or of a day and the next."""
    times = sorted(hour * 60 + minute for hour in hours for minute in minutes)
    return min(later - earlier for earlier, later in zip(times, [*times[1:], times[0] + DAY_MINUTES], strict=True))


def check_timezone(timezone: str) -> None:
    """A name of the IANA database, spelled as there: neither the machine's own zones nor paths."""
    known = zones()
    if timezone in known:
        return
    near = get_close_matches(timezone.casefold()[:40], list(known.values()), n=1) if timezone else []
    meant = next((name for name, folded in known.items() if near and folded == near[0]), None)
    names = "a name such as Europe/Berlin, America/New_York or UTC"
    hint = f"Did you mean {meant}? Else give {names}" if meant else f"Give {names}"
    raise BadRequest(f"timezone: {shown(timezone)} is no time zone of the IANA database", param="timezone", hint=hint)


@cache
def zones() -> dict[str, str]:
    """Every name, with its letters folded."""
    return {name: name.casefold() for name in (files("tzdata") / "zones").read_text().split()}


def shown(text: str) -> str:
    """What was given, for a refusal."""
    return repr(mask(text[:60]))
