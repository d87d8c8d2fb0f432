"""Dates of the wire: UTC without a zone, to the second; days as YYYY-MM-DD."""

import re
from datetime import UTC, date, datetime

SHAPE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
YEARS = range(2000, 2200)  # so that no sum of a date and a period leaves the calendar
DAY_SHAPE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def stamp(at: int) -> str:
    """Unix seconds as the wire writes them."""
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]


def stamp_or_none(at: int | None) -> str | None:
    """As `stamp`; what has not happened has no date."""
    return None if at is None else stamp(at)


def read_moment(text: str) -> int | None:
    """Unix seconds; None when the text is no such date. Choice: a zone or a trailing Z is refused, as nothing documents it."""
    if SHAPE.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC)
    except ValueError:  # the thirteenth month
        return None
    return int(found.timestamp()) if found.year in YEARS else None


def read_day(text: str) -> date | None:
    """A calendar day; None when the text is none."""
    if DAY_SHAPE.fullmatch(text) is None:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:  # the thirtieth of February
        return None
    return found if found.year in YEARS else None
