"""Strict reading of a request's parameters: what is not asked for, missing or of the wrong type is refused with code 2."""

from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import TypeVar, cast

from clients.sandbox.ocs.entities import MICRO, Refused
from clients.sandbox.ocs.moments import read_day, read_moment

T = TypeVar("T")
INVALID_REQUEST = 2
LARGEST = (1 << 53) - 1
LONGEST_DAYS = 36_500
LONGEST_TEXT = 1_000


def refuse(message: str) -> Refused:
    """The request has not the documented shape."""
    return Refused(INVALID_REQUEST, message)


class Fields:
    """An object of the request; each member is taken once, and `done` refuses what nobody took. A null member is an absent one."""

    def __init__(self, value: object, path: str = "params") -> None:
        if not isinstance(value, dict):
            raise refuse(f"{path} must be an object, not {kind(value)}")
        self._value = cast(Mapping[str, object], value)
        self._path = path
        self._taken: set[str] = set()

    def done(self) -> None:
        """Refuse members that the method does not know."""
        unknown = sorted(self._value.keys() - self._taken)
        if unknown:
            raise refuse(f"{self._path} has unknown members: {', '.join(unknown)}")

    def given(self, names: Collection[str]) -> list[str]:
        """Which of the names have a value."""
        return [name for name in names if self._value.get(name) is not None]

    def has_key(self, name: str) -> bool:
        """Whether the member stands there, be it null."""
        return name in self._value

    def raw(self, name: str) -> object:
        """The member as it came."""
        self._taken.add(name)
        return self._value.get(name)

    def maybe(self, name: str, read: Callable[[object, str], T]) -> T | None:
        """A member that may be missing, read by a function that is told where it stands."""
        value = self.raw(name)
        return None if value is None else read(value, f"{self._path}.{name}")

    def need(self, name: str, read: Callable[[object, str], T]) -> T:
        """A member that must be there."""
        value = self.maybe(name, read)
        if value is None:
            raise refuse(f"{self._path}.{name} is missing")
        return value

    def nested(self, name: str) -> "Fields":
        """An object inside this one."""
        return self.need(name, Fields)


def kind(value: object) -> str:
    """A JSON type's name, for people."""
    names = {"bool": "a boolean", "int": "an integer", "float": "a number", "str": "a string", "list": "an array", "dict": "an object"}
    return names.get(type(value).__name__, "null")


def integer(value: object, path: str) -> int:
    """An id or a count: not a string, not a boolean."""
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise refuse(f"{path} must be an integer from 0, not {kind(value)}")
    return value


def positive(value: object, path: str) -> int:
    """An integer from 1."""
    number = integer(value, path)
    if number == 0:
        raise refuse(f"{path} must be at least 1")
    return number


def days(value: object, path: str) -> int:
    """A length in days."""
    number = positive(value, path)
    if number > LONGEST_DAYS:
        raise refuse(f"{path} must be at most {LONGEST_DAYS} days")
    return number


def signed(value: object, path: str) -> int:
    """A measurement, which may be negative."""
    if type(value) is not int or abs(value) > LARGEST:
        raise refuse(f"{path} must be an integer, not {kind(value)}")
    return value


def money(value: object, path: str) -> int:
    """An amount as micro-euro."""
    if type(value) is not int and type(value) is not float:
        raise refuse(f"{path} must be a number, not {kind(value)}")
    if abs(value) > 1_000_000_000:
        raise refuse(f"{path} is larger than any balance")
    return round(value * MICRO)


def price(value: object, path: str) -> int:
    """An amount that is not negative."""
    amount = money(value, path)
    if amount < 0:
        raise refuse(f"{path} must not be negative")
    return amount


def flag(value: object, path: str) -> bool:
    """True or false, not a word for it."""
    if type(value) is not bool:
        raise refuse(f"{path} must be true or false, not {kind(value)}")
    return value


def text(value: object, path: str) -> str:
    """A string that is not blank."""
    if not isinstance(value, str):
        raise refuse(f"{path} must be a string, not {kind(value)}")
    if not value.strip() or len(value) > LONGEST_TEXT:
        raise refuse(f"{path} must have 1 to {LONGEST_TEXT} characters")
    return value


def digits(value: object, path: str) -> str:
    """A string of digits."""
    found = text(value, path)
    if not (found.isascii() and found.isdigit()):
        raise refuse(f"{path} must consist of digits")
    return found


def digits_or_number(value: object, path: str) -> str:
    """Digits, which some callers send as a JSON number."""
    return str(integer(value, path)) if type(value) is int else digits(value, path)


def moment(value: object, path: str) -> int:
    """A date and time in UTC, without a zone."""
    found = read_moment(text(value, path))
    if found is None:
        raise refuse(f"{path} must look like 2026-01-31T12:00:00")
    return found


def day(value: object, path: str) -> date:
    """A calendar day."""
    found = read_day(text(value, path))
    if found is None:
        raise refuse(f"{path} must look like 2026-01-31")
    return found


def texts(value: object, path: str) -> list[str]:
    """An array of strings that is not empty."""
    if not isinstance(value, list) or not value:
        raise refuse(f"{path} must be an array of strings that is not empty")
    return [text(item, f"{path}[{index}]") for index, item in enumerate(cast(list[object], value))]


def one_of(allowed: Collection[T]) -> Callable[[object, str], T]:
    """A value of an enumeration, spelled exactly."""

    def read(value: object, path: str) -> T:
        for choice in allowed:
            if type(value) is type(choice) and value == choice:
                return choice
        raise refuse(f"{path} must be one of {', '.join(map(str, allowed))}")

    return read


def window(fields: Fields, first: str, last: str) -> tuple[int, int]:
    """Two moments, the second later than the first."""
    start, end = fields.need(first, moment), fields.need(last, moment)
    if end <= start:
        raise refuse(f"{last} must be later than {first}")
    return start, end


def exactly_one(fields: Fields, names: Collection[str]) -> str:
    """The one name of several that is given."""
    found = fields.given(names)
    if len(found) != 1:
        raise refuse(f"give exactly one of {', '.join(names)}, not {len(found)}")
    return found[0]
