"""What the service relies upon in answers: members of their declared types, kinds of containers, whole-number ids."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from clients.ocs.failure import Unreadable
from clients.ocs.fit import fit
from clients.ocs.numbers import MOST, integer
from clients.ocs.wire.members import Json

T = TypeVar("T")
Parse = Callable[[Json], T]


def _no_shapes() -> "dict[str, Shape]":
    return {}


@dataclass(frozen=True, slots=True)
class Shape:
    """An object: which members are ids, which must be there, which hold more."""

    ids: tuple[str, ...] = ()
    """Whole numbers; numeric strings become numbers."""
    required: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Objects that are made, empty, when they are missing."""
    lists: "Mapping[str, Shape]" = field(default_factory=_no_shapes)
    """Arrays of objects; a missing or null one becomes empty."""
    objects: "Mapping[str, Shape]" = field(default_factory=_no_shapes)
    """Objects that may be missing; a null one is dropped."""
    words: tuple[str, ...] = ()
    """Arrays of plain values; a missing or null one becomes empty."""
    histories: tuple[str, ...] = ()
    """Arrays of objects that may be missing; a null one is dropped."""


PLAIN = Shape()


def checked(value: Json, shape: Shape) -> dict[str, Json]:
    """The object itself, put right in place: built once per answer, so nobody else holds it."""
    if not isinstance(value, dict):
        raise Unreadable("an object is expected")
    for name in shape.made:
        value[name] = value.get(name) or {}
    for name in shape.ids:
        found = value.get(name)
        if found is not None and (type(found) is not int or found > MOST):
            value[name] = integer(found)
    for name in shape.required:
        if value.get(name) is None:
            raise Unreadable(f"member {name} is missing")
    for name, inner in shape.lists.items():
        value[name] = cast("list[Json]", _checked_rows(value.get(name), inner))
    _check_rest(value, shape)
    return value


def _check_rest(value: dict[str, Json], shape: Shape) -> None:
    for name in shape.words:
        value[name] = _list(value.get(name))
    for name in shape.histories:
        if value.get(name) is not None:
            _checked_rows(value[name], PLAIN)
    for name, inner in shape.objects.items():
        if value.get(name) is not None:
            checked(value[name], inner)
    for name in (*shape.histories, *shape.objects):
        if name in value and value[name] is None:
            del value[name]


def _checked_rows(value: Json, shape: Shape) -> list[dict[str, Json]]:
    found = _list(value)
    if shape is PLAIN:  # the common case of long lists
        if not all(type(row) is dict for row in found):
            raise Unreadable("an array of objects is expected")
        return cast("list[dict[str, Json]]", found)
    return [checked(row, shape) for row in found]


def _list(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unreadable("an array is expected")
    return value


def nothing(value: Json) -> None:
    """Writes that answer with their status alone; a payload is ignored."""


def text(value: Json) -> str:
    """A bare string."""
    if not isinstance(value, str) or not value:
        raise Unreadable("a string is expected")
    return value


def record(kind: type[T], shape: Shape, *, absent: bool = False) -> Parse[T]:
    """One object; with `absent`, a missing one is an empty one."""

    def parse(value: Json) -> T:
        return cast("T", _fitted({} if absent and value is None else value, kind, shape))

    return parse


def perhaps(kind: type[T], shape: Shape) -> Parse[T | None]:
    """One object, or None when it is missing."""

    def parse(value: Json) -> T | None:
        return None if value is None else cast("T", _fitted(value, kind, shape))

    return parse


def rows(kind: type[T], shape: Shape) -> Parse[list[T]]:
    """An array of objects; missing or null when it is empty."""

    def parse(value: Json) -> list[T]:
        return cast("list[T]", [_fitted(row, kind, shape) for row in _list(value)])

    return parse


def member_rows(kind: type[T], name: str, shape: Shape) -> Parse[list[T]]:
    """The array in one member of the answer; both may be missing."""

    def parse(value: Json) -> list[T]:
        return cast("list[T]", [_fitted(row, kind, shape) for row in _list(_member(value, name))])

    return parse


def member(kind: type[T], name: str, shape: Shape) -> Parse[T]:
    """The object in one member of the answer."""

    def parse(value: Json) -> T:
        return cast("T", _fitted(_member(value, name), kind, shape))

    return parse


def _fitted(value: Json, kind: type, shape: Shape) -> dict[str, Json]:
    """The object: its members of the types that it declares, then what is relied upon beyond them."""
    made = fit(kind)
    return checked(value if made is None else made(value), shape)


def _member(value: Json, name: str) -> Json:
    return None if value is None else checked(value, PLAIN).get(name)
