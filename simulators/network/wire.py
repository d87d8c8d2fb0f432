"""The wire's own forms: null and empty members are left out, money is a float, some answers are bare, dates are UTC without a zone."""

import re
from datetime import UTC, date, datetime
from typing import Final, TypeAlias, final

from simulators.network.entities import MICRO_EURO

WireMembers: TypeAlias = dict[str, object]


@final
class NoPayload:
    """An answer of status only."""


@final
class TruncatedPayload:
    """A payload whose JSON is cut off in the middle (quirk 16)."""

    def __init__(self, payload: object) -> None:
        self.payload = payload


NO_PAYLOAD: Final = NoPayload()


def drop_empty(members: WireMembers) -> WireMembers:
    """Without what is null or an empty array or object; a false, a zero and an empty string stay."""
    return {name: value for name, value in members.items() if not (value is None or value == [] or value == {})}


def wire_euro(micro: int) -> float:
    """Micro-euro as the wire's float."""
    return micro / MICRO_EURO


def wire_euro_or_none(micro: int | None) -> float | None:
    """As `wire_euro`; what has no price has none."""
    return None if micro is None else micro / MICRO_EURO


def wire_comma_euro(micro: int) -> str:
    """A reseller's balance, as only that is written (quirk 6)."""
    cents = abs(micro) // 10_000
    return f"{'-' if micro < 0 else ''}{cents // 100},{cents % 100:02d}"


WIRE_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)

WIRE_YEARS = range(2000, 2200)  # so that no sum of a date and a period leaves the calendar

WIRE_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def wire_moment(at: int) -> str:
    """Unix seconds as the wire writes them."""
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]


def wire_moment_or_none(at: int | None) -> str | None:
    """As `wire_moment`; what has not happened has no date."""
    return None if at is None else wire_moment(at)


def parse_wire_moment(text: str) -> int | None:
    """Unix seconds; None when the text is no such date. Choice: a zone or a trailing Z is refused, as nothing documents it."""
    if WIRE_MOMENT.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC)
    except ValueError:  # the thirteenth month
        return None
    return int(found.timestamp()) if found.year in WIRE_YEARS else None


def parse_wire_day(text: str) -> date | None:
    """A calendar day; None when the text is none."""
    if WIRE_DAY.fullmatch(text) is None:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:  # the thirtieth of February
        return None
    return found if found.year in WIRE_YEARS else None
