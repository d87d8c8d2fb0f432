"""What the service relies upon in answers: members of their declared types, kinds of containers, whole-number ids.

Servers write what their database holds. So a null member is taken as an absent one, and a number in quotes as a number. Whoever reads a
member further on may rely on its type; what cannot be put right is unreadable.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar, cast, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from clients.ocs.wire.values import EXACT_INTEGER_LIMIT, Json, UnreadableAnswer, wire_decimal, wire_integer

CARD_SECRETS = frozenset({"pin1", "pin2", "puk1", "puk2"})
"""What unlocks a card. Nobody here needs it, so it is dropped as soon as it is read, wherever it stands."""
ValueFit = Callable[[Json], Json]
"""The value itself where it fits, else what it stands for."""


@cache
def type_fit(kind: object) -> ValueFit | None:
    """How a value is made to fit a type; None where any value does."""
    origin = get_origin(kind)
    if kind in SCALAR_FITS:
        return SCALAR_FITS[cast(type, kind)]
    if is_typeddict(kind):
        return object_fit(cast(type, kind))
    if origin is list:
        return array_fit(type_fit(get_args(kind)[0]))
    if origin is dict:
        return mapping_fit(type_fit(get_args(kind)[1]))
    parts = [part for part in get_args(kind) if part is not type(None)]
    return nullable_fit(type_fit(parts[0])) if len(parts) == 1 and len(get_args(kind)) == 2 else None


def fit_text(value: Json) -> Json:
    """A text; numbers that should be one become one."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UnreadableAnswer("a text is expected")


def fit_flag(value: Json) -> Json:
    """Yes or no."""
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


@cache
def object_fit(kind: type) -> ValueFit:
    """An object: what is declared must fit, what is not stays. Long lists have hundreds of thousands of members: the loop is bare."""
    hints, required = get_type_hints(kind), cast("frozenset[str]", vars(kind)["__required_keys__"])
    kept = {name: ACCEPTED_TYPES[hint] for name, hint in hints.items() if hint in ACCEPTED_TYPES}
    scalars = {name: SCALAR_FITS[hint] for name, hint in hints.items() if hint in SCALAR_FITS}
    nested = [(name, made) for name, hint in hints.items() if name not in kept and (made := type_fit(hint)) is not None]

    def fitted(value: Json) -> Json:
        if type(value) is not dict:
            raise UnreadableAnswer("an object is expected")
        if not value.keys().isdisjoint(CARD_SECRETS):
            for name in CARD_SECRETS & value.keys():
                del value[name]
        wrong = [name for name, found in value.items() if name in kept and type(found) not in kept[name]]
        for name in wrong:
            fit_member(value, name, scalars[name])
        for name, made in nested:
            found = value.get(name)
            if found is not None:
                value[name] = made(found)
            elif name in value:
                fit_member(value, name, made)
        if required and not required <= value.keys():
            raise UnreadableAnswer("a member is missing")
        return value

    return fitted


def fit_member(value: dict[str, Json], name: str, made: ValueFit) -> None:
    """Make one member fit; a null one that may not be null goes."""
    found = value[name]
    if found is None and not isinstance(made, NullableFit):
        del value[name]
    else:
        value[name] = made(found)


class NullableFit:
    """What may be null."""

    def __init__(self, inner: ValueFit) -> None:
        self._inner = inner

    def __call__(self, value: Json) -> Json:
        """The value."""
        return None if value is None else self._inner(value)


def nullable_fit(inner: ValueFit | None) -> ValueFit | None:
    """The same, or null."""
    return None if inner is None else NullableFit(inner)


def array_fit(inner: ValueFit | None) -> ValueFit:
    """An array."""

    def fitted(value: Json) -> Json:
        if not isinstance(value, list):
            raise UnreadableAnswer("an array is expected")
        return value if inner is None else [inner(row) for row in value]

    return fitted


def mapping_fit(inner: ValueFit | None) -> ValueFit:
    """An object whose members are all of one kind."""

    def fitted(value: Json) -> Json:
        if not isinstance(value, dict):
            raise UnreadableAnswer("an object is expected")
        return value if inner is None else {name: inner(part) for name, part in value.items() if part is not None}

    return fitted


ShapedT = TypeVar("ShapedT")
ParseAnswer = Callable[[Json], ShapedT]


def _no_inner_shapes() -> "dict[str, AnswerShape]":
    return {}


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """An object: which members are ids, which must be there, which hold more."""

    ids: tuple[str, ...] = ()
    """Whole numbers; numeric strings become numbers."""
    required: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Objects that are made, empty, when they are missing."""
    lists: "Mapping[str, AnswerShape]" = field(default_factory=_no_inner_shapes)
    """Arrays of objects; a missing or null one becomes empty."""
    objects: "Mapping[str, AnswerShape]" = field(default_factory=_no_inner_shapes)
    """Objects that may be missing; a null one is dropped."""
    words: tuple[str, ...] = ()
    """Arrays of plain values; a missing or null one becomes empty."""
    histories: tuple[str, ...] = ()
    """Arrays of objects that may be missing; a null one is dropped."""


PLAIN_SHAPE = AnswerShape()


def check_shape(value: Json, shape: AnswerShape) -> dict[str, Json]:
    """The object itself, put right in place: built once per answer, so nobody else holds it."""
    if not isinstance(value, dict):
        raise UnreadableAnswer("an object is expected")
    for name in shape.made:
        value[name] = value.get(name) or {}
    for name in shape.ids:
        found = value.get(name)
        if found is not None and (type(found) is not int or found > EXACT_INTEGER_LIMIT):
            value[name] = wire_integer(found)
    for name in shape.required:
        if value.get(name) is None:
            raise UnreadableAnswer(f"member {name} is missing")
    for name, inner in shape.lists.items():
        value[name] = cast("list[Json]", _check_rows(value.get(name), inner))
    _check_other_members(value, shape)
    return value


def _check_other_members(value: dict[str, Json], shape: AnswerShape) -> None:
    for name in shape.words:
        value[name] = _list_or_empty(value.get(name))
    for name in shape.histories:
        if value.get(name) is not None:
            _check_rows(value[name], PLAIN_SHAPE)
    for name, inner in shape.objects.items():
        if value.get(name) is not None:
            check_shape(value[name], inner)
    for name in (*shape.histories, *shape.objects):
        if name in value and value[name] is None:
            del value[name]


def _check_rows(value: Json, shape: AnswerShape) -> list[dict[str, Json]]:
    found = _list_or_empty(value)
    if shape is PLAIN_SHAPE:  # the common case of long lists
        if not all(type(row) is dict for row in found):
            raise UnreadableAnswer("an array of objects is expected")
        return cast("list[dict[str, Json]]", found)
    return [check_shape(row, shape) for row in found]


def _list_or_empty(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnreadableAnswer("an array is expected")
    return value


def parse_nothing(value: Json) -> None:
    """Writes that answer with their status alone; a payload is ignored."""


def parse_text(value: Json) -> str:
    """A bare string."""
    if not isinstance(value, str) or not value:
        raise UnreadableAnswer("a string is expected")
    return value


def parse_record(kind: type[ShapedT], shape: AnswerShape, *, absent: bool = False) -> ParseAnswer[ShapedT]:
    """One object; with `absent`, a missing one is an empty one."""

    def parse(value: Json) -> ShapedT:
        return cast("ShapedT", _fit_record({} if absent and value is None else value, kind, shape))

    return parse


def parse_record_or_none(kind: type[ShapedT], shape: AnswerShape) -> ParseAnswer[ShapedT | None]:
    """One object, or None when it is missing."""

    def parse(value: Json) -> ShapedT | None:
        return None if value is None else cast("ShapedT", _fit_record(value, kind, shape))

    return parse


def parse_rows(kind: type[ShapedT], shape: AnswerShape) -> ParseAnswer[list[ShapedT]]:
    """An array of objects; missing or null when it is empty."""

    def parse(value: Json) -> list[ShapedT]:
        return cast("list[ShapedT]", [_fit_record(row, kind, shape) for row in _list_or_empty(value)])

    return parse


def parse_member_rows(kind: type[ShapedT], name: str, shape: AnswerShape) -> ParseAnswer[list[ShapedT]]:
    """The array in one member of the answer; both may be missing."""

    def parse(value: Json) -> list[ShapedT]:
        return cast("list[ShapedT]", [_fit_record(row, kind, shape) for row in _list_or_empty(_member_of(value, name))])

    return parse


def parse_member(kind: type[ShapedT], name: str, shape: AnswerShape) -> ParseAnswer[ShapedT]:
    """The object in one member of the answer."""

    def parse(value: Json) -> ShapedT:
        return cast("ShapedT", _fit_record(_member_of(value, name), kind, shape))

    return parse


def _fit_record(value: Json, kind: type, shape: AnswerShape) -> dict[str, Json]:
    """The object: its members of the types that it declares, then what is relied upon beyond them."""
    made = type_fit(kind)
    return check_shape(value if made is None else made(value), shape)


def _member_of(value: Json, name: str) -> Json:
    return None if value is None else check_shape(value, PLAIN_SHAPE).get(name)
