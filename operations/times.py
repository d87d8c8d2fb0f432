"""Times and days as inputs and answers write them: ISO 8601 in UTC, Unix seconds and ranges of UTC days."""

import re
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

from clients.ocs.times import parse_wire_time, wire_time
from registry.errors import BadRequest
from registry.operation import CamelInput
from registry.redaction import redact

# Choice: four-digit years from 2000, so that no sum of a date and days leaves the calendar.
UTC_TIME_PATTERN = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?")


def parse_utc_time(value: object, *, alone: str) -> datetime:
    """The time to the second, in UTC; a date alone is completed with `alone`."""
    if isinstance(value, str) and UTC_TIME_PATTERN.fullmatch(value):
        try:
            return parse_wire_time(f"{value}T{alone}" if len(value) == 10 else value).replace(microsecond=0)
        except ValueError:  # the thirteenth month
            pass
    raise ValueError("it is no ISO 8601 time in UTC, such as 2027-02-01T00:00:00Z") from None


def utc_text(moment: datetime) -> str:
    """`moment` as RFC 3339 in UTC, to the second."""
    return f"{wire_time(moment)}Z"


def utc_time_text(time: str | None) -> str | None:
    """A time of the wire as answers write it; None where it cannot be read."""
    try:
        return None if time is None else utc_text(parse_wire_time(time))
    except ValueError:
        return None


DATE_TIME_SCHEMA = WithJsonSchema({"type": "string", "format": "date-time"})
# Choice: dates alone are taken wherever a time is: a start's first second and, as for an expiry, an end's last.
StartTime = Annotated[datetime, BeforeValidator(partial(parse_utc_time, alone="00:00:00")), DATE_TIME_SCHEMA]
EndTime = Annotated[datetime, BeforeValidator(partial(parse_utc_time, alone="23:59:59")), DATE_TIME_SCHEMA]


WEEK_DAYS = 7
RANGE_DAYS_LIMIT = 92

# Choice: years that leave room for sums of days.
FIRST_DAY = date(2000, 1, 1)
UtcDay = Annotated[date, Field(ge=FIRST_DAY, le=date(2100, 12, 31))]


class DayRange(CamelInput):
    """A range of UTC days, both included."""

    start: Annotated[UtcDay | None, Field(description="First day.")] = None
    end: Annotated[UtcDay | None, Field(description="Last day; at most 92 in all.")] = None


class DayWindow(NamedTuple):
    """Days in a row, both ends included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


def utc_today(now: float) -> date:
    """The UTC day of `now`, in Unix seconds."""
    return datetime.fromtimestamp(now, UTC).date()


def day_window(start: date | None, end: date | None, now: float) -> DayWindow:
    """The days from `start` to `end`, by default the seven that end today; `now`: Unix seconds. Raises BadRequest for more than 92."""
    last = end or utc_today(now)
    first = start or max(FIRST_DAY, last - timedelta(days=WEEK_DAYS - 1))
    if first > last:
        default = "" if end else ", which is today (UTC)"
        raise BadRequest(
            f"start: {first} is after the end {last}{default}", param="start", hint="Both days are included: send start <= end"
        )
    window = DayWindow(first, last)
    if window.days > RANGE_DAYS_LIMIT:
        raise BadRequest(
            f"start: {first} to {last} are {window.days} days; at most {RANGE_DAYS_LIMIT} can be read at once",
            param="start",
            hint="Read longer ranges in several calls",
        )
    return window


def split_weeks(window: DayWindow) -> list[DayWindow]:
    """The days of `window` in weeks, the last one shorter."""
    firsts = [window.first + timedelta(days=offset) for offset in range(0, window.days, WEEK_DAYS)]
    return [DayWindow(first, min(first + timedelta(days=WEEK_DAYS - 1), window.last)) for first in firsts]


LATEST_UNIX_SECONDS = 253_402_300_799  # 9999-12-31T23:59:59Z


def unix_seconds(value: object) -> object:
    """RFC 3339 text as Unix seconds; every other `value` as it is. ValueError for text without an offset."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("it is neither Unix seconds nor RFC 3339, such as 2026-11-20T09:00:00Z") from None
    if moment.tzinfo is None or len(value) < 20:
        raise ValueError("the time has no offset; end it with Z for UTC")
    return moment.timestamp()


# Choice: both forms are taken, since bridges differ.
UnixTime = Annotated[
    float,
    BeforeValidator(unix_seconds),
    Field(ge=0, le=LATEST_UNIX_SECONDS, allow_inf_nan=False, description="When it happened: Unix seconds, or RFC 3339 with an offset."),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0, "maximum": LATEST_UNIX_SECONDS}, {"type": "string", "format": "date-time"}],
            "description": "When it happened: Unix seconds, or RFC 3339 with an offset.",
        }
    ),
]


MadeSince = Annotated[UnixTime | None, Field(description="Made from then on, Unix seconds.")]
MadeUntil = Annotated[UnixTime | None, Field(description="Made before, Unix seconds.")]


def _wire_time_seconds(value: object) -> object:
    """The wire's times carry no zone and are UTC."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("it is not a time such as 2026-11-20T09:00:00") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


EventTime = Annotated[
    float,
    BeforeValidator(_wire_time_seconds),
    Field(ge=0, le=LATEST_UNIX_SECONDS, allow_inf_nan=False),
    WithJsonSchema({"type": "string", "description": "When it happened, UTC: YYYY-MM-DDTHH:MM:SS."}),
]


def _audit_time_seconds(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("it is no RFC 3339 time, such as 2026-11-20T09:00:00Z")
    return unix_seconds(value)


AuditTime = Annotated[float, BeforeValidator(_audit_time_seconds), DATE_TIME_SCHEMA]
FIRST_CDR_MOMENT = 1_262_304_000  # 2010-01-01T00:00:00Z
CDR_RFC3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
CDR_MOMENT_DESCRIPTION = "When the data was used: RFC 3339 with an offset, or whole Unix seconds; from 2010 on."


def cdr_unix_seconds(value: object) -> object:
    """RFC 3339 text as Unix seconds; everything else as it is. Choice: fractions of a second are cut off, so no month changes."""
    if not isinstance(value, str):
        return value
    if not CDR_RFC3339.fullmatch(value):
        raise ValueError("it is neither RFC 3339 with an offset, such as 2026-11-20T09:00:00Z, nor whole Unix seconds")
    try:
        seconds = int(datetime.fromisoformat(without_leap_second(value.upper())).timestamp() // 1)
    except (ValueError, OverflowError):
        raise ValueError("there is no such moment") from None
    if seconds < FIRST_CDR_MOMENT:
        raise ValueError(f"{value} is before 2010, when no record is of")
    return seconds


def without_leap_second(text: str) -> str:
    """Choice: Unix seconds have no 23:59:60 (RFC 3339 5.6), so it is the second before, of the same month."""
    if text[17:19] != "60":
        return text
    before = f"{text[:17]}59{text[19:]}"
    moment = datetime.fromisoformat(before).astimezone(UTC)
    if (moment.month, moment.day, moment.hour, moment.minute) not in ((6, 30, 23, 59), (12, 31, 23, 59)):
        raise ValueError("no leap second is then")
    return before


# Choice: both forms are taken: RFC 3339 is what times outside billing are, and Unix seconds are what billing records have.
CdrMoment = Annotated[
    int,
    Field(ge=FIRST_CDR_MOMENT, le=LATEST_UNIX_SECONDS, description=CDR_MOMENT_DESCRIPTION),
    BeforeValidator(cdr_unix_seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "integer", "minimum": FIRST_CDR_MOMENT, "maximum": LATEST_UNIX_SECONDS},
            ],
            "description": CDR_MOMENT_DESCRIPTION,
        }
    ),
]


def check_timezone(timezone: str) -> None:
    """Raises BadRequest unless `timezone` is a name of the IANA database, spelled as there: neither a zone of this machine nor a path."""
    known = timezone_names()
    if timezone in known:
        return
    near = get_close_matches(timezone.casefold()[:40], list(known.values()), n=1) if timezone else []
    meant = next((name for name, folded in known.items() if near and folded == near[0]), None)
    names = "a name such as Europe/Berlin, America/New_York or UTC"
    hint = f"Did you mean {meant}? Else give {names}" if meant else f"Give {names}"
    raise BadRequest(f"timezone: {redact(timezone[:60])!r} is no time zone of the IANA database", param="timezone", hint=hint)


@cache
def timezone_names() -> dict[str, str]:
    """Every time zone's name by its casefolded form."""
    return {name: name.casefold() for name in (files("tzdata") / "zones").read_text().split()}
