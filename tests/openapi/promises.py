"""What a document promises to its users, as a set of sentences: the larger one keeps every promise of the smaller."""

from collections.abc import Iterator

from transports.openapi.schemas import OpenapiJson

METHODS = ("get", "post", "put", "patch", "delete")


def promises(document: OpenapiJson) -> set[str]:
    return set(all_promises(document))


def all_promises(document: OpenapiJson) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield from operation_promises(document, f"{method.upper()} {path}", methods[method])
    for name, reference in document.get("webhooks", {}).items():
        yield from operation_promises(document, f"webhook {name}", follow(document, reference)["post"])
    for name, schema in document["components"]["schemas"].items():
        yield from schema_promises(f"schema {name}", schema)


def operation_promises(document: OpenapiJson, where: str, made: OpenapiJson) -> Iterator[str]:
    yield f"{where} is {made['operationId']}"
    for parameter in (follow(document, one) for one in made.get("parameters", [])):
        field = f"{where} {parameter['in']} {parameter['name']}"
        yield field
        yield from schema_promises(field, parameter["schema"])
    for media, content in made.get("requestBody", {}).get("content", {}).items():
        yield from schema_promises(f"{where} body {media}", content["schema"])
    for status, reference in made["responses"].items():
        yield f"{where} answers {status}"
        response = follow(document, reference)
        yield from (f"{where} {status} header {name}" for name in response.get("headers", {}))
        for media, content in response.get("content", {}).items():
            yield from schema_promises(f"{where} {status} {media}", content["schema"])
            yield from (f"{where} {status} code {code}" for code in content.get("examples", {}) if status >= "400")


def follow(document: OpenapiJson, value: OpenapiJson) -> OpenapiJson:
    if "$ref" not in value:
        return value
    _, _, kind, name = value["$ref"].split("/")
    found: OpenapiJson = document["components"][kind][name]
    return found


def schema_promises(where: str, schema: OpenapiJson) -> Iterator[str]:
    """Fields, enum values, types; not descriptions and limits, which may be worded and widened anew."""
    yield where
    if "$ref" in schema:
        yield f"{where} is {schema['$ref'].rpartition('/')[2]}"
    if "type" in schema:
        yield f"{where} is {schema['type']}"
    for value in [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]:
        yield f"{where} may be {value}"
    for name, field in schema.get("properties", {}).items():
        yield from schema_promises(f"{where}.{name}", field)
    for choice in [*schema.get("anyOf", []), *schema.get("oneOf", [])]:
        yield from schema_promises(f"{where}?", choice)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from schema_promises(f"{where}[]", schema[word])
