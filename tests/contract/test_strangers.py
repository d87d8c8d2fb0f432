"""Nobody else ever sees or changes an organisation's data: every operation, seven foreign identities, both doors."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth
from tests.contract.fleet import ALPINE_TOKEN, writes
from tests.contract.stage import NEVER, OPERATIONS, Answered, ContractStage, ServiceHouse, key_for
from tests.draw import drawn
from tests.network_facts import ACCOUNT, SIBLING

ASKED = [pytest.param(o, id=o.id) for o in OPERATIONS if o.auth in (Auth.BEARER, Auth.SESSION)]
LISTS = [o for o in OPERATIONS if o.read_only and o.auth is Auth.BEARER and o.id.startswith("list_connectivity_")]
# Whoever calls these is no organisation, and so no stranger to one.
NO_ORGANISATION = (Auth.PUBLIC, Auth.INTERNAL, Auth.SIGNATURE, Auth.BRIDGE, Auth.STOREFRONT, Auth.STOREFRONT_OPEN)
NOBODY = ("revoked", "removed", "expired")
LOOKED_UP = "getSingleSubscriber"
# What a sibling may make for itself cannot be made twice: it is told so by the network, with these codes.
TAKEN = (4, 10002)


async def strangers(house: ServiceHouse, stage: ContractStage) -> dict[str, str]:
    """Identities that are not the stage's: two of them have accounts in the same network."""
    world = house.world
    sibling = await world.caller(Tier.ENTERPRISE, mode="managed", account=SIBLING, service_own=True)
    alps = await world.caller(Tier.ENTERPRISE, token=ALPINE_TOKEN.value)
    free = await world.caller(Tier.FREE)
    revoked = await world.caller(organisation=stage.who.organisation)
    removed = await world.caller(organisation=stage.who.organisation)
    colleague = await world.caller(organisation=stage.who.organisation)
    _, expired = await world.key(colleague.person, stage.who.organisation, expires_at=int(world.clock.now()))
    _, alone = await world.key(await world.person(), None)
    await world.revoke(revoked)
    await world.leave(removed.person, removed.organisation)
    return {
        "sibling": sibling.secret,
        "alps": alps.secret,
        "free": free.secret,
        "revoked": revoked.secret,
        "removed": removed.secret,
        "expired": expired,
        "alone": alone,
    }


async def seen_by_owner(house: ServiceHouse, stage: ContractStage) -> list[Any]:
    """Everything the organisation's own lists show, and everything that is its own in the network."""
    found: list[Any] = []
    for operation in LISTS if stage.ids else ():
        given = {"intent": stage.ids["cni"]} if "usage_records" in operation.path else {}
        found.append((await house.http(operation, stage.who.secret, given)).body)
    network, own = stage.network, stage.own
    things = [*network.lines_of(ACCOUNT), network.accounts[ACCOUNT], network.zones[own.zone], network.templates[own.template]]
    return [*found, *map(repr, things)]


def texts(stage: ContractStage) -> set[str]:
    """What only this organisation's data holds."""
    own = stage.own
    in_network = {own.iccid, own.imsi, own.number, *map(str, (own.subscriber, own.running, own.waiting, own.monthly))}
    return {stage.iccid, stage.waiting, stage.who.organisation, stage.who.person, *stage.ids.values(), *in_network} - {""}


def numbers(stage: ContractStage) -> set[object]:
    """What only this organisation may name by number."""
    own = stage.own
    return {ACCOUNT, own.running, own.waiting, own.monthly, own.template, own.zone}


def check(who: str, operation: AnyOperation, said: Answered, stage: ContractStage, given: dict[str, Any]) -> None:
    names_it = any(value in (texts(stage) if isinstance(value, str) else numbers(stage)) for value in given.values() if hashable(value))
    if who in NOBODY or operation.auth is Auth.SESSION:
        assert said.status == 401, (who, said.body)
    elif who == "alone" and operation.organisation:
        assert said.status in (400, 409) and said.body["code"] == "organization_required", said.body
    elif operation.id in NEVER:
        assert said.body["code"] in ("upgrade_required", NEVER[operation.id]), said.body
    elif names_it and operation.upstream:
        assert said.body.get("code") in ("not_found", "upgrade_required", "org_not_connected"), (who, said.body)
    elif said.status == 502:
        assert who == "sibling" and said.body["ocs_code"] in TAKEN, said.body
    else:
        assert said.status in (200, 201, 400, 402, 404, 409), (who, said.body)
        # Notes are kept by organisation, whatever the line.
        free_to_ask = operation.id == "list_connectivity_events" or operation.path.endswith("/notes")
        assert not names_it or said.status >= 400 or free_to_ask, (who, said.body)
    shown = orjson.dumps(said.body).decode() + said.content.decode("latin-1")
    told = texts(stage) - set(words_of(given))
    assert not {mark for mark in told if mark in shown}, (who, said.body)


def words_of(given: object) -> Iterator[str]:
    """Every text in an input, however deep."""
    if isinstance(given, str):
        yield given
    for inner in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from words_of(inner)


def hashable(value: object) -> bool:
    """Whether it may be a name of something."""
    return isinstance(value, str | int)


def check_network(operation: AnyOperation, said: Answered, asked: list[str]) -> None:
    """A refused call looked at one line at most, and wrote nothing."""
    if said.status >= 400 and said.body.get("ocs_code") not in TAKEN:
        assert writes(asked) == []
        assert asked.count(LOOKED_UP) <= 1
        if "{iccid}" in operation.path:
            assert asked in ([], [LOOKED_UP])


@pytest.mark.parametrize("operation", drawn(ASKED, __file__))
async def test_a_stranger_sees_and_changes_nothing(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    before = await seen_by_owner(house, stage)
    given = stage.fitted(operation, operation.examples[0].input)
    for who, secret in (await strangers(house, stage)).items():
        doors = [(house.http, key) for key in {key_for(operation, "staged"), key_for(operation, f"{who}-http")}]
        doors += [(house.mcp, key_for(operation, f"{who}-mcp"))] if operation.tool else []
        for door, key in doors:
            asked = len(stage.asked())
            said = await door(operation, secret, given, key=key, sure=True)
            check(who, operation, said, stage, given)
            check_network(operation, said, stage.asked(asked))
    assert await seen_by_owner(house, stage) == before


def test_no_operation_is_left_out() -> None:
    assert {each.values[0].id for each in ASKED} == {  # pyright: ignore[reportAttributeAccessIssue]
        o.id for o in CATALOGUE.operations.values() if o.auth not in NO_ORGANISATION
    }
