"""Every documented example runs, answers in the documented shape, and every write settles."""

from typing import Any, NamedTuple, get_args

import jsonschema_rs
import pytest
from pydantic import TypeAdapter

from registry.catalogue import AnyOperation
from registry.operation import Auth, field_spellings, shown_field_name
from registry.schema import input_schema, output_schema
from tests.contract.authority import who_may
from tests.contract.declared import of_every
from tests.contract.fleet import writes
from tests.contract.outcomes import LENIENT, code_of
from tests.contract.stage import (
    NEVER,
    NEVER_STATUS,
    OPERATIONS,
    SERVED,
    VERIFY_OPERATION,
    Answered,
    Input,
    ServiceHouse,
    is_document,
    key_for,
)
from tests.contract.test_answers import wrong_moments
from tests.draw import drawn
from tests.registry.ledgers import AuditRow
from tests.world import Credentials

EXAMPLES = [pytest.param(o, number, id=f"{o.id}-{number}") for o in SERVED for number in range(len(o.examples))]
WRITES = [pytest.param(o, id=o.id) for o in SERVED if not o.read_only]
KEYED = [pytest.param(o, id=o.id) for o in SERVED if o.once is not None]
CONFIRMED = [pytest.param(o, id=o.id) for o in SERVED if o.confirm]


class ExampleRun(NamedTuple):
    """A documented call in a stage of its own, made once for all tests that look at what came of it."""

    who: Credentials
    said: Answered
    asked: list[str]
    charged: int
    rows: list[AuditRow]
    """What was committed with it."""
    changed: bool
    """Whether somebody else may act for an organisation since."""
    again: Answered | None
    """Where it takes a key, what the same call with the same key is answered."""
    asked_again: list[str]
    charged_again: int


Runs = dict[tuple[str, int], ExampleRun]


@pytest.fixture(scope="module")
def runs() -> Runs:
    return {}


async def run(house: ServiceHouse, runs: Runs, operation: AnyOperation, number: int = 0) -> ExampleRun:
    """The run, which is made when it is first asked for; what writes is only asked of the first example."""
    found = runs.get((operation.id, number))
    if found is None:
        found = runs[operation.id, number] = await made(house, operation, number)
    return found


async def made(house: ServiceHouse, operation: AnyOperation, number: int) -> ExampleRun:
    stage, writing = await house.stage(operation), number == 0 and not operation.read_only
    given, credential = stage.fitted(operation, operation.examples[number].input), house.credential(operation, stage)
    before = await house.world.store.read(who_may) if writing else frozenset()
    said = await house.http(operation, credential, given, key=key_for(operation), sure=True)
    changed = writing and await house.world.store.read(who_may) != before
    asked, charged = stage.asked(), await house.charged(stage.who.organisation)
    rows = await house.committed(request=said.request_id) if writing else []
    again = await house.http(operation, credential, given, key=key_for(operation)) if number == 0 and operation.once else None
    charged_again = await house.charged(stage.who.organisation) - charged
    return ExampleRun(stage.who, said, asked, charged, rows, changed, again, stage.asked(len(asked)), charged_again)


@pytest.mark.rule("2.0.2")
@pytest.mark.parametrize(("operation", "number"), drawn(EXAMPLES, __file__))
async def test_an_example_runs_and_answers_in_the_documented_shape(
    house: ServiceHouse, runs: Runs, operation: AnyOperation, number: int
) -> None:
    said = (await run(house, runs, operation, number)).said
    assert said.status == operation.status, said.body
    if is_document(operation):
        assert said.content and said.media_type in get_args(operation.result)
        return
    schema, wrap, _ = output_schema(operation.result)
    jsonschema_rs.validate(schema, said.body if wrap is None else {wrap: said.body})
    TypeAdapter[Any](operation.result).validate_python(said.body)
    assert wrong_moments(operation, said.body) == []


@of_every(SERVED)
def test_an_example_is_what_the_schemas_say(operation: AnyOperation) -> None:
    taken = input_schema(operation)
    keyed = {"idempotency_key": "k"} if "idempotency_key" in taken["properties"] else {}
    for example in operation.examples:
        jsonschema_rs.validate(taken, {**example.input, **keyed})
        if not is_document(operation):
            assert example.answer is not None, "show what comes back"
            schema, wrap, _ = output_schema(operation.result)
            jsonschema_rs.validate(schema, example.answer if wrap is None else {wrap: example.answer})


@pytest.mark.parametrize("operation", drawn(WRITES, __file__))
async def test_a_write_commits_its_audit_row_with_itself(house: ServiceHouse, runs: Runs, operation: AnyOperation) -> None:
    done = await run(house, runs, operation)
    # And it changes who may act for an organisation only where it is declared: else a new operation would be open to restricted
    # credentials. Whoever signs up shows none.
    assert done.changed == (operation.authority is not None or operation.id == VERIFY_OPERATION)
    (row,) = done.rows
    assert (row.operation, row.outcome, row.status, row.surface) == (operation.id, "ok", done.said.status, "http")
    strangers = {Auth.INTERNAL: ("internal", ""), Auth.BRIDGE: ("internal", ""), Auth.PUBLIC: ("public", "")}
    shop = ("storefront", done.who.organisation)
    strangers |= {Auth.STOREFRONT: shop, Auth.STOREFRONT_OPEN: shop}
    strangers[Auth.SIGNATURE] = ("processor", "")
    assert (row.principal, row.organisation) == strangers.get(operation.auth, (done.who.person, done.who.organisation))


@pytest.mark.parametrize("operation", drawn(KEYED, __file__))
async def test_a_write_with_a_key_is_replayed_byte_for_byte(house: ServiceHouse, runs: Runs, operation: AnyOperation) -> None:
    done = await run(house, runs, operation)
    assert done.again is not None
    assert (done.again.status, done.again.content) == (done.said.status, done.said.content)
    assert (writes(done.asked_again), done.charged_again) == ([], 0)


@pytest.mark.parametrize("operation", drawn(CONFIRMED, __file__))
@pytest.mark.rule("5.4.3")
async def test_a_two_step_operation_does_nothing_before_its_second_step(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    credential = house.credential(operation, stage)
    challenge = await house.http(operation, credential, given)
    assert challenge.status == 202
    assert set(challenge.body) == {"message", "confirm_token", "expires_in_seconds", "route", "hint", "losses"}
    forged = await house.http(operation, credential, given, token="A" * 43)
    assert (forged.status, forged.body["code"]) == (400, "confirm_token_invalid")
    assert (writes(stage.asked()), await house.charged(stage.who.organisation)) == ([], 0)
    done = await house.http(operation, credential, given, token=challenge.body["confirm_token"])
    sent = int(operation.upstream)
    assert (done.status, len(writes(stage.asked())), await house.charged(stage.who.organisation)) == (operation.status, sent, 1)
    spent = await house.http(operation, credential, given, token=challenge.body["confirm_token"])
    assert (spent.status, spent.body["code"]) in ((400, "confirm_token_invalid"), (404, "not_found"))  # what was deleted is not there
    assert len(writes(stage.asked())) == sent


@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in SERVED if o.upstream], __file__))
async def test_an_operation_makes_at_most_one_write_upstream_and_costs_one_call(
    house: ServiceHouse, runs: Runs, operation: AnyOperation
) -> None:
    done = await run(house, runs, operation)
    assert done.said.status == operation.status, done.said.body
    assert len(writes(done.asked)) == (0 if operation.read_only else 1)
    assert done.charged == 1


def other_spellings(operation: AnyOperation, number: int) -> list[tuple[str, str]]:
    """Each way to write a field of the example that is not the documented one; what stands in the path has no spelling."""
    model = operation.params
    given = operation.examples[number].input
    fields = {
        shown_field_name(name, info): name
        for name, info in model.model_fields.items()
        if "{" + shown_field_name(name, info) + "}" not in operation.path
    }
    return [(name, word) for name in given for word, field in field_spellings(model).items() if fields.get(name) == field and word != name]


@pytest.mark.parametrize(("operation", "number"), drawn([each for each in EXAMPLES if other_spellings(*each.values)], __file__))  # pyright: ignore[reportArgumentType]
async def test_a_field_is_taken_in_every_spelling(house: ServiceHouse, operation: AnyOperation, number: int) -> None:
    for name, word in other_spellings(operation, number):
        stage = await house.stage(operation)
        given = stage.fitted(operation, operation.examples[number].input)
        given[word] = given.pop(name)
        said = await house.http(operation, house.credential(operation, stage), given, key=key_for(operation), sure=True)
        assert said.status == operation.status, (word, said.body)


def nullable(operation: AnyOperation) -> list[str]:
    """Fields that may be null where null says no more than leaving them out."""
    if operation.method in ("GET", "DELETE"):
        return []
    fields = operation.params.model_fields
    clears = {shown_field_name(name, fields[name]) for name in operation.params.null_clears}
    schema = operation.params.model_json_schema(by_alias=True)
    optional = {name: part for name, part in schema["properties"].items() if name not in schema.get("required", [])}
    return [name for name, part in optional.items() if name not in clears and {"type": "null"} in part.get("anyOf", [])]


@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in SERVED if nullable(o)], __file__))
async def test_null_is_as_good_as_leaving_a_field_out(house: ServiceHouse, operation: AnyOperation) -> None:
    async def said(given: Input, *names: str, null: bool) -> tuple[int, str]:
        stage = await house.stage(operation)
        sent = {name: value for name, value in stage.fitted(operation, given).items() if name not in names}
        sent |= dict.fromkeys(names) if null else {}
        answer = await house.http(operation, house.credential(operation, stage), sent, key=key_for(operation), sure=True)
        return answer.status, code_of(answer)

    example = dict(operation.examples[0].input)
    absent = [name for name in nullable(operation) if name not in example]
    assert await said(example, *absent, null=True) == (operation.status, "")
    for name in set(nullable(operation)) - set(absent):
        assert await said(example, name, null=True) == await said(example, name, null=False), name


# Of each way to send and to be believed one: that every operation names an unknown field is what test_bad_input proves.
FIRST_OF_EACH = {(o.method, o.auth, o.tool, o.once is None, o.confirm, o.id in LENIENT and o.id): o for o in SERVED}


@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in FIRST_OF_EACH.values()], __file__))
async def test_an_unknown_field_is_named_and_nothing_is_done(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    fitted = stage.fitted(operation, operation.examples[0].input)
    for word in ("surprise", "surpriseField", "surprise_field"):
        said = await house.http(operation, house.credential(operation, stage), {**fitted, word: "x"}, key=key_for(operation))
        if operation.id in LENIENT:
            assert said.status == 200
            continue
        assert (said.status, said.body["code"], said.body["param"]) == (400, "unknown_field", word)
        assert await house.committed(request=said.request_id) == []
    assert operation.id in LENIENT or stage.asked() == []  # one that takes the field does its work, and may ask


@pytest.mark.parametrize("operation", [pytest.param(o, id=o.id) for o in OPERATIONS if o.id in NEVER and o.id != "decide_approval"])
async def test_what_is_never_offered_says_so_whatever_is_sent(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    anything = ({"id": "prv_1"}, {"id": "x"}) if "{id}" in operation.path else ({}, {"iccid": stage.own.iccid}, {"surprise": [{}]})
    for given in anything:
        said = await house.http(operation, stage.who.secret, given)
        assert (said.status, said.body["code"]) == (NEVER_STATUS[operation.id], NEVER[operation.id])
    assert (stage.asked(), await house.charged(stage.who.organisation)) == ([], 0)


@of_every(OPERATIONS)
def test_an_operation_is_documented(operation: AnyOperation) -> None:
    assert 0 < len(operation.summary) <= 80 and operation.summary.endswith(".")
    assert operation.examples, "give an example"
    assert all(example.title for example in operation.examples)
    properties = input_schema(operation)["properties"]
    bare = [name for name, schema in properties.items() if not str(schema.get("description", "")).strip()]
    assert bare == [], f"describe {bare} with unit and range"
    answer = output_schema(operation.result)
    said = answer.schema if answer.wrap is None else answer.schema["properties"][answer.wrap]
    assert is_document(operation) or described(said)


def described(schema: dict[str, Any]) -> bool:
    """An answer says what it is, each of its kinds for itself, and a list by what is in it."""
    kinds = schema.get("anyOf") or ([schema["items"]] if "items" in schema else [])
    return bool(schema.get("description")) or (bool(kinds) and all(map(described, kinds)))
