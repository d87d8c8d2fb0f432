"""Times and days in inputs and answers: ISO 8601 in UTC, Unix seconds, ranges of UTC days."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

from clients.ocs.times import parse_wire_time, wire_time
from registry.errors import BadRequest
from registry.model import CamelInput

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
    """RFC 3339, as answers write it."""
    return f"{wire_time(moment)}Z"


DATE_TIME_SCHEMA = WithJsonSchema({"type": "string", "format": "date-time"})
# Choice: dates alone are taken wherever a time is: a start's first second and, as for an expiry, an end's last.
StartTime = Annotated[datetime, BeforeValidator(partial(parse_utc_time, alone="00:00:00")), DATE_TIME_SCHEMA]
EndTime = Annotated[datetime, BeforeValidator(partial(parse_utc_time, alone="23:59:59")), DATE_TIME_SCHEMA]


WEEK_DAYS = 7
RANGE_DAYS_LIMIT = 92

# Choice: years that leave room for sums of days.
UtcDay = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2100, 12, 31))]


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
        """How many."""
        return (self.last - self.first).days + 1


def utc_today(now: float) -> date:
    """The UTC day."""
    return datetime.fromtimestamp(now, UTC).date()


def day_window(start: date | None, end: date | None, now: float) -> DayWindow:
    """The range that is meant; without a word the last seven days, today among them."""
    last = end or utc_today(now)
    first = start or last - timedelta(days=WEEK_DAYS - 1)
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
    """The range in weeks, the last one shorter."""
    firsts = [window.first + timedelta(days=offset) for offset in range(0, window.days, WEEK_DAYS)]
    return [DayWindow(first, min(first + timedelta(days=WEEK_DAYS - 1), window.last)) for first in firsts]


LATEST_UNIX_SECONDS = 253_402_300_799  # 9999-12-31T23:59:59Z


def unix_seconds(value: object) -> object:
    """RFC 3339 text as Unix seconds; everything else as it is."""
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
