"""Types as JSON schemas with clean names, and the components of the document: each is written once, whatever points to it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, cast

import orjson
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

OpenapiJson: TypeAlias = JsonSchemaValue
SchemaMode: TypeAlias = Literal["validation", "serialization"]
SchemaRequest: TypeAlias = tuple[str, SchemaMode, TypeAdapter[object]]

_SCHEMA_PREFIX = "#/components/schemas/"
_MOST_OF_32_BITS = 2**31
_SCHEMA_NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
_SCHEMA_REFERENCE = re.compile(rf'"{re.escape(_SCHEMA_PREFIX)}([A-Za-z0-9]+)"', re.ASCII)
_NAME_WORDS = re.compile(r"[A-Za-z0-9]+", re.ASCII)


class PlainSchema(GenerateJsonSchema):
    """Pydantic's schemas without the titles that only repeat a name, and with the names people would give."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Never: the field's name says it."""
        del schema
        return False

    def normalize_name(self, name: str) -> str:
        """`ListOf[Plan]` becomes PlanList, `QuotaExceededBody` becomes QuotaExceeded; names with their module stay as they are."""
        return super().normalize_name(name) if "." in name else clean_schema_name(name)


def clean_schema_name(name: str) -> str:
    """The words of a possibly generic type's name, the argument first."""
    words = [word.removesuffix("Body") or word for word in _NAME_WORDS.findall(name)]
    words = ["List" if word in ("ListOf", "list") else word for word in words]
    return "".join(word[:1].upper() + word[1:] for word in reversed(words))


def build_schemas(wanted: Sequence[SchemaRequest]) -> tuple[dict[str, OpenapiJson], dict[str, OpenapiJson]]:
    """The schema of each key (usually a reference), and every component the schemas name."""
    keyed, defined = TypeAdapter[object].json_schemas(wanted, ref_template=_SCHEMA_PREFIX + "{model}", schema_generator=PlainSchema)
    components: dict[str, OpenapiJson] = defined.get("$defs", {})
    bad = [name for name in components if not _SCHEMA_NAME.fullmatch(name)]
    if bad:
        raise TypeError(f"two types share a name, so that pydantic calls one of them {bad[0]}: rename it")
    for schema in components.values():
        if isinstance(schema.get("title"), str):
            del schema["title"]
    # `NewIntent` is IntentRequest in the document: generators (Go) call what makes an Intent NewIntent, and one name is not both.
    bare = {name: name.removeprefix("New") for name in components}
    names = {name: f"{made}Request" if made != name and made in components else name for name, made in bare.items()}
    if len(set(names.values())) < len(names):
        raise TypeError("what one schema is called in the document is another one's name: rename it")
    renamed = {names[name]: _with_names(_with_widths(schema), names) for name, schema in components.items()}
    return {key: _with_names(_with_widths(schema), names) for (key, _), schema in keyed.items()}, renamed


def _with_names(schema: OpenapiJson, names: Mapping[str, str]) -> OpenapiJson:
    return orjson.loads(_SCHEMA_REFERENCE.sub(lambda found: f'"{_SCHEMA_PREFIX}{names[found[1]]}"', orjson.dumps(schema).decode()))


def _with_widths(schema: OpenapiJson) -> OpenapiJson:
    """The schema with 64 bits for a number, unless its bounds need fewer: unasked, Go and Java take 32, which bytes and times exceed."""
    made: OpenapiJson = {word: _widened(inner) for word, inner in schema.items()}
    if schema.get("type") == "number":
        return {**made, "format": "double"}
    is_wide = schema.get("type") == "integer" and abs(schema.get("const", schema.get("maximum", _MOST_OF_32_BITS))) >= _MOST_OF_32_BITS
    return {**made, "format": "int64"} if is_wide else made


def _widened(value: object) -> object:
    if isinstance(value, dict):
        return _with_widths(cast(OpenapiJson, value))
    return [_widened(each) for each in cast("list[object]", value)] if isinstance(value, list) else value


def resolve_schema(schema: OpenapiJson, components: dict[str, OpenapiJson]) -> OpenapiJson:
    while "$ref" in schema:
        schema = components[schema["$ref"].removeprefix(_SCHEMA_PREFIX)]
    return schema


def pascal_case(name: str) -> str:
    """create_api_key as CreateApiKey."""
    return "".join(word.capitalize() for word in name.split("_"))


ComponentKind: TypeAlias = str
_COMPONENT_KINDS = ("schemas", "responses", "parameters", "headers", "pathItems")


class Components:
    def __init__(self, schemas: dict[str, OpenapiJson]) -> None:
        self.parts: dict[ComponentKind, dict[str, OpenapiJson]] = {kind: {} for kind in _COMPONENT_KINDS}
        self.parts["schemas"] = schemas

    @property
    def schemas(self) -> dict[str, OpenapiJson]:
        return self.parts["schemas"]

    def put(self, kind: ComponentKind, name: str, value: OpenapiJson) -> OpenapiJson:
        """A reference to a part, which is kept under its name. One name means one thing."""
        if self.parts[kind].setdefault(name, value) != value:
            raise TypeError(f"components/{kind}: two different parts are called {name}")
        return {"$ref": f"#/components/{kind}/{name}"}

    def used(self, document: OpenapiJson) -> OpenapiJson:
        """The parts that the document reaches, sorted by name."""
        reached: set[str] = set()
        waiting = list(schema_references(document))
        while waiting:
            found = waiting.pop()
            if found not in reached:
                reached.add(found)
                kind, name = found.split("/")[2:]
                waiting += schema_references(self.parts[kind][name])
        kept = {kind: {n: parts[n] for n in sorted(parts) if f"#/components/{kind}/{n}" in reached} for kind, parts in self.parts.items()}
        return {kind: parts for kind, parts in kept.items() if parts}


def schema_references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]  # JSON
            if name == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from schema_references(inner)  # pyright: ignore[reportUnknownArgumentType]  # JSON
    elif isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]  # JSON
            yield from schema_references(inner)  # pyright: ignore[reportUnknownArgumentType]  # JSON
