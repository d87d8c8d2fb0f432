"""What all shapes of the wire share: plain JSON, times and numbers as the wire writes them, and that members we do not know survive."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final, cast

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypeAliasType, TypedDict


class UnreadableAnswer(Exception):
    """An answer that breaks the wire's shape. The text is ours and never leaves the client's log."""


Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
"""Any decoded JSON value."""

Utc = Annotated[str, Field(description="UTC, YYYY-MM-DDTHH:MM:SS")]

EXACT: Final = "larger than what every reader of JSON holds exactly: unreadable"
WireId = Annotated[int, EXACT]
"""An id, or another whole number that must arrive exactly."""

keeps_unknown = with_config(ConfigDict(extra="allow"))
"""Marks a shape whose unknown members pass through: newer servers add some."""


@keeps_unknown
class Named(TypedDict, total=False):
    """An id with its name."""

    id: int
    name: str


def wire_time(moment: datetime) -> str:
    """Write a time; one without a zone is taken as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.isoformat()[:19]


def parse_wire_time(text: str) -> datetime:
    """Read a time with or without fraction, zone or the `T`; one without a zone is UTC. ValueError when it is none."""
    moment = datetime.fromisoformat(text)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("in UTC it lies outside the calendar") from None  # the first or the last hours of it, in another zone


EXACT_INTEGER_LIMIT = 2**53 - 1
"""What every reader of JSON holds exactly; no id is larger."""
INTEGER_TEXT = re.compile(r"-?[0-9]{1,19}")
NUMBER_TEXT = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


def wire_integer(value: Json) -> int:
    """A whole number, written as one or as a string of digits; one that is too large for our own answers is none."""
    if isinstance(value, str) and INTEGER_TEXT.fullmatch(value):
        value = int(value)
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    if not whole or not -EXACT_INTEGER_LIMIT <= cast("float", value) <= EXACT_INTEGER_LIMIT:
        raise UnreadableAnswer("a whole number is expected")
    return int(cast("float", value))


def wire_decimal(value: Json) -> float:
    """A number, or a text that is one."""
    found = balance_amount(value) if isinstance(value, str | float | int) else None
    if found is None:
        raise UnreadableAnswer("a number is expected")
    return found


def balance_amount(text: str | float | None) -> float | None:
    """A balance as a number: the wire writes "1530,20", some servers "1530.20" or a number. None when it is none of these."""
    if not isinstance(text, str):
        return None if text is None or isinstance(text, bool) else float(text)
    plain = text.strip().replace("\u00a0", "").replace(" ", "")
    if "," in plain:  # dots before a decimal comma part the thousands
        plain = plain.replace(".", "").replace(",", ".")
    return float(plain) if NUMBER_TEXT.fullmatch(plain) else None
