"""A time in the body of an operator operation: ISO 8601, UTC where it does not say otherwise."""

import re
from datetime import datetime
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from clients.ocs.moment import read_time, wire_time

# Choice: four-digit years from 2000, so that no sum of a date and days leaves the calendar.
SHAPE = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?")


def utc_moment(value: object, *, alone: str) -> datetime:
    """The time to the second, in UTC; a date alone is completed with `alone`."""
    if isinstance(value, str) and SHAPE.fullmatch(value):
        try:
            return read_time(f"{value}T{alone}" if len(value) == 10 else value).replace(microsecond=0)
        except ValueError:  # the thirteenth month
            pass
    raise ValueError("it is no ISO 8601 time in UTC, such as 2027-02-01T00:00:00Z") from None


def shown(moment: datetime) -> str:
    """RFC 3339, as answers write it."""
    return f"{wire_time(moment)}Z"


SPOKEN = WithJsonSchema({"type": "string", "format": "date-time"})
# Choice: dates alone are taken wherever a time is: a start's first second and, as for an expiry, an end's last.
StartMoment = Annotated[datetime, BeforeValidator(partial(utc_moment, alone="00:00:00")), SPOKEN]
EndMoment = Annotated[datetime, BeforeValidator(partial(utc_moment, alone="23:59:59")), SPOKEN]


def seconds_of(text: str | None) -> float | None:
    """Unix seconds of a time that the charging system wrote; nothing where it wrote none, or none that can be read."""
    try:
        return None if text is None else read_time(text).timestamp()
    except (ValueError, OverflowError):
        return None
