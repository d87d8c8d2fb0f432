"""Every kind of bad input that an operation's own model rules out, one fault at a time."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from registry.catalogue import AnyOperation
from registry.operation import field_spellings, shown_field_name
from registry.schema import NESTED_KEYWORDS
from tests.contract.stage import Input

Json = dict[str, Any]
# Texts of which a pattern forbids some: blanks, control and line ends, digits of other scripts, right-to-left marks, markup.
TEXTS = ("", " ", "x\n", "1\n", "\x01", "\u0661\u0662\u0663", "\u202e1", "<b>", "a" * 7, "9" * 40, "-1")
# Blanks around these are no part of them.
TRIMMED = {"firstName", "lastName", "company"}
ICCIDS = (
    "8988",
    "8" * 23,
    "9988303000000912345",
    "8988303700000100286\n",
    "8988303700000100286 ",
    "+8988303700000100286",
    "898830300000091234X",
    "\u0668\u0669\u0668\u0668\u0663\u0660\u0663\u0667\u0660\u0660\u0660\u0660\u0660\u0661\u0660\u0660\u0660\u0661\u0663",
    "89883030000009123\u0661\u0663",
    "8988303700000100286;8988303000000912346",
)
WRONG_TEXTS = {"integer": ("x", "1.5", "", " 1", "+1", "1e3", "true", "\u0663", "1\n"), "number": ("x", "", "nan", "inf", "1,5", "0x1")}
WRONG_TEXTS["boolean"] = ("x", "1", "0", "yes", "True", "")
WRONG: Mapping[str, tuple[Any, ...]] = {
    "integer": ("x", "1", 1.5, True, False, [1], {}),
    "number": ("x", "1.5", True, False, [1.5], {}),
    "string": (5, 1.5, True, ["x"], {}),
    "boolean": ("true", 1, 0, [True], {}),
    "array": ("x", 5, True, {}),
    "object": ("x", 5, True, []),
}
BROKEN = (
    b"[]",
    b'"x"',
    b"5",
    b"null",
    b"true",
    b"{",
    b'{"a":1,"a":1}',
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":1e400}',
    b'{"a":1' + b"0" * 30 + b"}",
)


# Ranges that no number of a schema tells.
UNSPOKEN: Mapping[str, tuple[Any, ...]] = {
    **{f"throttlingThreshold{number}Limit": (0, 32, 64, 2048, 129) for number in range(1, 5)},
    "start": ("1999-12-31T00:00:00", "10000-01-01"),
    "end": ("0001-01-01T24:00:00", "99999-01-01"),
}


class Bad(NamedTuple):
    fault: str
    given: Input
    param: str | None


def schema_of(operation: AnyOperation) -> Json:
    schema = operation.params.model_json_schema(by_alias=True)
    return resolved(schema, schema.get("$defs", {}))


def resolved(schema: Json, definitions: Json) -> Json:
    """The schema without references and without the null that an optional field may be."""
    if "$ref" in schema:
        return resolved(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    choices = [choice for choice in schema.get("anyOf", []) if choice.get("type") != "null"]
    if len(choices) == 1:
        return resolved({**choices[0], **{name: value for name, value in schema.items() if name == "description"}}, definitions)
    kept = dict(schema)
    kept["properties"] = {name: resolved(part, definitions) for name, part in schema.get("properties", {}).items()}
    return {**kept, **{name: resolved(schema[name], definitions) for name in NESTED_KEYWORDS if isinstance(schema.get(name), dict)}}


def bad_calls(operation: AnyOperation, given: Input, *, in_query: bool) -> Iterator[Bad]:
    """All of them. In a query every value is a text, so only what a text can get wrong is wrong there."""
    schema, inside = schema_of(operation), set(re.findall(r"\{(\w+)\}", operation.path))
    for name, part in schema["properties"].items():
        texts = in_query or name in inside
        for value in dict.fromkeys(map(Frozen, bad_values(name, part, texts=texts))):
            if name not in inside or value.value != "":  # with nothing in its place the path is another one
                yield Bad(f"{name}={value.value!r}"[:120], {**given, name: value.value}, name)
    for name in schema.get("required", []):
        if name not in inside:
            yield Bad(f"without {name}", {other: value for other, value in given.items() if other != name}, name)
    for name, info in operation.params.model_fields.items():
        documented = shown_field_name(name, info)
        for word, field in field_spellings(operation.params).items():
            if field == name and word != documented:
                value = given.get(documented, 1)
                yield Bad(f"{documented} and {word}", {**given, documented: value, word: value}, word)
    for word in ("surprise", "surpriseField", "surprise_field"):
        yield Bad(f"the unknown field {word}", {**given, word: "x"}, word)


class Frozen:
    """A JSON value that can be told from others: 1, 1.0 and true are three."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


def bad_values(name: str, schema: Json, *, texts: bool) -> Iterator[Any]:
    """What a field's own schema rules out."""
    kind = schema.get("type", "")
    yield from UNSPOKEN.get(name, ())
    yield from (WRONG_TEXTS if texts else WRONG).get(kind, ())
    if kind in ("integer", "number"):
        yield from bad_numbers(schema)
    elif kind == "string":
        yield from bad_strings(name, schema)
    elif kind == "array":
        yield from bad_arrays(schema, texts=texts)
    elif kind == "object" and not texts:
        yield from ({"surprise": 1},) if schema.get("additionalProperties") is False else ()


def bad_numbers(schema: Json) -> Iterator[int | float]:
    """Just outside the range, and far outside."""
    if "minimum" in schema:
        yield from (schema["minimum"] - 1, -(2**53) + 1)
    if "maximum" in schema and schema["maximum"] < 2**53 - 1:
        yield from (schema["maximum"] + 1, 2**53 - 1)
    if "exclusiveMinimum" in schema:
        yield schema["exclusiveMinimum"]
    if "exclusiveMaximum" in schema:
        yield schema["exclusiveMaximum"]


def bad_strings(name: str, schema: Json) -> Iterator[str]:
    """Too long, not in the list, no date, and what the pattern does not allow."""
    if name == "iccid" and schema.get("pattern", "").startswith("^89"):
        yield from (text for text in ICCIDS if text != "8988" or "{16,20}" in schema["pattern"])
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if "enum" in schema:
        yield from ("nonsense", "")
    if schema.get("format") in ("date", "date-time"):
        yield from ("soon", "2027-13-45", "", "0", "2027-02-30T00:00:00Z")
    pattern = schema.get("pattern")
    if pattern is not None:
        strict = re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII)
        yield from (text for text in TEXTS if not strict.search(text.strip() if name in TRIMMED else text))


def bad_arrays(schema: Json, *, texts: bool) -> Iterator[list[Any]]:
    """Too few, too many, and one that is wrong."""
    items = schema.get("items", {})
    wrong = next(bad_values("", items, texts=texts), None)
    if wrong is not None:
        yield [wrong]
    if "maxItems" in schema and schema["maxItems"] <= 100:
        yield ["ok"] * (schema["maxItems"] + 1)
    if schema.get("minItems") and not texts:
        yield []
