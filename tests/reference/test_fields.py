"""Types and ranges in words."""

import pytest

from transports.openapi.schemas import OpenapiJson
from transports.reference.entries import field_kind, field_rows


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 100}, "integer, 1-100"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 5}, "number, more than 0, at most 5"),
        ({"type": "string", "minLength": 3, "maxLength": 3}, "string, 3 characters"),
        ({"type": "string", "format": "date-time"}, "string, date-time"),
        ({"enum": ["a", "b"], "type": "string"}, "one of a, b"),
        ({"const": True}, "always true"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 5}, "array of string, at most 5 entries"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "object, free keys"),
        ({"type": "null"}, "null"),
        ({"$ref": "#/components/schemas/Lamp"}, "object"),
        ({}, "any value"),
    ],
)
def test_a_type_is_told_with_its_range(schema: OpenapiJson, words: str) -> None:
    assert field_kind(schema, {"Lamp": {"type": "object", "properties": {}}}) == words


def test_the_fields_of_an_object_in_an_array_follow_it() -> None:
    lamp: OpenapiJson = {"type": "object", "properties": {"watts": {"type": "number", "description": "Power."}}, "required": ["watts"]}
    page: OpenapiJson = {"properties": {"data": {"type": "array", "items": {"$ref": "#/components/schemas/Lamp"}}}}
    found = [(row.name, row.kind, row.required, row.text) for row in field_rows(page, {"Lamp": lamp}, "")]
    assert found == [("data", "array of object", False, ""), ("data[].watts", "number", True, "Power.")]


def test_an_object_that_holds_itself_comes_to_an_end() -> None:
    node: OpenapiJson = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    assert [row.name for row in field_rows(node, {"Node": node}, "")][-1] == "next.next.next.next.next"


def test_a_default_is_told_after_the_meaning() -> None:
    model: OpenapiJson = {"properties": {"lit": {"type": "boolean", "default": False, "description": "Whether it is lit."}}}
    assert [row.text for row in field_rows(model, {}, "body")] == ["Whether it is lit. Default: false."]


def test_a_field_that_has_another_name_now_is_said_to_be_deprecated() -> None:
    model: OpenapiJson = {"properties": {"cost": {"type": "number", "deprecated": True, "description": "Same as watts"}}}
    assert [row.text for row in field_rows(model, {}, "")] == ["Deprecated. Same as watts"]
