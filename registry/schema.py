"""One pydantic model as a JSON schema that is short enough to be read by a model: no titles, no indirections, no null twins."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, TypeAdapter

from registry.free_text import FREE_TEXT_KEYWORD, FreeTextPath, find_free_text, free_text_path, held_free_text
from registry.operation import Operation, shown_field_name

JsonSchema = dict[str, Any]

NESTED_KEYWORDS = ("items", "additionalProperties", "not", "contains", "propertyNames")
LISTED_KEYWORDS = ("anyOf", "allOf", "oneOf", "prefixItems")
NAMED_KEYWORDS = ("properties", "patternProperties")
# Choice: lengths are left out of tool schemas, and so are patterns that only forbid control characters: a model cannot count characters,
# descriptions name the ranges that matter, and the pipeline checks them all. OpenAPI shows everything.
LENGTH_KEYWORDS = ("minLength", "maxLength", "maxItems")
# `_meta` of a result says where it holds free text, and some clients refuse schemas with keywords that they do not know.
UNSHOWN_KEYWORDS = ("title", "discriminator", FREE_TEXT_KEYWORD)
# Choice: bounds that nobody runs into, or that the description names, are left out too: counts, sizes and ids begin at
# 0 or 1, no number reaches a thousand millions, and the description of a text of digits says how many digits it has.
OBVIOUS_MINIMUMS = (0, 1)
HUGE_BOUND = 1_000_000_000
MANY_NUMBERS = 8  # so many numbers are told once, in a description
CONTROL_CHARACTER_PATTERN = "\\x00"
IDEMPOTENCY_KEY_SCHEMA: JsonSchema = {"type": "string", "description": "Same key, one effect: a UUID."}
CONFIRM_TOKEN_SCHEMA: JsonSchema = {"type": "string", "description": "Of the first answer, if the user agrees."}


class OutputSchema(NamedTuple):
    """The schema of an answer whose root is an object; `wrap` is the field a bare array or scalar is put under.

    `free_text`: where the answer may hold text that people or other systems wrote. The schema does not show it.
    """

    schema: JsonSchema
    wrap: str | None
    free_text: tuple[FreeTextPath, ...] = ()

    def free_text_of(self, answer: object) -> tuple[str, ...]:
        """Where `answer`, which is not wrapped yet, holds such text."""
        return held_free_text(answer if self.wrap is None else {self.wrap: answer}, self.free_text) if self.free_text else ()


def input_schema(operation: Operation[Any, Any], defaults: Mapping[str, Any] | None = None) -> JsonSchema:
    """What a tool call takes: the input model, and as extra arguments what HTTP sends as headers."""
    model: type[BaseModel] = operation.params
    raw = model.model_json_schema(by_alias=True, mode="validation")
    compact = SchemaCompactor(raw.pop("$defs", {}), spoken=True)
    schema = compact.of(raw)
    schema.pop("description", None)  # the tool has its own
    properties: JsonSchema = schema.setdefault("properties", {})
    for name in operation.params.null_clears:
        word = shown_field_name(name, operation.params.model_fields[name])
        properties[word] = schema_with_null(properties[word])
    for name, value in (defaults or {}).items():
        properties[name] = {**properties[name], "default": value}
    required: list[str] = schema.pop("required", [])
    once = operation.once
    if once is not None and (once.required or once.shown):
        # Choice: elsewhere an optional key is taken too, but not shown: every definition is read by every model every time. What a schema
        # shows is what a client may rely on; the service takes this one argument more.
        properties["idempotency_key"] = IDEMPOTENCY_KEY_SCHEMA
        required += ["idempotency_key"] if once.required else []
    if operation.confirmable:
        properties["confirm_token"] = CONFIRM_TOKEN_SCHEMA
    tool_schema: JsonSchema = {"type": "object", "properties": properties}
    if required:
        tool_schema["required"] = required
    if schema.get("additionalProperties") is False:
        tool_schema["additionalProperties"] = False
    return {**tool_schema, **compact.recursive_definitions()}


@cache  # a type has one schema, and making it takes longer than most calls
def output_schema(result: Any) -> OutputSchema:
    """What a call answers. Peers up to 2025-11-25 take only objects at the root, so anything else is wrapped."""
    raw = TypeAdapter[Any](result).json_schema(by_alias=True, mode="serialization")
    definitions: JsonSchema = raw.pop("$defs", {})
    compact = SchemaCompactor(definitions, spoken=False)
    schema, free_text = compact.of(raw), find_free_text(raw, definitions)
    if schema.get("type") == "object":
        wrap = None
    elif all(choice.get("type") == "object" for choice in schema.get("anyOf", schema.get("oneOf", [{}]))):
        schema, wrap = {"type": "object", **schema}, None
    else:
        wrap = "data" if schema.get("type") == "array" else "result"
        schema = {"type": "object", "properties": {wrap: schema}, "required": [wrap]}
        free_text = tuple(free_text_path(wrap, *path.steps) for path in free_text)
    return OutputSchema({**schema, **compact.recursive_definitions()}, wrap, free_text)


def list_row_members(operation: Operation[Any, Any]) -> frozenset[str]:
    """The members that the rows of a list's answer are declared with. Slow: it is asked for refusals only."""
    whole = output_schema(operation.result).schema
    lists: list[JsonSchema] = [answer.get("properties", {}).get("data", {}) for answer in whole.get("anyOf", [whole])]
    return frozenset(name for rows in lists for name in rows.get("items", {}).get("properties", {}))


class SchemaCompactor:
    """Rewrites one schema: references are put in place, except where a definition holds itself."""

    def __init__(self, definitions: Mapping[str, JsonSchema], *, spoken: bool) -> None:
        self._definitions = definitions
        self._spoken = spoken
        self._open: list[str] = []
        self._recursive: set[str] = set()

    def of(self, schema: JsonSchema) -> JsonSchema:
        """The schema without titles and, as far as possible, without references."""
        reference = schema.get("$ref")
        if reference is not None:
            return self._resolved(reference.rpartition("/")[2], schema)
        short = {key: self._value(key, value) for key, value in schema.items() if key not in UNSHOWN_KEYWORDS}
        return without_obvious_rules(schema_without_null(short)) if self._spoken else short

    def recursive_definitions(self) -> JsonSchema:
        return {"$defs": {name: self._definition(name) for name in sorted(self._recursive)}} if self._recursive else {}

    def _value(self, key: str, value: Any) -> Any:
        if key in NAMED_KEYWORDS:
            return {name: self.of(part) for name, part in value.items()}
        if key in LISTED_KEYWORDS:
            return [self.of(part) for part in value]
        if key in NESTED_KEYWORDS and isinstance(value, dict):
            return self.of(cast(JsonSchema, value))
        return value

    def _resolved(self, name: str, schema: JsonSchema) -> JsonSchema:
        own = {key: self._value(key, value) for key, value in schema.items() if key not in (*UNSHOWN_KEYWORDS, "$ref")}
        if name in self._open:
            self._recursive.add(name)
            return {"$ref": f"#/$defs/{name}", **own}
        return {**self._definition(name), **own}

    def _definition(self, name: str) -> JsonSchema:
        self._open.append(name)
        try:
            return self.of(self._definitions[name])
        finally:
            self._open.pop()


def without_obvious_rules(schema: JsonSchema) -> JsonSchema:
    """What is left to say of a value, or of an object with free names."""
    description = str(schema.get("description", ""))
    remaining = {key: value for key, value in schema.items() if key not in LENGTH_KEYWORDS and not is_obvious_rule(key, value, description)}
    patterns: JsonSchema = remaining.get("patternProperties", {})
    if len(patterns) == 1 and CONTROL_CHARACTER_PATTERN in next(iter(patterns)):
        remaining["additionalProperties"] = next(iter(remaining.pop("patternProperties").values()))
    return remaining


def is_obvious_rule(key: str, value: Any, description: str) -> bool:
    """A rule that no caller breaks by mistake, or that the description tells; and what a switch is that is not set."""
    if key == "default":
        return value is False
    if key == "pattern":
        return CONTROL_CHARACTER_PATTERN in value or "digits" in description
    if key == "enum":
        return len(value) > MANY_NUMBERS and all(isinstance(each, int) for each in value)
    if key == "maximum":
        return value >= HUGE_BOUND or str(value) in description
    return key == "minimum" and (value in OBVIOUS_MINIMUMS or value <= -HUGE_BOUND)


def schema_with_null(schema: JsonSchema) -> JsonSchema:
    """A field that takes null too, which clears it."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choices}


def schema_without_null(schema: JsonSchema) -> JsonSchema:
    """An optional field once: at these doors null is absent, but for the fields that it clears."""
    choices: list[JsonSchema] | None = schema.get("anyOf")
    if choices is None or "default" not in schema or schema["default"] is not None:
        return schema
    remaining = [choice for choice in choices if choice.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**remaining[0], **rest} if len(remaining) == 1 else {"anyOf": remaining, **rest}
