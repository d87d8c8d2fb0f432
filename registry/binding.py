"""Which input comes from the path, the query, a header or the body; prepared once per operation."""

import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl

import orjson
from pydantic_core import ValidationError

from registry import guard, teaching
from registry.errors import BadRequest
from registry.input_shape import TooMuch, fitted, shape_of
from registry.model import Input
from registry.nulls import without_nulls
from registry.operation import Operation
from registry.spelling import spellings

P = TypeVar("P", bound=Input)
SEGMENT = re.compile(r"\{(\w+)\}")
INTEGER = re.compile(r"-?[0-9]{1,17}", re.ASCII)
NUMBER = re.compile(r"-?[0-9]{1,17}(\.[0-9]{1,17})?", re.ASCII)
QUERY_FIELDS = 100


def kind_of(annotation: Any) -> str:
    """What a text from a path or query is turned into before validation: int, float, bool, list or str."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return kind_of(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        members = [a for a in get_args(annotation) if a is not type(None)]
        return kind_of(members[0]) if len(members) == 1 else "str"
    if origin in (list, tuple):
        return "list"
    return {int: "int", float: "float", bool: "bool"}.get(annotation, "str")


def headers_of(operation: Operation[Any, Any]) -> dict[str, str]:
    """What comes as a header and is often sent as a field, by the letters of its name."""
    found = {"confirmtoken": "X-Confirm-Token"} if operation.confirmable else {}
    return found if operation.once is None else found | {"idempotencykey": operation.once.header}


class Binding(Generic[P]):
    """How one operation reads its input, whatever the door."""

    def __init__(self, operation: Operation[P, Any]) -> None:
        model = operation.params
        self._model: type[P] = model
        self.path_names: tuple[str, ...] = tuple(SEGMENT.findall(operation.path))
        fields = model.model_fields
        self.kinds: dict[str, str] = {word: kind_of(fields[name].annotation) for word, name in spellings(model).items()}
        missing = [name for name in self.path_names if name not in self.kinds]
        if missing:
            raise TypeError(f"{operation.id}: the path names {missing}, which {model.__name__} does not have")
        self.in_query: bool = operation.method in ("GET", "DELETE")
        self.has_body: bool = not self.in_query
        self._headers: dict[str, str] = headers_of(operation)
        self._validate: Any = None

    def gather(self, path: Mapping[str, str], query: str, body: bytes) -> bytes:
        """The JSON of the whole input of an HTTP request; path parameters win by construction, since they are not body fields."""
        if self.has_body:
            if query:
                raise self._no_query(query)
            values = self._object(body)
            fit = self.fit(values)
            if not self.path_names and body:
                return body if fit is values else orjson.dumps(fit)
            values = dict(fit)
        else:
            values = self._query(query)
            self.fit(values)
        for name in self.path_names:
            if name in values:
                raise BadRequest(f"{name}: unknown field; it is part of the path", code="unknown_field", param=name, hint="Remove it")
            guard.check_string(path[name])
            values[name] = self._convert(name, path[name])
        return orjson.dumps(values)

    def arguments(self, values: Mapping[str, Any]) -> bytes:
        """The JSON of the whole input of a tool or command line call."""
        fit = self.fit(dict(values))
        guard.check_value(fit)
        raw = orjson.dumps(fit)
        # Choice: here null is absent for an optional field, at every door that is no HTTP. There OpenAPI says which fields take null.
        return orjson.dumps(without_nulls(self._model, fit)) if b"null" in raw else raw

    def fit(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values, or smaller ones that are refused with the same words; many unknown fields and lists that are too long end here."""
        try:
            return fitted(values, shape_of(self._model))
        except TooMuch as problem:
            raise teaching.refuse_excess(self._model, problem, self._headers) from None

    def validate(self, raw: bytes) -> P:
        """The typed input, or a BadRequest that teaches."""
        if self._validate is None:
            self._model.model_rebuild()
            self._validate = self._model.__pydantic_validator__.validate_json
        try:
            return self._validate(raw)
        except ValidationError as error:
            details = error.errors(include_url=False)
            if not any(isinstance(detail["input"], float) for detail in details):
                raise teaching.refuse_first(self._model, details, self._headers) from None
        try:
            return self._validate(orjson.dumps(guard.with_whole_numbers(raw)))
        except ValidationError as error:
            raise teaching.refuse(self._model, error, self._headers) from None

    def _no_query(self, query: str) -> BadRequest:
        for part in query.split("&"):
            header = teaching.header_meant(name := part.partition("=")[0], self._headers)
            if header is not None:
                return teaching.misplaced(teaching.printable(name[:80]), header)
        return BadRequest("This operation takes no query parameters", code="unknown_field", hint="Send the fields in the JSON body")

    def _object(self, body: bytes) -> dict[str, Any]:
        if not body:
            return {}
        value = guard.parse(body)
        if not isinstance(value, dict):
            raise BadRequest("The body must be a JSON object", code="invalid_json")
        return value  # pyright: ignore[reportUnknownVariableType]  # JSON: the validator gives it its types

    def _query(self, query: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if not query:
            return values
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS)
        except (ValueError, UnicodeDecodeError):
            raise BadRequest("The query string cannot be read", hint="Percent-encode it as UTF-8; at most 100 fields") from None
        for name, text in pairs:
            if self.kinds.get(name) == "list":
                values.setdefault(name, []).extend(text.split(","))
            elif name in values:
                raise BadRequest(f"{name[:80]}: given twice in the query", param=name[:80], hint="Send it once")
            else:
                values[name] = self._convert(name, text)
        guard.check_value(values)
        return values

    def _convert(self, name: str, text: str) -> Any:
        kind = self.kinds.get(name, "str")
        if kind == "int" and INTEGER.fullmatch(text):
            return int(text)
        if kind == "float" and NUMBER.fullmatch(text):
            return float(text)
        if kind == "bool" and text in ("true", "false"):
            return text == "true"
        return text
