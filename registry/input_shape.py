"""What the arrays and objects of an operation's input may be, read from its model.

pydantic makes an error for every wrong member before it says anything, and copies the value at fault into each. 19,000 unknown fields cost
it 200 ms, of which a caller is told one. So an input is held against the shape of its model first: an unknown field and a list that is too
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

from registry.spelling import spellings

Loc: TypeAlias = tuple[int | str, ...]
Problem: TypeAlias = Literal["extra_forbidden", "too_long"]
NO_FIELDS: Mapping[str, "Shape"] = types.MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MaxEntries:
    """How many entries a list may have, where the model's own validator says so and pydantic does not know it."""

    max_length: int


class TooMuch(ValueError):
    """A member that has no place in the shape.

    `kind` is what pydantic calls it; `loc` is where it is, `most` the length that is allowed.
    """

    def __init__(self, kind: Problem, value: Any, most: int = 0) -> None:
        super().__init__(kind)
        self.kind, self.value, self.most = kind, value, most
        self.loc: Loc = ()

    def inside(self, name: int | str) -> "TooMuch":
        """The same, seen from one level further out."""
        self.loc = (name, *self.loc)
        return self


@dataclass(frozen=True, slots=True)
class Shape:
    """A place in the input. One with neither `fields` nor `items` takes no array and no object, unless it is `open` to all of them."""

    open: bool = False
    fields: Mapping[str, "Shape"] | None = None
    """By every spelling, where the place takes an object of a model."""
    closed: bool = True
    """Whether other fields are refused; otherwise they count for nothing and are left out."""
    items: "Shape | None" = None
    """What the entries of an array, or of an object that maps freely chosen names, may be."""
    array: bool = False
    most: int | None = None


FEW = 64
"""How many values an array may hold that is refused for being one; a larger one is emptied, since pydantic copies it."""
SLACK = 8
"""How many members an object may have beyond its fields: a few that are unknown the model itself may have a word for."""
SCALAR, OPEN = Shape(), Shape(open=True)


@lru_cache(maxsize=1024)
def shape_of(model: type[BaseModel]) -> Shape:
    """The shape of a model, made once."""
    own = model.model_fields
    by_field = {name: shape_of_field(info) for name, info in own.items()}
    fields = {word: by_field[name] for word, name in spellings(model).items()}
    return Shape(fields=fields, closed=model.model_config.get("extra") == "forbid")


def shape_of_field(info: FieldInfo) -> Shape:
    """The shape of a field."""
    return with_metadata(shape_of_type(info.annotation), info.metadata)


def shape_of_type(annotation: Any) -> Shape:
    """The shape of a type. Whatever is not known for certain is open."""
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return with_metadata(shape_of_type(members[0]), members[1:])
    if origin in (Union, types.UnionType):
        found = [shape_of_type(member) for member in members if member is not type(None)]
        return found[0] if len(found) == 1 else SCALAR if all(shape == SCALAR for shape in found) else OPEN
    if origin is list:
        return Shape(array=True, items=shape_of_type(members[0]))
    if origin is dict:
        return Shape(items=shape_of_type(members[1]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return shape_of(annotation)
    takes_anything = annotation in (Any, object, list, dict, tuple, set, JsonValue) or origin in (tuple, set, frozenset)
    return OPEN if takes_anything else SCALAR


def with_metadata(shape: Shape, metadata: Any) -> Shape:
    """The shape under the constraints that are written beside the type.

    Choice: a validator that looks at the value before pydantic does takes what its type says, so a text's is never given an array.
    """
    for each in metadata:
        if isinstance(each, FieldInfo):
            shape = with_metadata(shape, each.metadata)
        elif isinstance(most := getattr(each, "max_length", None), int) and shape.items is not None:
            shape = replace(shape, most=most)
    return shape


def fitted(value: Any, shape: Shape) -> Any:
    """The value itself when it fits, else a smaller one that is refused with the same words. TooMuch: what is refused by its count."""
    return held_against(value, shape, shorten=False)


def shortened(value: Any, shape: Shape) -> Any:
    """The same without TooMuch: what would be refused by its count stays just too long to be taken. For whoever only hands it on."""
    return held_against(value, shape, shorten=True)


def held_against(value: Any, shape: Shape, *, shorten: bool) -> Any:
    """One place of the input."""
    kind = cast(Any, type(value))
    if shape.open or (kind is not dict and kind is not list):
        return value
    if shape.fields is not None:
        return object_against(value, shape, shape.fields, shorten=shorten) if kind is dict else emptied(value)
    if shape.items is None or shape.array is not (kind is list):
        return emptied(value)
    members: dict[Any, Any] = value if kind is dict else dict(zip(count(), value))
    if shape.most is not None and len(members) > shape.most:
        if not shorten:
            raise TooMuch("too_long", value, shape.most)
        few = dict.fromkeys(islice(members, shape.most + 1))
        return few if kind is dict else list(few.values())
    changed = members_against(members, shape.items, shorten=shorten)
    if not changed:
        return value
    members = {**members, **changed}
    return members if kind is dict else list(members.values())


def emptied(value: Any) -> Any:
    """An array or object where none belongs: nothing of it is looked at but what it is. A small one stays, for its depth to be seen."""
    seen, containers = 0, [value]
    while containers:
        each = containers.pop()
        seen += len(each)
        if seen > FEW:
            return {} if isinstance(value, dict) else []
        members: Any = list(cast("dict[str, Any]", each).values()) if isinstance(each, dict) else each
        containers += [member for member in members if isinstance(member, dict | list)]
    return value


def object_against(value: Mapping[str, Any], shape: Shape, fields: Mapping[str, Shape], *, shorten: bool) -> Mapping[str, Any]:
    """An object of a model."""
    if len(value) > len(fields) + SLACK:
        unknown = (name for name in value if name not in fields)
        if shape.closed and not shorten:
            name = next(unknown)
            raise TooMuch("extra_forbidden", value[name]).inside(name)
        few = set(islice(unknown, len(fields) + SLACK + 1)) if shape.closed else ()
        value = {name: member for name, member in value.items() if name in fields or name in few}
    changed: dict[Any, Any] = {}
    for name, member in value.items():
        if type(member) is dict or type(member) is list:
            inner: dict[Any, Any] = {name: member}
            changed |= members_against(inner, fields.get(name, SCALAR), shorten=shorten)
    return {**value, **changed} if changed else value


def members_against(members: Mapping[Any, Any], shape: Shape, *, shorten: bool) -> dict[Any, Any]:
    """The members of one shape that do not fit, each as small as it needs to be."""
    changed: dict[Any, Any] = {}
    for name, member in members.items():
        if type(member) is dict or type(member) is list:
            try:
                smaller = held_against(member, shape, shorten=shorten)
            except TooMuch as problem:
                raise problem.inside(name) from None
            if smaller is not member:
                changed[name] = smaller
    return changed
