"""Text that people or other systems wrote: its fields are marked, and a tool result says in which of them it has some."""

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from registry.catalogue import AnyOperation
from registry.free_text import FREE_TEXT_KEYWORD, has_free_text
from registry.schema import JsonSchema
from tests.contract.declared import declared_fields
from tests.contract.stage import NEVER, OPERATIONS, ServiceHouse, key_for
from tests.draw import drawn
from transports.mcp.calls import FREE_TEXT_META_KEY

WORDS = re.compile(
    r"name|note|e-?mail|company|comment|text|subject|title|label|author|description|reason|warning|message|tagline|organi[sz]ation$",
    re.IGNORECASE,
)
"""What a field of free text is called, or its description says."""
OURS, CODE, REFERENCE = "a text of ours", "an id, or a word of a closed list", "reference data, the same for everybody"
INTELLIGENCE = "cells of reports, most of them words and numbers: a sheet says of each column what kind it is"
UNMARKED: dict[str, str] = {
    **dict.fromkeys(("Effective.note", "NumberChanged.note", "PaymentBalance.note", "FleetHealth.notes"), OURS),
    **dict.fromkeys(("IntentError.message", "IssuanceError.message", "OrderError.message", "LineItem.description"), OURS),
    **dict.fromkeys(("SimStatusChanged.warning", "SteeringPushed.warning", "Incomplete.reasons", "LineAtRisk.reasons"), OURS),
    **dict.fromkeys(("ChangeRowView.reason", "PlanWarning.message", "KeyWarning.message"), OURS),
    **dict.fromkeys(("MeasuredFigure.name", "MeasuredFigure.unit", "Factor.name"), OURS),
    **dict.fromkeys(
        ("CommissionOfMonth.organization", "LineBar.notes", "Loss.kind", "Order.id", "Order.number", "TopUpCheckout.order"), CODE
    ),
    **dict.fromkeys(("AccountStatus.currently_due", "FraudValueList.item_type", "FraudReview.reason", "DisputeRecord.reason"), CODE),
    **dict.fromkeys(("RefundRecord.reason", "RefundRecord.failure_reason", "Identity.organisation", "LimitUse.key"), CODE),
    **dict.fromkeys(("Country.countryName", "Operator.countryName", "CountryQuantity.name", "TariffCurrency.currencyname"), REFERENCE),
    **dict.fromkeys(("Sheet.title", "Chart.title", "Table.title", "Table.note"), INTELLIGENCE),
    **dict.fromkeys(("Column.label", "Figure.label", "Series.label"), INTELLIGENCE),
}
"""Fields that look like free text and are not marked, and why."""


def marked_paths(schema: JsonSchema, value: object, definitions: dict[str, JsonSchema], path: str = "") -> Iterator[str]:
    """Where `value` has a text that its schema marks: read from the schema as pydantic makes it, without the code that is tested."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if schema.get(FREE_TEXT_KEYWORD) and isinstance(value, str) and value:
        yield path
    for kind in schema.get("anyOf", []):
        yield from marked_paths(kind, value, definitions, path)
    if isinstance(value, list):
        for row in cast("list[object]", value):
            yield from marked_paths(schema.get("items", {}), row, definitions, f"{path}[]")
    if isinstance(value, dict):
        rest = schema.get("additionalProperties")
        for name, member in cast("dict[str, object]", value).items():
            if name in schema.get("properties", {}):
                yield from marked_paths(schema["properties"][name], member, definitions, f"{path}.{name}".removeprefix("."))
            elif isinstance(rest, dict):
                yield from marked_paths(cast("JsonSchema", rest), member, definitions, f"{path}.*".removeprefix("."))


def expected(operation: AnyOperation, body: object) -> set[str]:
    whole: JsonSchema = TypeAdapter[Any](operation.result).json_schema(by_alias=True, mode="serialization")
    return set(marked_paths(whole, body, whole.get("$defs", {})))


def is_marked(operation: AnyOperation) -> bool:
    return any(has_free_text(field.schema) for field in declared_fields(operation))


TOOLS = [o for o in drawn([o for o in OPERATIONS if o.tool and o.id not in NEVER], __file__) if is_marked(o)]
CALLED = [pytest.param(o, number, id=f"{o.id}-{number}") for o in TOOLS for number in range(len(o.examples))]


@pytest.mark.parametrize(("operation", "number"), CALLED)
async def test_a_tool_result_says_where_it_has_free_text(house: ServiceHouse, operation: AnyOperation, number: int) -> None:
    stage = await house.stage(operation)
    given = {**operation.tool_defaults, **stage.fitted(operation, operation.examples[number].input)}
    said = await house.mcp(operation, house.credential(operation, stage), given, key=key_for(operation), sure=True)
    assert said.status == 200, said.body
    told = said.meta.get(FREE_TEXT_META_KEY, [])
    assert (set(told), len(told)) == (expected(operation, said.body), len(set(told)))
    assert FREE_TEXT_META_KEY not in said.meta or told, "a result without any does not speak of it"


def test_most_examples_of_operations_with_marked_fields_show_one() -> None:
    marked = list(filter(is_marked, OPERATIONS))
    shown = {o.id for o in marked for example in o.examples if expected(o, example.answer)}
    assert len(shown) > 0.8 * len(marked), "the test above would prove little"


def test_a_field_that_sounds_like_free_text_is_marked_or_has_a_reason() -> None:
    found = {
        field.word: has_free_text(field.schema)
        for operation in OPERATIONS
        for field in declared_fields(operation)
        if holds_text(field.schema) and (WORDS.search(field.name) or WORDS.search(field.description))
    }
    assert {word for word, marked in found.items() if not marked} == UNMARKED.keys()


def holds_text(schema: JsonSchema) -> bool:
    """Whether a value may be a text that no list of words closes."""
    if "const" in schema or "enum" in schema:
        return False
    parts = (*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties"))
    return schema.get("type") == "string" or any(isinstance(part, dict) and holds_text(cast("JsonSchema", part)) for part in parts)
