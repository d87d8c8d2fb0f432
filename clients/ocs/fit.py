"""Answers made to fit the shapes that they are declared as: a null member is an absent one, a number in quotes is a number.

Servers write what their database holds. Whoever reads a member further on may rely on its type; what cannot be put right is unreadable.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import cast, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from clients.ocs.failure import Unreadable
from clients.ocs.numbers import decimal, integer
from clients.ocs.wire.members import Json

SECRETS = frozenset({"pin1", "pin2", "puk1", "puk2"})
"""What unlocks a card. Nobody here needs it, so it is dropped as soon as it is read, wherever it stands."""
Fit = Callable[[Json], Json]
"""The value itself where it fits, else what it stands for."""


@cache
def fit(kind: object) -> Fit | None:
    """How a value is made to fit a type; None where any value does."""
    origin = get_origin(kind)
    if kind in SCALARS:
        return SCALARS[cast(type, kind)]
    if is_typeddict(kind):
        return members(cast(type, kind))
    if origin is list:
        return rows(fit(get_args(kind)[0]))
    if origin is dict:
        return values(fit(get_args(kind)[1]))
    parts = [part for part in get_args(kind) if part is not type(None)]
    return nullable(fit(parts[0])) if len(parts) == 1 and len(get_args(kind)) == 2 else None


def word(value: Json) -> Json:
    """A text; numbers that should be one become one."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Unreadable("a text is expected")


def flag(value: Json) -> Json:
    """Yes or no."""
    if isinstance(value, bool):
        return value
    raise Unreadable("true or false is expected")


SCALARS: Mapping[type, Fit] = {int: integer, float: decimal, str: word, bool: flag}
KEPT: Mapping[object, frozenset[type]] = {
    int: frozenset({int}),
    float: frozenset({float, int}),
    str: frozenset({str}),
    bool: frozenset({bool}),
}


@cache
def members(kind: type) -> Fit:
    """An object: what is declared must fit, what is not stays. Long lists have hundreds of thousands of members: the loop is bare."""
    hints, required = get_type_hints(kind), cast("frozenset[str]", vars(kind)["__required_keys__"])
    kept = {name: KEPT[hint] for name, hint in hints.items() if hint in KEPT}
    scalars = {name: SCALARS[hint] for name, hint in hints.items() if hint in SCALARS}
    nested = [(name, made) for name, hint in hints.items() if name not in kept and (made := fit(hint)) is not None]

    def fitted(value: Json) -> Json:
        if type(value) is not dict:
            raise Unreadable("an object is expected")
        if not value.keys().isdisjoint(SECRETS):
            for name in SECRETS & value.keys():
                del value[name]
        wrong = [name for name, found in value.items() if name in kept and type(found) not in kept[name]]
        for name in wrong:
            put(value, name, scalars[name])
        for name, made in nested:
            found = value.get(name)
            if found is not None:
                value[name] = made(found)
            elif name in value:
                put(value, name, made)
        if required and not required <= value.keys():
            raise Unreadable("a member is missing")
        return value

    return fitted


def put(value: dict[str, Json], name: str, made: Fit) -> None:
    """Make one member fit; a null one that may not be null goes."""
    found = value[name]
    if found is None and not isinstance(made, Nullable):
        del value[name]
    else:
        value[name] = made(found)


class Nullable:
    """What may be null."""

    def __init__(self, inner: Fit) -> None:
        self._inner = inner

    def __call__(self, value: Json) -> Json:
        """The value."""
        return None if value is None else self._inner(value)


def nullable(inner: Fit | None) -> Fit | None:
    """The same, or null."""
    return None if inner is None else Nullable(inner)


def rows(inner: Fit | None) -> Fit:
    """An array."""

    def fitted(value: Json) -> Json:
        if not isinstance(value, list):
            raise Unreadable("an array is expected")
        return value if inner is None else [inner(row) for row in value]

    return fitted


def values(inner: Fit | None) -> Fit:
    """An object whose members are all of one kind."""

    def fitted(value: Json) -> Json:
        if not isinstance(value, dict):
            raise Unreadable("an object is expected")
        return value if inner is None else {name: inner(part) for name, part in value.items() if part is not None}

    return fitted
