"""Null where a field is optional. Some clients name every argument of a tool and send null for what they leave out."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from registry.model import Input
from registry.spelling import spellings
from registry.teaching import models_in

Model: TypeAlias = type[BaseModel]


def without_nulls(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` without the nulls of optional fields, also those of objects within.

    A null stays where it clears what is set, where the field is required, and where there is no such field: the validator refuses those.
    """
    optional, within = optional_fields(model), fields_with_models(model)
    kept = {name: value for name, value in values.items() if value is not None or name not in optional}
    return kept | {name: inner(within[name], kept[name]) for name in within.keys() & kept.keys()}


def with_defaults(defaults: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool call with the defaults of its declaration, which a null leaves as they are."""
    return {**defaults, **{name: value for name, value in arguments.items() if value is not None or name not in defaults}}


def inner(model: Model, value: Any) -> Any:
    """The same for an object, or for those of a list."""
    if isinstance(value, dict):
        return without_nulls(model, cast("dict[str, Any]", value))
    return [inner(model, each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def optional_fields(model: Model) -> frozenset[str]:
    """Every spelling of the fields for which null says no more than leaving them out."""
    clears = model.null_clears if issubclass(model, Input) else frozenset[str]()
    fields = model.model_fields
    return frozenset(word for word, name in spellings(model).items() if not fields[name].is_required() and name not in clears)


@lru_cache(maxsize=1024)
def fields_with_models(model: Model) -> dict[str, Model]:
    """Every spelling of the fields that hold objects of one kind, with the model of these objects."""
    found = {name: models_in(info.annotation) for name, info in model.model_fields.items()}
    return {word: found[name][0] for word, name in spellings(model).items() if len(found[name]) == 1}
