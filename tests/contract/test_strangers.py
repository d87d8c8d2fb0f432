"""Nobody else ever sees or changes an organisation's data: every operation, six foreign identities, both doors."""

from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from registry.limits import Tier
from registry.operation import Auth
from registry.redaction import mask
from tests.contract.stage import OPERATIONS, Answered, House, Stage, key_for

pytestmark = pytest.mark.anyio
ASKED = [pytest.param(o, id=o.id) for o in OPERATIONS if o.auth in (Auth.BEARER, Auth.SESSION)]
LISTS = [o for o in OPERATIONS if o.read_only and o.auth is Auth.BEARER and o.id.startswith("list_connectivity_")]
NOBODY = ("revoked", "removed", "expired")


async def strangers(house: House, stage: Stage) -> dict[str, str]:
    """Six identities that are not the stage's."""
    world = house.world
    other, free = await world.caller(Tier.ENTERPRISE), await world.caller(Tier.FREE)
    revoked = await world.caller(organisation=stage.who.organisation)
    removed = await world.caller(organisation=stage.who.organisation)
    colleague = await world.caller(organisation=stage.who.organisation)
    _, expired = await world.key(colleague.person, stage.who.organisation, expires_at=int(world.clock.now()))
    _, alone = await world.key(await world.person(), None)
    await world.revoke(revoked)
    await world.leave(removed.person, removed.organisation)
    return {
        "other": other.secret,
        "free": free.secret,
        "revoked": revoked.secret,
        "removed": removed.secret,
        "expired": expired,
        "alone": alone,
    }


async def seen_by_owner(house: House, stage: Stage) -> list[Any]:
    """Everything the organisation's own lists show."""
    found: list[Any] = []
    for operation in LISTS:
        given = {"intent": stage.ids["cni"]} if "usage_records" in operation.path else {}
        found.append((await house.http(operation, stage.who.secret, given)).body)
    return found


def marks(stage: Stage) -> set[str]:
    """What only this organisation's data holds."""
    return {stage.iccid, stage.waiting, stage.who.organisation, stage.who.person, *stage.ids.values()}


def check(who: str, operation: AnyOperation, said: Answered, stage: Stage, given: dict[str, Any]) -> None:
    if who in NOBODY:
        assert said.status == 401, (who, said.body)
    elif who == "alone" and operation.organisation:
        assert said.status in (400, 409) and said.body["code"] == "organization_required", said.body
    else:
        assert said.status in (200, 201, 400, 402, 404, 409), (who, said.body)
        names_it = any(value in marks(stage) for value in given.values() if isinstance(value, str))
        assert not names_it or said.status >= 400 or operation.id == "list_connectivity_events", (who, said.body)
    text = orjson.dumps(said.body).decode() + said.content.decode("latin-1")
    told = marks(stage) - {value for value in given.values() if isinstance(value, str)}
    assert not {mark for mark in told if mark in text}, (who, said.body)


@pytest.mark.parametrize("operation", ASKED)
async def test_a_stranger_sees_and_changes_nothing(house: House, operation: AnyOperation) -> None:
    stage = await house.stage()
    before = await seen_by_owner(house, stage)
    given = stage.fitted(operation, operation.examples[0].input)
    for who, secret in (await strangers(house, stage)).items():
        for key in {"staged", key_for(operation, f"{who}-http")}:
            check(who, operation, await house.http(operation, secret, given, key=key), stage, given)
        if operation.tool:
            check(who, operation, await house.mcp(operation, secret, given, key=key_for(operation, f"{who}-mcp")), stage, given)
    assert await seen_by_owner(house, stage) == before


def without(said: Answered, id: str) -> str:
    """The body without the id that was asked for, and without what masking leaves of it."""
    text = orjson.dumps({**said.body, "request_id": ""}).decode()
    return text.replace(id, "ID").replace(mask(id), "ID")


@pytest.mark.parametrize("operation", [each for each in ASKED if "{id}" in each.values[0].path])  # pyright: ignore[reportAttributeAccessIssue]
async def test_a_foreign_id_answers_as_an_unknown_one_does(house: House, operation: AnyOperation) -> None:
    stage, other = await house.stage(), await house.stage()
    given = stage.fitted(operation, operation.examples[0].input)
    foreign = await house.http(operation, other.who.secret, given, key=key_for(operation, "a"))
    nowhere = {**given, "id": given["id"].partition("_")[0] + "_" + "0" * 26}
    unknown = await house.http(operation, other.who.secret, nowhere, key=key_for(operation, "b"))
    assert foreign.status == unknown.status == 404
    shown = [without(said, each["id"]) for said, each in ((foreign, given), (unknown, nowhere))]
    assert shown[0] == shown[1]


def test_no_operation_is_left_out() -> None:
    assert {each.values[0].id for each in ASKED} == {  # pyright: ignore[reportAttributeAccessIssue]
        o.id for o in CATALOGUE.operations.values() if o.auth not in (Auth.PUBLIC, Auth.INTERNAL, Auth.SIGNATURE, Auth.BRIDGE)
    }
