"""The fields of an input or an answer as rows of a table: name, kind with its range, meaning."""

from collections.abc import Iterator
from dataclasses import dataclass

from transports.openapi.schemas import Json, resolve

DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One field. `place` is path, query, header, body or empty for an answer."""

    name: str
    place: str
    kind: str
    required: bool
    text: str


def rows(model: Json, schemas: dict[str, Json], place: str, prefix: str = "", depth: int = 0) -> Iterator[Row]:
    """The fields of an object and of the objects inside it."""
    model = resolve(model, schemas)
    required = model.get("required", [])
    for name, field in model.get("properties", {}).items():
        yield Row(prefix + name, place, kind(field, schemas), name in required, text(field, schemas))
        inner, mark = inner_object(field, schemas)
        if inner is not None and depth < DEEPEST:
            yield from rows(inner, schemas, place, f"{prefix}{name}{mark}.", depth + 1)


def text(field: Json, schemas: dict[str, Json]) -> str:
    """What the field means, and what it is when it is left out."""
    sources = (field, resolve(field, schemas), *choices(field, schemas))
    told = next((meant for one in sources if (meant := summary(one))), "")
    default: object = field.get("default")
    if default is None or default in ({}, []):
        return told
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{told} Default: {shown}.".strip()


def summary(schema: Json) -> str:
    """The first line of a description."""
    described: str = schema.get("description", "")
    return described.partition("\n")[0]


def choices(field: Json, schemas: dict[str, Json]) -> list[Json]:
    """The kinds a field may have, null left out."""
    field = resolve(field, schemas)
    kinds: list[Json] = [resolve(one, schemas) for one in field.get("anyOf", field.get("oneOf", [field]))]
    return [one for one in kinds if one.get("type") != "null"]


def inner_object(field: Json, schemas: dict[str, Json]) -> tuple[Json | None, str]:
    """The object that a field holds, alone or in an array, when it holds just one kind of it."""
    kinds = choices(field, schemas)
    if len(kinds) != 1:
        return None, ""
    found, mark = kinds[0], ""
    while found.get("type") == "array" and "items" in found:
        found, mark = resolve(found["items"], schemas), mark + "[]"
    return (found, mark) if "properties" in found else (None, "")


def kind(field: Json, schemas: dict[str, Json]) -> str:
    """The type and the range in words."""
    resolved = resolve(field, schemas)
    if "$ref" in field and f"'{field['$ref']}'" in str(resolved):  # what holds itself is JSON that the other side decides upon
        return "any JSON"
    shown = " or ".join(dict.fromkeys(one_kind(one, schemas) for one in choices(field, schemas)))
    nullable = any(one.get("type") == "null" for one in resolved.get("anyOf", []))
    return f"{shown or 'null'} or null" if nullable and shown else shown or "null"


def one_kind(found: Json, schemas: dict[str, Json]) -> str:
    """One type and its range."""
    if "const" in found:
        return f"always {spell(found['const'])}"
    if "enum" in found:
        return "one of " + ", ".join(spell(value) for value in found["enum"])
    name: str = found.get("type", "any value")
    if name == "array":
        return "array of " + kind(found.get("items", {}), schemas) + limits(found, "minItems", "maxItems", " entries")
    if name == "object" and "properties" not in found:
        return "object, free keys" + limits(found, "minProperties", "maxProperties", " entries")
    if name == "string":
        form = f", {found['format']}" if "format" in found else ""
        return "string" + form + limits(found, "minLength", "maxLength", " characters")
    return name + exclusive(found) + limits(found, "minimum", "maximum", "")


def spell(value: object) -> str:
    """A constant as JSON spells it, a text without its quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def limits(found: Json, low: str, high: str, unit: str) -> str:
    """A range in words."""
    least, most = found.get(low), found.get(high)
    if least is not None and most is not None:
        return f", {least}{unit}" if least == most else f", {least}-{most}{unit}"
    if least is not None:
        return f", at least {least}{unit}"
    return "" if most is None else f", at most {most}{unit}"


def exclusive(found: Json) -> str:
    """Bounds that the value may not touch."""
    more = f", more than {found['exclusiveMinimum']}" if "exclusiveMinimum" in found else ""
    return more + (f", less than {found['exclusiveMaximum']}" if "exclusiveMaximum" in found else "")
