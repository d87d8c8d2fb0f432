"""What every tool of the service says of itself: title, hints, and what its arguments may be."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from operations.catalogue import CATALOGUE
from operations.intelligence.schedules import Composite
from registry.binding import Binding
from registry.catalogue import AnyOperation
from registry.errors import BadRequest, ProviderError
from registry.operation import Input, shown_field_name
from registry.policy import input_digest
from tests.mcp.tool_sizes import tool_json
from transports.mcp.tools import is_tool, tool_definition

TOOLS = [operation for operation in CATALOGUE.operations.values() if is_tool(operation)]
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
OPEN = {  # asks somebody outside, and can do without the answer
    "list_connectivity_plans": "the live catalogue, where the organisation is connected",
    **dict.fromkeys(
        ("list_connectivity_products", "create_connectivity_product", "get_connectivity_product"),
        "the templates, where the organisation is connected",
    ),
    **dict.fromkeys(("get_storefront", "upsert_storefront_plan", "update_storefront_plan"), "the templates of its plans"),
    "apply_changes": "the charging system, by the worker",
    "retry_connectivity_event": "the receivers",
    "send_test_event": "the receiver",
    "replay_failed_deliveries": "the receivers",
    "ai_insights": "the model",
    "onboarding_start_managed_account": "the charging system",
    "onboarding_test_esim": "the charging system",
    "run_intelligence_schedule": "the charging system, by the worker",
}


def test_every_tool_has_a_title_and_says_all_four_hints() -> None:
    for operation in TOOLS:
        said: dict[str, Any] = tool_json(tool_definition(operation))
        assert said["title"] and said["title"] != operation.id
        assert said["annotations"].keys() == HINTS and all(isinstance(hint, bool) for hint in said["annotations"].values()), operation.id


def test_the_hints_are_those_of_the_declaration() -> None:
    for operation in TOOLS:
        hints: dict[str, Any] = tool_json(tool_definition(operation))["annotations"]  # pyright: ignore[reportAssignmentType]  # JSON
        if hints["readOnlyHint"]:
            assert not operation.confirm and not hints["destructiveHint"] and hints["idempotentHint"], operation.id
        if operation.confirm or operation.method == "DELETE":
            assert hints["destructiveHint"], operation.id
        if operation.once is not None and operation.once.required:
            assert hints["idempotentHint"], operation.id
        asks = operation.provided or any(issubclass(each, ProviderError) for each in operation.raises)
        assert hints["openWorldHint"] == (asks or operation.id in OPEN), operation.id


def test_what_adds_at_every_call_is_not_called_idempotent() -> None:
    adds = {operation.id for operation in TOOLS if not operation.repeatable}
    assert {"send_sms", "assign_package", "modify_account_balance", "modify_subscriber_balance", "create_invoice"} <= adds
    assert not adds & {"create_connectivity_intent", "modify_subscriber_status", "update_storefront", "void_invoice"}


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a schema, with the path to it."""
    if "object" in str(schema.get("type")) or "properties" in schema:
        yield path, schema
    parts = [*schema.get("anyOf", []), schema.get("items"), schema.get("additionalProperties")]
    for part in parts:
        if isinstance(part, dict):
            yield from objects(part, path)
    for name, part in schema.get("properties", {}).items():
        yield from objects(part, f"{path}.{name}")


def test_unknown_arguments_are_refused_by_the_schema_as_by_the_service() -> None:
    open_objects = {
        (operation.id, path)
        for operation in TOOLS
        for path, found in objects(tool_definition(operation).input_schema)
        if found.get("additionalProperties") is not False
    }
    assert open_objects == {
        ("create_connectivity_intent", ".metadata"),  # a map of the caller's own names
        ("create_api_key", ".restrictions.times"),  # of operations, which the service knows
    }


def test_the_values_of_free_maps_are_of_one_kind() -> None:
    metadata = tool_definition(CATALOGUE.operations["create_connectivity_intent"]).input_schema["properties"]["metadata"]
    assert metadata["additionalProperties"] == {"type": "string"}
    restrictions = tool_definition(CATALOGUE.operations["create_api_key"]).input_schema["properties"]["restrictions"]
    (times,) = [part for path, part in objects(restrictions) if path == ".times"]
    assert times["additionalProperties"]["type"] == "integer"


def test_the_input_of_a_schedule_has_the_fields_of_its_composites() -> None:
    said = tool_definition(CATALOGUE.operations["create_intelligence_schedule"]).input_schema["properties"]["input"]
    models = [CATALOGUE.operations[name].params for name in get_args(Composite)]
    fields = {shown_field_name(name, info) for model in models for name, info in model.model_fields.items()}
    assert said["properties"].keys() == fields - {"starting_after"}


def optional_of(model: type[Input]) -> dict[str, bool]:
    """The optional fields of a tool by the name that is shown, and whether null clears them."""
    fields = model.model_fields
    return {shown_field_name(name, info): name in model.null_clears for name, info in fields.items() if not info.is_required()}


def canonical(operation: AnyOperation, given: dict[str, Any]) -> bytes:
    """What makes two calls of a tool the same."""
    binding = Binding(operation)
    return input_digest(binding.validate(binding.arguments(given)))


def test_null_is_in_the_schema_of_an_optional_argument_where_it_clears_and_is_absent_elsewhere() -> None:
    for operation in TOOLS:
        properties = tool_definition(operation).input_schema["properties"]
        optional = optional_of(operation.params)
        for name, clears in optional.items():
            assert Draft202012Validator(properties[name]).is_valid(None) is clears, (operation.id, name)
        example = dict(operation.examples[0].input)
        absent = [name for name, clears in optional.items() if not clears and name not in example]
        assert canonical(operation, example) == canonical(operation, example | dict.fromkeys(absent)), operation.id


def test_a_null_that_clears_makes_another_call() -> None:
    for operation in TOOLS:
        for name in operation.params.null_clears:
            word = shown_field_name(name, operation.params.model_fields[name])
            given = {each: value for each, value in operation.examples[0].input.items() if each != word}
            assert canonical(operation, given) != canonical(operation, {**given, word: None}), (operation.id, name)


def test_null_within_an_object_is_absent_too() -> None:
    record = {"id": "c1", "iccid": "8988303700000100286", "occurred_at": 1795166400, "bytes_up": 1, "bytes_down": 2}
    operation = CATALOGUE.operations["ingest_cdr_events"]
    assert canonical(operation, {"events": [record]}) == canonical(operation, {"events": [{**record, "network": None, "country": None}]})


@pytest.mark.parametrize(("given", "text"), [({"iccid": None}, "got null"), ({"colour": None}, "colour: unknown field")])
def test_null_for_what_is_needed_or_unknown_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        canonical(CATALOGUE.operations["get_subscriber"], given)
