"""Bad input is refused before anything happens: 400, the field by name, no charge, no row, no call upstream."""

import re

import pytest

from registry.catalogue import AnyOperation
from registry.operation import Auth
from tests.contract.bad_input import BROKEN, ICCIDS, Bad, bad_calls
from tests.contract.outcomes import LENIENT
from tests.contract.stage import OPERATIONS, SERVED, Answered, ContractStage, Input, ServiceHouse, key_for
from tests.contract.test_identities import written
from tests.draw import drawn

STRICT = [o for o in SERVED if o.id not in LENIENT]
ALL = [pytest.param(o, id=o.id) for o in STRICT]
CODES = {"invalid_request", "unknown_field", "invalid_json"}


def refused(bad: Bad, said: Answered) -> str | None:
    code, param = said.body.get("code"), str(said.body.get("param", ""))
    if said.status != 400 or code not in CODES:
        return f"{bad.fault}: {said.status} {said.body}"
    named = re.split(r"[.\[]", param)[0] == bad.param or code == "invalid_json"
    return None if named else f"{bad.fault}: names {param!r}: {said.body}"


async def untouched(house: ServiceHouse, stage: ContractStage) -> tuple[object, ...]:
    (_, audited, claims), used = await house.world.store.read(written, organisation=stage.who.organisation)
    return stage.asked(), used - house.unspent(stage.who.organisation), audited, claims


@pytest.mark.rule("8.3")
@pytest.mark.rule("8.6")
@pytest.mark.rule("8.10")
@pytest.mark.rule("2.1.1")
@pytest.mark.rule("2.3.1")
@pytest.mark.rule("2.7.2")
@pytest.mark.rule("7.2")
@pytest.mark.parametrize("operation", drawn(ALL, __file__))
async def test_every_kind_of_bad_input_is_refused_by_the_name_of_its_field(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    secret, before = house.credential(operation, stage), await untouched(house, stage)
    in_query = operation.method in ("GET", "DELETE")
    wrong: list[str | None] = []
    for number, bad in enumerate(bad_calls(operation, given, in_query=in_query)):
        wrong.append(refused(bad, await house.http(operation, secret, bad.given, key=key_for(operation, f"k{number}"))))
    if operation.tool and in_query:  # a tool's arguments have types, whatever the method
        for number, bad in enumerate(bad_calls(operation, given, in_query=False)):
            said = await house.mcp(operation, secret, bad.given, key=key_for(operation, f"m{number}"))
            wrong.append(refused(bad, said))
    assert [fault for fault in wrong if fault] == []
    assert len(wrong) > 0
    assert await untouched(house, stage) == before


@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in STRICT if o.method not in ("GET", "DELETE")], __file__))
async def test_a_body_that_is_no_object_of_json_is_refused(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    before = await untouched(house, stage)
    for body in (*BROKEN, *([b""] if needs_body(operation) else [])):
        said = await raw(house, operation, stage, given, body)
        assert (said[0], said[1] in CODES) == (400, True), (body, said)
    assert await untouched(house, stage) == before


@pytest.mark.parametrize("operation", drawn([pytest.param(o, id=o.id) for o in STRICT if "{iccid}" in o.path and o.tool], __file__))
async def test_a_malformed_iccid_is_refused_at_both_doors(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    before = await untouched(house, stage)
    for iccid in ICCIDS:
        for door in (house.http, house.mcp):
            said = await door(operation, stage.who.secret, {**given, "iccid": iccid}, key=key_for(operation, "k"))
            assert (said.status, said.body["param"]) == (400, "iccid"), (iccid, said.body)
            assert stage.own.iccid not in str(said.body), said.body  # a good number with something behind it is still somebody's
    assert await untouched(house, stage) == before


@pytest.mark.parametrize("operation", [pytest.param(o, id=o.id) for o in OPERATIONS if o.id in LENIENT])
async def test_a_notification_of_whatever_shape_is_taken_or_refused(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    # What no sender that may sign would write is taken for what somebody else wrote.
    refused = 401 if operation.auth is Auth.SIGNATURE else 400
    for bad in bad_calls(operation, given, in_query=False):
        said = await house.http(operation, house.credential(operation, stage), bad.given)
        assert said.status in (200, refused), (bad.fault, said.body)
    for body in BROKEN:
        assert (await raw(house, operation, stage, given, body))[0] in (200, refused)
    # Of a location that is taken it is asked once whose the line is: the same country again asks nobody.
    assert stage.asked() in ([], ["getSingleSubscriber"])


def needs_body(operation: AnyOperation) -> bool:
    """Whether something that must be sent is not in the path."""
    fields = operation.params.model_json_schema(by_alias=True).get("required", [])
    return any("{" + name + "}" not in operation.path for name in fields)


async def raw(house: ServiceHouse, operation: AnyOperation, stage: ContractStage, given: Input, body: bytes) -> tuple[int, str]:
    path = operation.path
    for name, value in given.items():
        path = path.replace("{" + name + "}", str(value))
    headers = {"content-type": "application/json"}
    if operation.once is not None:
        headers["Idempotency-Key"] = "raw"
    async with house.world.client(house.credential(operation, stage)) as client:
        answer = await client.request(operation.method, path, content=body, headers=headers)
    return answer.status_code, answer.json().get("code", "")
