"""A time from outside: Unix seconds, or RFC 3339."""

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

LATEST = 253_402_300_799  # 9999-12-31T23:59:59Z


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
Moment = Annotated[
    float,
    BeforeValidator(unix_seconds),
    Field(ge=0, le=LATEST, allow_inf_nan=False, description="When it happened: Unix seconds, or RFC 3339 with an offset."),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0, "maximum": LATEST}, {"type": "string", "format": "date-time"}],
            "description": "When it happened: Unix seconds, or RFC 3339 with an offset.",
        }
    ),
]
