"""The fields that answers are declared with, and those that an answer has."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter

from registry.catalogue import AnyOperation
from registry.schema import JsonSchema, output_schema
from tests.contract.stage import is_document


def of_every(operations: Iterable[AnyOperation]) -> Callable[[Callable[[AnyOperation], None]], Callable[[], None]]:
    """One test of a rule that looks at declarations alone: it names every operation that breaks it, and with what."""

    def of_rule(rule: Callable[[AnyOperation], None]) -> Callable[[], None]:
        def test() -> None:
            broken: list[str] = []
            for operation in operations:
                try:
                    rule(operation)
                except Exception as error:
                    broken.append(f"{operation.id}: {str(error) or type(error).__name__}")
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return of_rule


class DeclaredField(NamedTuple):
    """A field of a declared object. `schema` is that of its values."""

    object: str
    name: str
    schema: JsonSchema

    @property
    def word(self) -> str:
        return f"{self.object}.{self.name}"

    @property
    def description(self) -> str:
        """Its own, and those of the kinds that it may be."""
        kinds = self.schema.get("anyOf", [])
        return " ".join(str(each.get("description", "")) for each in (self.schema, *kinds))


class FieldValue(NamedTuple):
    """A field that an answer has, as it is declared."""

    path: str
    name: str
    schema: JsonSchema
    value: object

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))


@cache
def declared_fields(operation: AnyOperation) -> tuple[DeclaredField, ...]:
    """Every field of every object in the answer of `operation`, by the name of its class."""
    return () if is_document(operation) else tuple(_declared_fields(operation))


def _declared_fields(operation: AnyOperation) -> Iterator[DeclaredField]:
    whole: JsonSchema = TypeAdapter[Any](operation.result).json_schema(by_alias=True, mode="serialization")
    definitions: dict[str, JsonSchema] = {**whole.get("$defs", {}), str(whole.get("title", operation.id)): whole}
    for title, schema in definitions.items():
        for name, field in schema.get("properties", {}).items():
            yield DeclaredField(title, name, field)


def answered_fields(operation: AnyOperation, body: object) -> Iterator[FieldValue]:
    """Every field of an answer's `body` that is declared. Where several kinds of answer declare it, it comes once for each."""
    schema, wrap, _ = output_schema(operation.result)
    yield from _fields(schema, body if wrap is None else {wrap: body}, schema.get("$defs", {}), "")


def _fields(schema: JsonSchema, value: object, definitions: dict[str, JsonSchema], path: str) -> Iterator[FieldValue]:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    for kind in schema.get("anyOf", []):
        yield from _fields(kind, value, definitions, path)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for row in cast("list[object]", value):
            yield from _fields(schema["items"], row, definitions, f"{path}[]")
    if not isinstance(value, dict):
        return
    members, rest = cast("dict[str, object]", value), schema.get("additionalProperties")
    for name, member in members.items():
        field = schema.get("properties", {}).get(name)
        inner = f"{path}.{name}".removeprefix(".")
        if field is not None:
            yield FieldValue(inner, name, field, member)
            yield from _fields(field, member, definitions, inner)
        elif isinstance(rest, dict):
            yield from _fields(cast("JsonSchema", rest), member, definitions, f"{path}.*".removeprefix("."))
