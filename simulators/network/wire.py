"""The wire's own forms: null and empty members are left out, money is a float, some answers are bare, dates are UTC without a zone."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, Literal, TypeAlias, TypeVar, cast, final

from simulators.network.entities import INVALID_REQUEST, MICRO_EURO, NetworkRefusal, NetworkToken
from simulators.network.world import World

WireMembers: TypeAlias = dict[str, object]
WIRE_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
WIRE_YEARS = range(2000, 2200)  # so that no sum of a date and a period leaves the calendar
WIRE_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
ParamT = TypeVar("ParamT")
LARGEST_INTEGER = (1 << 53) - 1
DAYS_LIMIT = 36_500
TEXT_LIMIT = 1_000
EURO_CURRENCY_ID = 1


@dataclass(frozen=True, slots=True)
class NetworkMethod:
    """A method of the wire. `dispatch` finds what the files of `methods` declare.

    `perform` takes the world, the caller and the parameters, and returns the payload. A refusal changes nothing.
    """

    name: str
    perform: Callable[[World, NetworkToken, object], object]
    key: str
    """The member of the answer that holds the payload. The answer lacks it where `perform` returns None."""
    version: Literal["v1", "v2"]
    statistics: bool
    """Whether the statistics server answers it too."""


@final
class TruncatedPayload:
    """A payload whose JSON is cut off in the middle (quirk 16)."""

    def __init__(self, payload: object) -> None:
        self.payload = payload


@final
class NullPayload:
    """The payload null: without a payload the answer lacks its key."""


NULL_PAYLOAD: Final = NullPayload()
CONTAINERS: Final = (dict, list)


def drop_empty(value: object) -> object:
    """`value` without the members that are null or an empty array or object; false, zero and empty texts stay."""
    if isinstance(value, list):
        return [drop_empty(item) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    members: WireMembers = {}
    for name, each in cast(WireMembers, value).items():
        if isinstance(each, CONTAINERS):  # most members are plain: a call for each would take most of an answer's time
            if full := drop_empty(cast(object, each)):
                members[name] = full
        elif each is not None:
            members[name] = each
    return members


def wire_euro(micro: int) -> float:
    return micro / MICRO_EURO


def wire_euro_or_none(micro: int | None) -> float | None:
    return None if micro is None else micro / MICRO_EURO


def wire_comma_euro(micro: int) -> str:
    """A reseller's balance, as only that is written (quirk 6)."""
    cents = abs(micro) // 10_000
    return f"{'-' if micro < 0 else ''}{cents // 100},{cents % 100:02d}"


def wire_moment(at: int) -> str:
    """Unix seconds as the wire writes them."""
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]


def wire_moment_or_none(at: int | None) -> str | None:
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


def invalid_request(message: str) -> NetworkRefusal:
    return NetworkRefusal(INVALID_REQUEST, message)


class RequestFields:
    """An object of the request; each member is taken once, and `done` refuses what nobody took. A null member is an absent one."""

    def __init__(self, value: object, path: str = "params") -> None:
        if not isinstance(value, dict):
            raise invalid_request(f"{path} must be an object, not {_json_kind(value)}")
        self._value = cast(Mapping[str, object], value)
        self._path = path
        self._taken: set[str] = set()

    def done(self) -> None:
        """Refuse members that the method does not know."""
        unknown = sorted(self._value.keys() - self._taken)
        if unknown:
            raise invalid_request(f"{self._path} has unknown members: {', '.join(unknown)}")

    def given(self, names: Collection[str]) -> list[str]:
        """Which of the names have a value."""
        return [name for name in names if self._value.get(name) is not None]

    def has_key(self, name: str) -> bool:
        """Whether the member stands there, be it null."""
        return name in self._value

    def raw(self, name: str) -> object:
        self._taken.add(name)
        return self._value.get(name)

    def maybe(self, name: str, read: Callable[[object, str], ParamT]) -> ParamT | None:
        """A member that may be missing, read by a function that is told where it stands."""
        value = self.raw(name)
        return None if value is None else read(value, f"{self._path}.{name}")

    def need(self, name: str, read: Callable[[object, str], ParamT]) -> ParamT:
        value = self.maybe(name, read)
        if value is None:
            raise invalid_request(f"{self._path}.{name} is missing")
        return value

    def nested(self, name: str) -> "RequestFields":
        return self.need(name, RequestFields)


def _json_kind(value: object) -> str:
    names = {"bool": "a boolean", "int": "an integer", "float": "a number", "str": "a string", "list": "an array", "dict": "an object"}
    return names.get(type(value).__name__, "null")


def read_integer(value: object, path: str) -> int:
    """An id or a count: not a string, not a boolean."""
    if type(value) is not int or not 0 <= value <= LARGEST_INTEGER:
        raise invalid_request(f"{path} must be an integer from 0, not {_json_kind(value)}")
    return value


def read_positive(value: object, path: str) -> int:
    number = read_integer(value, path)
    if number == 0:
        raise invalid_request(f"{path} must be at least 1")
    return number


def read_days(value: object, path: str) -> int:
    number = read_positive(value, path)
    if number > DAYS_LIMIT:
        raise invalid_request(f"{path} must be at most {DAYS_LIMIT} days")
    return number


def read_signed(value: object, path: str) -> int:
    """A measurement, which may be negative."""
    if type(value) is not int or abs(value) > LARGEST_INTEGER:
        raise invalid_request(f"{path} must be an integer, not {_json_kind(value)}")
    return value


def read_money(value: object, path: str) -> int:
    """An amount as micro-euro."""
    if type(value) is not int and type(value) is not float:
        raise invalid_request(f"{path} must be a number, not {_json_kind(value)}")
    if abs(value) > 1_000_000_000:
        raise invalid_request(f"{path} is larger than any balance")
    return round(value * MICRO_EURO)


def read_price(value: object, path: str) -> int:
    amount = read_money(value, path)
    if amount < 0:
        raise invalid_request(f"{path} must not be negative")
    return amount


def read_flag(value: object, path: str) -> bool:
    if type(value) is not bool:
        raise invalid_request(f"{path} must be true or false, not {_json_kind(value)}")
    return value


def read_text(value: object, path: str) -> str:
    """A string that is not blank."""
    if not isinstance(value, str):
        raise invalid_request(f"{path} must be a string, not {_json_kind(value)}")
    if not value.strip() or len(value) > TEXT_LIMIT:
        raise invalid_request(f"{path} must have 1 to {TEXT_LIMIT} characters")
    return value


def read_digits(value: object, path: str) -> str:
    found = read_text(value, path)
    if not (found.isascii() and found.isdigit()):
        raise invalid_request(f"{path} must consist of digits")
    return found


def read_digits_or_number(value: object, path: str) -> str:
    """Digits, which some callers send as a JSON number."""
    return str(read_integer(value, path)) if type(value) is int else read_digits(value, path)


def read_moment(value: object, path: str) -> int:
    """A date and time in UTC, without a zone."""
    found = parse_wire_moment(read_text(value, path))
    if found is None:
        raise invalid_request(f"{path} must look like 2026-01-31T12:00:00")
    return found


def read_day(value: object, path: str) -> date:
    found = parse_wire_day(read_text(value, path))
    if found is None:
        raise invalid_request(f"{path} must look like 2026-01-31")
    return found


def read_texts(value: object, path: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise invalid_request(f"{path} must be an array of strings that is not empty")
    return [read_text(item, f"{path}[{index}]") for index, item in enumerate(cast(list[object], value))]


def read_one_of(allowed: Collection[ParamT]) -> Callable[[object, str], ParamT]:
    """A value of an enumeration, spelled exactly."""

    def read(value: object, path: str) -> ParamT:
        for choice in allowed:
            if type(value) is type(choice) and value == choice:
                return choice
        raise invalid_request(f"{path} must be one of {', '.join(map(str, allowed))}")

    return read


def read_window(fields: RequestFields, first: str, last: str) -> tuple[int, int]:
    """Two moments, the second later than the first."""
    start, end = fields.need(first, read_moment), fields.need(last, read_moment)
    if end <= start:
        raise invalid_request(f"{last} must be later than {first}")
    return start, end


def require_exactly_one(fields: RequestFields, names: Collection[str]) -> str:
    """The one name of several that is given."""
    found = fields.given(names)
    if len(found) != 1:
        raise invalid_request(f"give exactly one of {', '.join(names)}, not {len(found)}")
    return found[0]


MethodT = TypeVar("MethodT")
MethodFunction: TypeAlias = Callable[[World, NetworkToken, MethodT], object]


def network_method(
    name: str, *, key: str = "", version: Literal["v1", "v2"] = "v1", statistics: bool = False
) -> Callable[[MethodFunction[RequestFields]], NetworkMethod]:
    """Declares a function of an object of parameters as the method `name`. `key`: the answer's key, where it is not `name` (quirk 1)."""

    def declare(perform: MethodFunction[RequestFields]) -> NetworkMethod:
        return NetworkMethod(
            name, lambda world, caller, params: perform(world, caller, RequestFields(params)), key or name, version, statistics
        )

    return declare


def bare_method(name: str, *, key: str = "") -> Callable[[MethodFunction[int]], NetworkMethod]:
    """As `network_method`, for a method whose parameters are a bare id."""

    def declare(perform: MethodFunction[int]) -> NetworkMethod:
        return NetworkMethod(
            name, lambda world, caller, params: perform(world, caller, read_integer(params, "params")), key or name, "v1", False
        )

    return declare
