"""Which input comes from the path, the query, a header or the body; prepared once per operation.

Some clients name every argument of a tool and send null for what they leave out: null where a field is optional is absent.
"""

import re
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, Union, cast, get_args, get_origin
from urllib.parse import parse_qsl

import orjson
from pydantic import BaseModel
from pydantic_core import ValidationError

from registry import guard, validation_errors
from registry.characters import printable_text
from registry.errors import BadRequest
from registry.input_bounds import InputTooLarge, bound_value, model_bounds
from registry.operation import Input, Operation, field_spellings
from registry.validation_errors import models_in_type

InputT = TypeVar("InputT", bound=Input)
PATH_SEGMENT = re.compile(r"\{(\w+)\}")
QUERY_INTEGER = re.compile(r"-?[0-9]{1,17}", re.ASCII)
QUERY_NUMBER = re.compile(r"-?[0-9]{1,17}(\.[0-9]{1,17})?", re.ASCII)
QUERY_FIELDS_LIMIT = 100


def text_kind(annotation: Any) -> str:
    """What a text from a path or query is turned into before validation: int, float, bool, list or str."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return text_kind(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [a for a in get_args(annotation) if a is not type(None)]
        return text_kind(members[0]) if len(members) == 1 else "str"
    if origin in (list, tuple):
        return "list"
    return {int: "int", float: "float", bool: "bool"}.get(annotation, "str")


def input_headers(operation: Operation[Any, Any]) -> dict[str, str]:
    """What comes as a header and is often sent as a field, by the letters of its name."""
    found = {"confirmtoken": "X-Confirm-Token"} if operation.confirmable else {}
    return found if operation.once is None else found | {"idempotencykey": operation.once.header}


def read_pairs(text: str, most: int) -> list[tuple[str, str]]:
    """Names and values of a query or a form, in their order. ValueError: it is none in UTF-8, or has more than `most` of them."""
    return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=most)


class Binding(Generic[InputT]):
    """How one operation reads its input, whatever the door."""

    def __init__(self, operation: Operation[InputT, Any]) -> None:
        model = operation.params
        self._model: type[InputT] = model
        self.path_names: tuple[str, ...] = tuple(PATH_SEGMENT.findall(operation.path))
        fields = model.model_fields
        self.kinds: dict[str, str] = {word: text_kind(fields[name].annotation) for word, name in field_spellings(model).items()}
        missing = [name for name in self.path_names if name not in self.kinds]
        if missing:
            raise TypeError(f"{operation.id}: the path names {missing}, which {model.__name__} does not have")
        self.in_query: bool = operation.method in ("GET", "DELETE")
        self.has_body: bool = not self.in_query
        self._headers: dict[str, str] = input_headers(operation)
        self._validate: Any = None

    def gather(self, path: Mapping[str, str], query: str, body: bytes) -> bytes:
        """The JSON of the whole input of an HTTP request; path parameters win by construction, since they are not body fields."""
        if self.has_body:
            if query:
                raise self._no_query(query)
            values = self._object(body)
            bounded = self.bounded_values(values)
            if not self.path_names and body:
                return body if bounded is values else orjson.dumps(bounded)
            values = dict(bounded)
        else:
            values = self._query(query)
            self.bounded_values(values)
        for name in self.path_names:
            if name in values:
                raise BadRequest(f"{name}: unknown field; it is part of the path", code="unknown_field", param=name, hint="Remove it")
            guard.check_json_string(path[name])
            values[name] = self._convert(name, path[name])
        return orjson.dumps(values)

    def arguments(self, values: Mapping[str, Any]) -> bytes:
        """The JSON of the whole input of a tool or command line call."""
        bounded = self.bounded_values(dict(values))
        guard.check_json_value(bounded)
        raw = orjson.dumps(bounded)
        # Choice: here null is absent for an optional field, at every door that is no HTTP. There OpenAPI says which fields take null.
        return orjson.dumps(without_nulls(self._model, bounded)) if b"null" in raw else raw

    def bounded_values(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values, or smaller ones that are refused with the same words; many unknown fields and lists that are too long end here."""
        try:
            return bound_value(values, model_bounds(self._model), shorten=False)
        except InputTooLarge as problem:
            raise validation_errors.refuse_too_large(self._model, problem, self._headers) from None

    def validate(self, raw: bytes) -> InputT:
        """The typed input, or a BadRequest that teaches."""
        if self._validate is None:
            self._model.model_rebuild()
            self._validate = self._model.__pydantic_validator__.validate_json
        try:
            return self._validate(raw)
        except ValidationError as error:
            details = error.errors(include_url=False)
            if not any(isinstance(detail["input"], float) for detail in details):
                raise validation_errors.refuse_first_problem(self._model, details, self._headers) from None
        try:
            return self._validate(orjson.dumps(guard.parse_whole_numbers(raw)))
        except ValidationError as error:
            raise validation_errors.refuse_input(self._model, error, self._headers) from None

    def _no_query(self, query: str) -> BadRequest:
        for part in query.split("&"):
            header = validation_errors.find_meant_header(name := part.partition("=")[0], self._headers)
            if header is not None:
                return validation_errors.refuse_header_as_field(printable_text(name[:80]), header)
        return BadRequest("This operation takes no query parameters", code="unknown_field", hint="Send the fields in the JSON body")

    def _object(self, body: bytes) -> dict[str, Any]:
        if not body:
            return {}
        value = guard.parse_json(body)
        if not isinstance(value, dict):
            raise BadRequest("The body must be a JSON object", code="invalid_json")
        return value  # pyright: ignore[reportUnknownVariableType]  # JSON: the validator gives it its types

    def _query(self, query: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if not query:
            return values
        try:
            pairs = read_pairs(query, QUERY_FIELDS_LIMIT)
        except ValueError:
            raise BadRequest("The query string cannot be read", hint="Percent-encode it as UTF-8; at most 100 fields") from None
        for name, text in pairs:
            if self.kinds.get(name) == "list":
                values.setdefault(name, []).extend(text.split(","))
            elif name in values:
                raise BadRequest(f"{name[:80]}: given twice in the query", param=name[:80], hint="Send it once")
            else:
                values[name] = self._convert(name, text)
        guard.check_json_value(values)
        return values

    def _convert(self, name: str, text: str) -> Any:
        kind = self.kinds.get(name, "str")
        if kind == "int" and QUERY_INTEGER.fullmatch(text):
            return int(text)
        if kind == "float" and QUERY_NUMBER.fullmatch(text):
            return float(text)
        if kind == "bool" and text in ("true", "false"):
            return text == "true"
        return text


@lru_cache(maxsize=1024)
def binding_of(operation: Operation[Any, Any]) -> Binding[Any]:
    """How `operation` reads its input, with its validator: made on its first call."""
    return Binding(operation)


ModelClass: TypeAlias = type[BaseModel]


def without_nulls(model: ModelClass, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` without the nulls of optional fields, also those of objects within.

    A null stays where it clears what is set, where the field is required, and where there is no such field: the validator refuses those.
    """
    optional, within = nullable_spellings(model), model_fields_by_spelling(model)
    kept = {name: value for name, value in values.items() if value is not None or name not in optional}
    return kept | {name: without_inner_nulls(within[name], kept[name]) for name in within.keys() & kept.keys()}


def with_defaults(defaults: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool call with the defaults of its declaration, which a null leaves as they are."""
    return {**defaults, **{name: value for name, value in arguments.items() if value is not None or name not in defaults}}


def without_inner_nulls(model: ModelClass, value: Any) -> Any:
    if isinstance(value, dict):
        return without_nulls(model, cast("dict[str, Any]", value))
    return [without_inner_nulls(model, each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def nullable_spellings(model: ModelClass) -> frozenset[str]:
    """Every spelling of the fields for which null says no more than leaving them out."""
    clears = model.null_clears if issubclass(model, Input) else frozenset[str]()
    fields = model.model_fields
    return frozenset(word for word, name in field_spellings(model).items() if not fields[name].is_required() and name not in clears)


@lru_cache(maxsize=1024)
def model_fields_by_spelling(model: ModelClass) -> dict[str, ModelClass]:
    """Every spelling of the fields that hold objects of one kind, with the model of these objects."""
    found = {name: models_in_type(info.annotation) for name, info in model.model_fields.items()}
    return {word: found[name][0] for word, name in field_spellings(model).items() if len(found[name]) == 1}
