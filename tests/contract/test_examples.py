"""Every documented example runs, answers in the documented shape, and every write settles."""

from typing import Any, get_args

import jsonschema
import pytest
from pydantic import TypeAdapter

from registry.catalogue import AnyOperation
from registry.operation import Auth
from registry.schema import input_schema, output_schema
from tests.contract.stage import OPERATIONS, House, Stage, is_document, key_for

pytestmark = pytest.mark.anyio
EXAMPLES = [pytest.param(o, number, id=f"{o.id}-{number}") for o in OPERATIONS for number in range(len(o.examples))]
WRITES = [pytest.param(o, id=o.id) for o in OPERATIONS if not o.read_only]
ALL = [pytest.param(o, id=o.id) for o in OPERATIONS]


async def run(house: House, operation: AnyOperation, number: int) -> tuple[Stage, Any]:
    stage = await house.stage()
    given = stage.fitted(operation, operation.examples[number].input)
    return stage, await house.http(operation, house.credential(operation, stage), given, key=key_for(operation))


@pytest.mark.parametrize(("operation", "number"), EXAMPLES)
async def test_an_example_runs_and_answers_in_the_documented_shape(house: House, operation: AnyOperation, number: int) -> None:
    _, said = await run(house, operation, number)
    assert said.status == operation.status, said.body
    if is_document(operation):
        assert said.content and said.media_type in get_args(operation.result)
        return
    schema, wrap = output_schema(operation.result)
    jsonschema.validate(said.body if wrap is None else {wrap: said.body}, schema)
    TypeAdapter[Any](operation.result).validate_python(said.body)


@pytest.mark.parametrize(("operation", "number"), EXAMPLES)
def test_an_example_is_what_the_schemas_say(operation: AnyOperation, number: int) -> None:
    example = operation.examples[number]
    jsonschema.validate({**example.input, **({"idempotency_key": "k"} if operation.once else {})}, input_schema(operation))
    if not is_document(operation):
        assert example.answer is not None, "show what comes back"
        schema, wrap = output_schema(operation.result)
        jsonschema.validate(example.answer if wrap is None else {wrap: example.answer}, schema)


@pytest.mark.parametrize("operation", WRITES)
async def test_a_write_commits_its_audit_row_with_itself(house: House, operation: AnyOperation) -> None:
    stage, said = await run(house, operation, 0)
    (row,) = [row for row in await house.committed() if row.request_id == said.request_id]
    assert (row.operation, row.outcome, row.status, row.surface) == (operation.id, "ok", said.status, "http")
    internal = operation.auth is Auth.INTERNAL
    assert (row.principal, row.organisation) == (("internal", "") if internal else (stage.who.person, stage.who.organisation))


@pytest.mark.parametrize("operation", [each for each in WRITES if each.values[0].once is not None])  # pyright: ignore[reportAttributeAccessIssue]
async def test_a_write_with_a_key_is_replayed_byte_for_byte(house: House, operation: AnyOperation) -> None:
    stage = await house.stage()
    given = stage.fitted(operation, operation.examples[0].input)
    first = await house.http(operation, stage.who.secret, given, key="once")
    before = await house.charged(stage.who.organisation)
    again = await house.http(operation, stage.who.secret, given, key="once")
    assert (again.status, again.content) == (first.status, first.content)
    assert await house.charged(stage.who.organisation) == before


@pytest.mark.parametrize("operation", ALL)
async def test_an_unknown_field_is_named_and_nothing_is_done(house: House, operation: AnyOperation) -> None:
    stage = await house.stage()
    given = {**stage.fitted(operation, operation.examples[0].input), "surprise": "x"}
    said = await house.http(operation, house.credential(operation, stage), given, key=key_for(operation))
    if operation.id == "observe_connectivity_event":  # an inbound notification: what a newer bridge adds is skipped
        assert said.status == 200
        return
    assert (said.status, said.body["code"], said.body["param"]) == (400, "unknown_field", "surprise")
    assert [row for row in await house.committed() if row.request_id == said.request_id] == []


@pytest.mark.parametrize("operation", ALL)
def test_an_operation_is_documented(operation: AnyOperation) -> None:
    assert 0 < len(operation.summary) <= 80 and operation.summary.endswith(".")
    assert operation.examples, "give an example"
    assert all(example.title for example in operation.examples)
    properties = input_schema(operation)["properties"]
    bare = [name for name, schema in properties.items() if not str(schema.get("description", "")).strip()]
    assert bare == [], f"describe {bare} with unit and range"
    assert is_document(operation) or described(output_schema(operation.result).schema)


def described(schema: dict[str, Any]) -> bool:
    """An answer says what it is, each of its kinds for itself."""
    return bool(schema.get("description")) or all(map(described, schema.get("anyOf", [{}])))
