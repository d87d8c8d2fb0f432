"""Types as JSON schemas with clean names: one component per type, whatever operation names it."""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Literal, TypeAlias, cast

import orjson
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

Json: TypeAlias = JsonSchemaValue
Mode: TypeAlias = Literal["validation", "serialization"]
Wanted: TypeAlias = tuple[str, Mode, TypeAdapter[object]]

PREFIX = "#/components/schemas/"
MOST_OF_32 = 2**31
NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
REFERENCE = re.compile(rf'"{re.escape(PREFIX)}([A-Za-z0-9]+)"', re.ASCII)
WORDS = re.compile(r"[A-Za-z0-9]+", re.ASCII)


class PlainSchema(GenerateJsonSchema):
    """Pydantic's schemas without the titles that only repeat a name, and with the names people would give."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Never: the field's name says it."""
        del schema
        return False

    def normalize_name(self, name: str) -> str:
        """`ListOf[Plan]` becomes PlanList, `QuotaExceededBody` becomes QuotaExceeded; names with their module stay as they are."""
        return super().normalize_name(name) if "." in name else clean_name(name)


def clean_name(name: str) -> str:
    """The words of a possibly generic type's name, the argument first."""
    words = [word.removesuffix("Body") or word for word in WORDS.findall(name)]
    words = ["List" if word in ("ListOf", "list") else word for word in words]
    return "".join(word[:1].upper() + word[1:] for word in reversed(words))


def schemas_of(wanted: Sequence[Wanted]) -> tuple[dict[str, Json], dict[str, Json]]:
    """The schema of each key (usually a reference), and every component the schemas name."""
    keyed, defined = TypeAdapter[object].json_schemas(wanted, ref_template=PREFIX + "{model}", schema_generator=PlainSchema)
    components: dict[str, Json] = defined.get("$defs", {})
    bad = [name for name in components if not NAME.fullmatch(name)]
    if bad:
        raise TypeError(f"two types share a name, so that pydantic calls one of them {bad[0]}: rename it")
    for schema in components.values():
        if isinstance(schema.get("title"), str):
            del schema["title"]
    names = {name: name_in_document(name, components) for name in components}
    if len(set(names.values())) < len(names):
        raise TypeError("what one schema is called in the document is another one's name: rename it")
    renamed = {names[name]: with_names(with_widths(schema), names) for name, schema in components.items()}
    return {key: with_names(with_widths(schema), names) for (key, _), schema in keyed.items()}, renamed


def name_in_document(name: str, names: Container[str]) -> str:
    """`NewIntent` is IntentRequest in the document: generators (Go) call what makes an Intent NewIntent, and one name is not both."""
    made = name.removeprefix("New")
    return f"{made}Request" if made != name and made in names else name


def with_names(schema: Json, names: Mapping[str, str]) -> Json:
    """The schema with its references to the components as the document calls them."""
    return orjson.loads(REFERENCE.sub(lambda found: f'"{PREFIX}{names[found[1]]}"', orjson.dumps(schema).decode()))


def with_widths(schema: Json) -> Json:
    """The schema with 64 bits for a number, unless its bounds need fewer: unasked, Go and Java take 32, which bytes and times exceed."""
    made: Json = {word: widened(inner) for word, inner in schema.items()}
    if schema.get("type") == "number":
        return {**made, "format": "double"}
    is_wide = schema.get("type") == "integer" and abs(schema.get("const", schema.get("maximum", MOST_OF_32))) >= MOST_OF_32
    return {**made, "format": "int64"} if is_wide else made


def widened(value: object) -> object:
    """The same for whatever a schema holds."""
    if isinstance(value, dict):
        return with_widths(cast(Json, value))
    return [widened(each) for each in cast("list[object]", value)] if isinstance(value, list) else value


def resolve(schema: Json, components: dict[str, Json]) -> Json:
    """What a reference stands for."""
    while "$ref" in schema:
        schema = components[schema["$ref"].removeprefix(PREFIX)]
    return schema


def pascal(name: str) -> str:
    """create_api_key as CreateApiKey."""
    return "".join(word.capitalize() for word in name.split("_"))
