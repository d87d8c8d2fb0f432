"""Checks answers against what the official library declares of its objects: every attribute that must be there is, with its type."""

import sys
import typing
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from types import NoneType
from typing import Any, ForwardRef, Literal, get_args, get_origin

from stripe._list_object import ListObject
from stripe._object_classes import get_object_class
from stripe._stripe_object import StripeObject, UntypedStripeObject

LATE = {  # imported for type checkers only
    "ListObject": ListObject,
    "StripeObject": StripeObject,
    "UntypedStripeObject": UntypedStripeObject,
}


def complaints(value: Mapping[str, Any], where: str = "") -> list[str]:
    """What the library's own class of this object has against it. Of what was deleted, only that is left to say."""
    if value.get("deleted") is True:
        return [] if set(value) == {"id", "object", "deleted"} else [f"{where}: it was deleted"]
    kind = get_object_class("V1", str(value.get("object")))
    if kind is StripeObject:
        return [f"{where or '.'}: the library knows no object {value.get('object')!r}"]
    return against(kind, value, where or str(value["object"]))


def against(kind: type, value: Mapping[str, Any], where: str) -> list[str]:
    """Members that miss, that nobody declares, or whose type is another."""
    hints = declared(kind)
    found = [f"{where}.{name}: not declared by {kind.__qualname__}" for name in value if name not in hints]
    for name, hint in hints.items():
        if name in value:
            found += of_type(hint, value[name], f"{where}.{name}", kind)
        elif not optional(hint):
            found.append(f"{where}.{name}: missing")
    return found


@cache
def declared(kind: type) -> dict[str, Any]:
    """A class's attributes with their types; names of type checkers' imports are looked up in the library."""
    space = {**vars(typing), **LATE, **vars(sys.modules[kind.__module__]), **nested(kind)}
    hints: dict[str, Any] = {}
    for owner in reversed(kind.__mro__):
        if issubclass(owner, StripeObject) and owner not in (StripeObject, ListObject) and not owner.__module__.endswith("_api_resource"):
            for name, hint in vars(owner).get("__annotations__", {}).items():
                if not name.startswith("_") and "ClassVar" not in str(hint):
                    hints[name] = eval(hint, space) if isinstance(hint, str) else hint
    if issubclass(kind, ListObject):
        hints = {"object": Literal["list"], "data": list, "has_more": bool, "url": str, "total_count": int | None}
    return hints


def nested(kind: type) -> dict[str, Any]:
    """Classes in a class, and in those around it."""
    names: dict[str, Any] = {}
    holder: Any = sys.modules[kind.__module__]
    for step in kind.__qualname__.split("."):
        holder = getattr(holder, step)
        names |= {name: one for name, one in vars(holder).items() if isinstance(one, type)}
    return names


def optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def of_type(hint: Any, value: Any, where: str, kind: type) -> list[str]:
    if isinstance(hint, ForwardRef):
        return of_type(hint.__forward_arg__, value, where, kind)
    if isinstance(hint, str):
        return by_name(hint, value, where)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return [] if value in parts and type(value) in {type(one) for one in parts} else [f"{where}: {value!r} is none of {parts}"]
    if origin in (list, dict):
        return many(origin, parts, value, where, kind)
    if isinstance(origin, type) and issubclass(origin, StripeObject):
        return of_group(origin, parts, value, where, kind)
    if parts:
        return one_of(parts, value, where, kind)
    return plain(hint, value, where)


def one_of(parts: tuple[Any, ...], value: Any, where: str, kind: type) -> list[str]:
    """A union: one of its types will do. Open enumerations are taken at their word: only what they name is fine."""
    names = [part for part in parts if get_origin(part) is Literal]
    if isinstance(value, str) and names and str in parts:
        parts = tuple(part for part in parts if part is not str)
    tried = [of_type(part, value, where, kind) for part in parts]
    if any(not found for found in tried):
        return []
    detailed = [found for part, found in zip(parts, tried, strict=True) if isinstance(value, dict) and part not in (str, NoneType)]
    return min(detailed or tried, key=len)


def many(origin: type, parts: tuple[Any, ...], value: Any, where: str, kind: type) -> list[str]:
    if not isinstance(value, origin):
        return [f"{where}: {type(value).__name__}, not {origin.__name__}"]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [one for place, item in items for one in (of_type(parts[-1], item, f"{where}[{place}]", kind) if parts else [])]


def of_group(origin: type, parts: tuple[Any, ...], value: Any, where: str, kind: type) -> list[str]:
    """A list of objects, or a group of free names."""
    if not isinstance(value, dict):
        return [f"{where}: {type(value).__name__}, not a group"]
    if issubclass(origin, UntypedStripeObject):
        return [] if parts == (Any,) else many(dict, parts, value, where, kind)
    found = against(ListObject, value, where)
    return found + [one for place, item in enumerate(value.get("data", [])) for one in complaints(item, f"{where}.data[{place}]")]


def by_name(name: str, value: Any, where: str) -> list[str]:
    """An object of the library, whole: its own `object` says which."""
    return complaints(value, where) if isinstance(value, dict) and "object" in value else [f"{where}: {type(value).__name__}, not {name}"]


def plain(hint: Any, value: Any, where: str) -> list[str]:
    if hint is Any:
        return []
    if hint is NoneType or hint is None:
        return [] if value is None else [f"{where}: {value!r} is not null"]
    if hint is float:
        return [] if type(value) in (int, float) else [f"{where}: {value!r} is no number"]
    if hint is Decimal:
        return [] if is_decimal(value) else [f"{where}: {value!r} is no decimal text"]
    if isinstance(hint, type) and issubclass(hint, StripeObject):
        return against(hint, value, where) if isinstance(value, dict) else [f"{where}: {value!r} is no {hint.__qualname__}"]
    return [] if type(value) is hint else [f"{where}: {value!r} is no {getattr(hint, '__name__', hint)}"]


def is_decimal(value: Any) -> bool:
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False
