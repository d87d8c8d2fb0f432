"""What the service relies upon in answers: members of their declared types, kinds of containers, whole-number ids.

Servers write what their database holds. So a null member is taken as an absent one, and a number in quotes as a number. Whoever reads a
member further on may rely on its type; what cannot be put right is unreadable.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Annotated, Final, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypeAliasType, TypedDict, is_typeddict

from registry.free_text import FreeText


class UnreadableAnswer(Exception):
    """An answer that breaks the wire's shape. The text is ours and never leaves the client's log."""


Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
"""Any decoded JSON value."""


EXACT: Final = "larger than what every reader of JSON holds exactly: unreadable"
WireId = Annotated[int, EXACT]
"""An id, or another whole number that must arrive exactly."""
Utc = Annotated[str, Field(description="UTC, YYYY-MM-DDTHH:MM:SS")]

keeps_unknown = with_config(ConfigDict(extra="allow"))
"""Marks a shape whose unknown members pass through: newer servers add some."""


@keeps_unknown
class Named(TypedDict, total=False):
    """An id with its name."""

    id: int
    name: FreeText


@keeps_unknown
class ZoneName(TypedDict, total=False):
    """A location zone by id and name."""

    locationzoneid: int
    locationzonename: FreeText


@keeps_unknown
class DestinationName(TypedDict, total=False):
    """A destination list by id and name."""

    destinationzoneid: int
    destinationzonename: FreeText


@keeps_unknown
class ResellerName(TypedDict, total=False):
    """A reseller by id and name."""

    resellerid: int
    resellername: FreeText


EXACT_INTEGER_LIMIT = 2**53 - 1
"""What every reader of JSON holds exactly; no id is larger."""
INTEGER_TEXT = re.compile(r"-?[0-9]{1,19}")
NUMBER_TEXT = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


def wire_integer(value: Json) -> int:
    """The whole number that `value` is or spells. Raises UnreadableAnswer where it is none, or too large for every reader of JSON."""
    if isinstance(value, str) and INTEGER_TEXT.fullmatch(value):
        value = int(value)
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    if not whole or not -EXACT_INTEGER_LIMIT <= cast("float", value) <= EXACT_INTEGER_LIMIT:
        raise UnreadableAnswer("a whole number is expected")
    return int(cast("float", value))


def wire_decimal(value: Json) -> float:
    """The number that `value` is or spells. Raises UnreadableAnswer."""
    found = balance_amount(value) if isinstance(value, str | float | int) else None
    if found is None:
        raise UnreadableAnswer("a number is expected")
    return found


def balance_amount(text: str | float | None) -> float | None:
    """A balance as a number: the wire writes "1530,20", some servers "1530.20" or a number. None for other texts."""
    if not isinstance(text, str):
        return None if text is None or isinstance(text, bool) else float(text)
    plain = text.strip().replace("\u00a0", "").replace(" ", "")
    if "," in plain:  # dots before a decimal comma part the thousands
        plain = plain.replace(".", "").replace(",", ".")
    return float(plain) if NUMBER_TEXT.fullmatch(plain) else None


CARD_SECRETS = frozenset({"pin1", "pin2", "puk1", "puk2"})
"""What unlocks a card. Nobody here needs it, so it is dropped as soon as it is read, wherever it stands."""
ShapedT = TypeVar("ShapedT")
ShapedT_co = TypeVar("ShapedT_co", covariant=True)
ParseAnswer = Callable[[Json], ShapedT]
ValueFit = Callable[[Json], Json]
"""The value itself where it fits, else what it stands for."""


@cache
def type_fit(kind: object, inner: "AnswerShape[object] | None" = None) -> ValueFit | None:
    """The function that makes a value fit the type `kind`; None where any value fits. `inner`: the shape of an object or of rows."""
    origin = get_origin(kind)
    if kind in SCALAR_FITS:
        return SCALAR_FITS[cast(type, kind)]
    if is_typeddict(kind):
        return (inner or AnswerShape(cast(type, kind))).fit
    if origin is list:
        return array_fit(type_fit(get_args(kind)[0], inner))
    if origin is dict:
        return mapping_fit(type_fit(get_args(kind)[1]))
    parts = [part for part in get_args(kind) if part is not type(None)]
    return type_fit(parts[0], inner) if len(parts) == 1 and len(get_args(kind)) == 2 else None


def fit_text(value: Json) -> Json:
    """A text; a number becomes its text. Raises UnreadableAnswer."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UnreadableAnswer("a text is expected")


def fit_flag(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    raise UnreadableAnswer("true or false is expected")


SCALAR_FITS: Mapping[type, ValueFit] = {int: wire_integer, float: wire_decimal, str: fit_text, bool: fit_flag}
ACCEPTED_TYPES: Mapping[object, frozenset[type]] = {
    int: frozenset({int}),
    float: frozenset({float, int}),
    str: frozenset({str}),
    bool: frozenset({bool}),
}


class AnswerShape(Generic[ShapedT_co]):
    """An object of the wire: the types that `kind` declares, and what is relied upon beyond them. Members that `kind` lacks stay."""

    def __init__(
        self,
        kind: type[ShapedT_co],
        *,
        required: Iterable[str] = (),
        made: Iterable[str] = (),
        filled: Iterable[str] = (),
        inside: "Mapping[str, AnswerShape[object]] | None" = None,
    ) -> None:
        """`required` members must be there; `made` are objects and `filled` lists that are made, empty, when they are missing or null.

        `inside`: the shapes of objects in this one, or of the rows of its lists, that need more than their types.
        """
        self._kind, self._required, self._made, self._filled = kind, tuple(required), tuple(made), tuple(filled)
        self._inside: Mapping[str, AnswerShape[object]] = inside or {}

    @cached_property
    def fit(self) -> "Callable[[Json], dict[str, Json]]":
        """Puts an object right, in place: nothing else holds the answer. Bare loops, since lists have hundreds of thousands of members."""
        hints, declared = get_type_hints(self._kind), get_type_hints(self._kind, include_extras=True)
        exact = [name for name, hint in declared.items() if EXACT in getattr(hint, "__metadata__", ())]
        kept = {name: ACCEPTED_TYPES[hint] for name, hint in hints.items() if hint in ACCEPTED_TYPES}
        scalars = {name: SCALAR_FITS[hint] for name, hint in hints.items() if hint in SCALAR_FITS}
        nested = [(name, fit) for name, hint in hints.items() if name not in kept and (fit := type_fit(hint, self._inside.get(name)))]
        made = [(name, fit) for name, fit in nested if name in self._made]
        declared_required, required, filled = cast("frozenset[str]", vars(self._kind)["__required_keys__"]), self._required, self._filled

        def fitted(value: Json) -> dict[str, Json]:
            if type(value) is not dict:
                raise UnreadableAnswer("an object is expected")
            if not value.keys().isdisjoint(CARD_SECRETS):
                for name in CARD_SECRETS & value.keys():
                    del value[name]
            wrong = [name for name, found in value.items() if name in kept and type(found) not in kept[name]]
            for name in wrong:
                fit_member(value, name, scalars[name])
            for name, fit in nested:
                if name in value:
                    fit_member(value, name, fit)
            if declared_required and not declared_required <= value.keys():
                raise UnreadableAnswer("a member is missing")
            for name, fit in made:
                if name not in value:
                    value[name] = fit({})
            for name in exact:
                if cast("int", value.get(name, 0)) > EXACT_INTEGER_LIMIT:
                    raise UnreadableAnswer("a whole number is expected")
            for name in required:
                if value.get(name) is None:
                    raise UnreadableAnswer(f"member {name} is missing")
            for name in filled:
                if name not in value:
                    value[name] = []
            return value

        return fitted


def fit_member(value: dict[str, Json], name: str, made: ValueFit) -> None:
    """Makes the member `name` fit; a null member is removed."""
    found = value[name]
    if found is None:
        del value[name]
    else:
        value[name] = made(found)


def array_fit(inner: ValueFit | None) -> ValueFit:
    def fitted(value: Json) -> Json:
        if not isinstance(value, list):
            raise UnreadableAnswer("an array is expected")
        return value if inner is None else [inner(row) for row in value]

    return fitted


def mapping_fit(inner: ValueFit | None) -> ValueFit:
    """Fits an object whose members are all of one kind."""

    def fitted(value: Json) -> Json:
        if not isinstance(value, dict):
            raise UnreadableAnswer("an object is expected")
        return value if inner is None else {name: inner(part) for name, part in value.items() if part is not None}

    return fitted


def wire_object(value: Json) -> dict[str, Json]:
    """`value` as an object. Raises UnreadableAnswer where it is none."""
    if not isinstance(value, dict):
        raise UnreadableAnswer("an object is expected")
    return value


def _list_or_empty(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnreadableAnswer("an array is expected")
    return value


def parse_nothing(value: Json) -> None:
    """For writes that answer with their status alone: a payload is ignored."""


def parse_text(value: Json) -> str:
    """A string that is not empty. Raises UnreadableAnswer."""
    if not isinstance(value, str) or not value:
        raise UnreadableAnswer("a string is expected")
    return value


def parse_record(shape: AnswerShape[ShapedT], *, absent: bool = False) -> ParseAnswer[ShapedT]:
    """Reads one object; with `absent`, a missing object counts as an empty one."""
    return lambda value: cast("ShapedT", shape.fit({} if absent and value is None else value))


def parse_record_or_none(shape: AnswerShape[ShapedT]) -> ParseAnswer[ShapedT | None]:
    """Reads one object, or None where it is missing."""
    return lambda value: None if value is None else cast("ShapedT", shape.fit(value))


def parse_rows(shape: AnswerShape[ShapedT]) -> ParseAnswer[list[ShapedT]]:
    """Reads an array of objects; a missing or null array is empty."""
    return lambda value: cast("list[ShapedT]", [shape.fit(row) for row in _list_or_empty(value)])


def parse_member_rows(name: str, shape: AnswerShape[ShapedT]) -> ParseAnswer[list[ShapedT]]:
    """Reads the array in the member `name` of the answer; both may be missing."""
    parse = parse_rows(shape)
    return lambda value: parse(_member_of(value, name))


def parse_member(name: str, shape: AnswerShape[ShapedT]) -> ParseAnswer[ShapedT]:
    """Reads the object in the member `name` of the answer."""
    return lambda value: cast("ShapedT", shape.fit(_member_of(value, name)))


def _member_of(value: Json, name: str) -> Json:
    return None if value is None else wire_object(value).get(name)
