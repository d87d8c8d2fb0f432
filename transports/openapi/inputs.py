"""The request side of an operation: path, query and header parameters, and the body."""

from registry.binding import SEGMENT
from registry.catalogue import AnyOperation
from transports.openapi.components import Components
from transports.openapi.refusals import has_body
from transports.openapi.schemas import Json, pascal, resolve

KEY_TEXT = (
    "Names this call, so that repeating it has one effect: 1-255 visible ASCII characters, a UUID for example. In quotes (RFC 9651) it is "
    "the same key."
)
TOKEN_TEXT = "The token of the 202 answer to the same call: it executes what the first call only announced. 120 seconds, single use."


def path_names(operation: AnyOperation) -> list[str]:
    """The fields that the path names."""
    return SEGMENT.findall(operation.path)


def parameters(operation: AnyOperation, schema: Json | None, components: Components) -> list[Json]:
    """Everything but the body."""
    found: list[Json] = []
    if schema is not None:
        model = resolve(schema, components.schemas)
        named = path_names(operation)
        for name, field in model["properties"].items():
            if name in named:
                found.append(parameter("path", name, field, required=True, operation=operation))
            elif not has_body(operation):
                found.append(parameter("query", name, field, required=name in model.get("required", []), operation=operation))
    return found + header_parameters(operation, components)


def parameter(place: str, name: str, field: Json, *, required: bool, operation: AnyOperation) -> Json:
    """One path or query parameter; a field that may be null is one that may be left out."""
    field = without_null(field)
    schema = {word: value for word, value in field.items() if word != "description"}
    if schema.get("default", 0) is None:
        del schema["default"]
    made: Json = {"name": name, "in": place, "required": required, "schema": schema}
    if "description" in field:
        made["description"] = field["description"]
    if schema.get("type") == "array":
        made |= {"style": "form", "explode": False}
    for example in operation.examples:
        if name in example.input:
            return made | {"example": example.input[name]}
    return made


def without_null(field: Json) -> Json:
    """The schema of a field's real value."""
    kinds = [kind for kind in field.get("anyOf", []) if kind.get("type") != "null"]
    if len(kinds) != 1:
        return field
    return kinds[0] | {word: value for word, value in field.items() if word != "anyOf"}


def header_parameters(operation: AnyOperation, components: Components) -> list[Json]:
    """Idempotency-Key and X-Confirm-Token, where the operation takes them."""
    found: list[Json] = []
    once = operation.once
    if once is not None:
        name = once.header.replace("-", "") + ("" if once.required else "Option")
        text = f"{KEY_TEXT} `{'Idempotency-Key' if once.alias else 'X-Idempotency-Key'}` is taken too."
        found.append(components.put("parameters", name, header(once.header, text, required=once.required)))
    if operation.confirmable:
        found.append(components.put("parameters", "XConfirmToken", header("X-Confirm-Token", TOKEN_TEXT, required=False)))
    return found


def header(name: str, text: str, *, required: bool) -> Json:
    """A header parameter of visible ASCII."""
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}  # of a key its content: in quotes it may be longer
    return {"name": name, "in": "header", "required": required, "description": text, "schema": schema}


def request_body(operation: AnyOperation, schema: Json | None, components: Components) -> Json | None:
    """The JSON body: the input without the fields that the path names. None when nothing is left."""
    if schema is None or not has_body(operation):
        return None
    model, named = resolve(schema, components.schemas), path_names(operation)
    fields = {name: field for name, field in model["properties"].items() if name not in named}
    if not fields:
        return None
    required = [name for name in model.get("required", []) if name in fields]
    if named:
        rest = {word: value for word, value in model.items() if word not in ("properties", "required")}
        rest |= {"properties": fields} | ({"required": required} if required else {})
        schema = components.put("schemas", pascal(operation.id) + "Body", rest)
    content: Json = {"schema": schema}
    examples = {
        f"example{number}": {"summary": example.title, "value": {n: v for n, v in example.input.items() if n not in named}}
        for number, example in enumerate(operation.examples, 1)
    }
    if examples:
        content["examples"] = examples
    return {"required": bool(required), "content": {"application/json": content}}
