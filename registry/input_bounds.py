"""What the arrays and objects of an operation's input may be, read from its model.

pydantic makes an error for every wrong member before it says anything, and copies the value at fault into each. 19,000 unknown fields cost
it 200 ms, of which a caller is told one. So an input is held against the bounds of its model first: an unknown field and a list that is too
long are refused at once, by counting, and an array where a text belongs is emptied. What is left has as many members as the model
has fields, and pydantic's work has a bound.
"""

import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, islice
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from registry.operation import field_spellings

InputPath: TypeAlias = tuple[int | str, ...]
BoundsProblem: TypeAlias = Literal["extra_forbidden", "too_long"]


@dataclass(frozen=True, slots=True)
class MaxEntries:
    """How many entries a list may have, where the model's own validator says so and pydantic does not know it."""

    max_length: int


class InputTooLarge(ValueError):
    """A member that has no place in the bounds.

    `kind` is what pydantic calls it; `loc` is where it is, `most` the length that is allowed.
    """

    def __init__(self, kind: BoundsProblem, value: Any, most: int = 0) -> None:
        super().__init__(kind)
        self.kind, self.value, self.most = kind, value, most
        self.loc: InputPath = ()

    def inside(self, name: int | str) -> "InputTooLarge":
        """The same, seen from one level further out."""
        self.loc = (name, *self.loc)
        return self


@dataclass(frozen=True, slots=True)
class InputBounds:
    """A place in the input. One with neither `fields` nor `items` takes no array and no object, unless it is `open` to all of them."""

    open: bool = False
    fields: "Mapping[str, InputBounds] | None" = None
    """By every spelling, where the place takes an object of a model."""
    closed: bool = True
    """Whether other fields are refused; otherwise they count for nothing and are left out."""
    items: "InputBounds | None" = None
    """What the entries of an array, or of an object that maps freely chosen names, may be."""
    array: bool = False
    most: int | None = None


SMALL_ARRAY_VALUES = 64
"""How many values an array may hold that is refused for being one; a larger one is emptied, since pydantic copies it."""
SPARE_MEMBERS = 8
"""How many members an object may have beyond its fields: a few that are unknown the model itself may have a word for."""
SCALAR_BOUNDS, OPEN_BOUNDS = InputBounds(), InputBounds(open=True)


@lru_cache(maxsize=1024)
def model_bounds(model: type[BaseModel]) -> InputBounds:
    """The bounds of a model, made once."""
    own = model.model_fields
    by_field = {name: bounds_with_metadata(type_bounds(info.annotation), info.metadata) for name, info in own.items()}
    fields = {word: by_field[name] for word, name in field_spellings(model).items()}
    return InputBounds(fields=fields, closed=model.model_config.get("extra") == "forbid")


def type_bounds(annotation: Any) -> InputBounds:
    """The bounds of a type. Whatever is not known for certain is open."""
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return bounds_with_metadata(type_bounds(members[0]), members[1:])
    if origin in (Union, types.UnionType):
        found = [type_bounds(member) for member in members if member is not type(None)]
        return found[0] if len(found) == 1 else SCALAR_BOUNDS if all(bounds == SCALAR_BOUNDS for bounds in found) else OPEN_BOUNDS
    if origin is list:
        return InputBounds(array=True, items=type_bounds(members[0]))
    if origin is dict:
        return InputBounds(items=type_bounds(members[1]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return model_bounds(annotation)
    takes_anything = annotation in (Any, object, list, dict, tuple, set, JsonValue) or origin in (tuple, set, frozenset)
    return OPEN_BOUNDS if takes_anything else SCALAR_BOUNDS


def bounds_with_metadata(bounds: InputBounds, metadata: Any) -> InputBounds:
    """The bounds under the constraints that are written beside the type.

    Choice: a validator that looks at the value before pydantic does takes what its type says, so a text's is never given an array.
    """
    for each in metadata:
        if isinstance(each, FieldInfo):
            bounds = bounds_with_metadata(bounds, each.metadata)
        elif isinstance(most := getattr(each, "max_length", None), int) and bounds.items is not None:
            bounds = replace(bounds, most=most)
    return bounds


def bound_value(value: Any, bounds: InputBounds, *, shorten: bool) -> Any:
    """`value` itself where it is within `bounds`, else a smaller one that is refused with the same words.

    What has too many entries or unknown fields raises InputTooLarge; with `shorten` it stays just too long to be taken.
    """
    kind = cast(Any, type(value))
    if bounds.open or (kind is not dict and kind is not list):
        return value
    if bounds.fields is not None:
        return bound_object(value, bounds, bounds.fields, shorten=shorten) if kind is dict else emptied_value(value)
    if bounds.items is None or bounds.array is not (kind is list):
        return emptied_value(value)
    members: dict[Any, Any] = value if kind is dict else dict(zip(count(), value))
    if bounds.most is not None and len(members) > bounds.most:
        if not shorten:
            raise InputTooLarge("too_long", value, bounds.most)
        few = dict.fromkeys(islice(members, bounds.most + 1))
        return few if kind is dict else list(few.values())
    changed = bound_members(members, bounds.items, shorten=shorten)
    if not changed:
        return value
    members = {**members, **changed}
    return members if kind is dict else list(members.values())


def emptied_value(value: Any) -> Any:
    """An array or object where none belongs, emptied, since only its type is refused. A small one stays, so that its depth is checked."""
    seen, containers = 0, [value]
    while containers:
        each = containers.pop()
        seen += len(each)
        if seen > SMALL_ARRAY_VALUES:
            return {} if isinstance(value, dict) else []
        members: Any = list(cast("dict[str, Any]", each).values()) if isinstance(each, dict) else each
        containers += [member for member in members if isinstance(member, dict | list)]
    return value


def bound_object(value: Mapping[str, Any], bounds: InputBounds, fields: Mapping[str, InputBounds], *, shorten: bool) -> Mapping[str, Any]:
    if len(value) > len(fields) + SPARE_MEMBERS:
        unknown = (name for name in value if name not in fields)
        if bounds.closed and not shorten:
            name = next(unknown)
            raise InputTooLarge("extra_forbidden", value[name]).inside(name)
        few = set(islice(unknown, len(fields) + SPARE_MEMBERS + 1)) if bounds.closed else ()
        value = {name: member for name, member in value.items() if name in fields or name in few}
    changed: dict[Any, Any] = {}
    for name, member in value.items():
        if type(member) is dict or type(member) is list:
            inner: dict[Any, Any] = {name: member}
            changed |= bound_members(inner, fields.get(name, SCALAR_BOUNDS), shorten=shorten)
    return {**value, **changed} if changed else value


def bound_members(members: Mapping[Any, Any], bounds: InputBounds, *, shorten: bool) -> dict[Any, Any]:
    """The members under the same bounds that do not fit, each as small as it needs to be."""
    changed: dict[Any, Any] = {}
    for name, member in members.items():
        if type(member) is dict or type(member) is list:
            try:
                smaller = bound_value(member, bounds, shorten=shorten)
            except InputTooLarge as problem:
                raise problem.inside(name) from None
            if smaller is not member:
                changed[name] = smaller
    return changed
