"""When a record was made: whole Unix seconds, or RFC 3339."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

FIRST = 1_262_304_000  # 2010-01-01T00:00:00Z
LAST = 253_402_300_799  # 9999-12-31T23:59:59Z
RFC3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
SAID = "When the data was used: RFC 3339 with an offset, or whole Unix seconds; from 2010 on."


def whole_seconds(value: object) -> object:
    """RFC 3339 text as Unix seconds; everything else as it is. Choice: fractions of a second are cut off, so no month changes."""
    if not isinstance(value, str):
        return value
    if not RFC3339.fullmatch(value):
        raise ValueError("it is neither RFC 3339 with an offset, such as 2026-11-20T09:00:00Z, nor whole Unix seconds")
    try:
        seconds = int(datetime.fromisoformat(without_leap_second(value.upper())).timestamp() // 1)
    except (ValueError, OverflowError):
        raise ValueError("there is no such moment") from None
    if seconds < FIRST:
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
RecordMoment = Annotated[
    int,
    Field(ge=FIRST, le=LAST, description=SAID),
    BeforeValidator(whole_seconds),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer", "minimum": FIRST, "maximum": LAST}], "description": SAID}
    ),
]
