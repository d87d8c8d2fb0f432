"""What is somebody else's answers exactly as what does not exist: every id that an input can name, one at a time."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
import pytest

from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth, shown_field_name
from registry.redaction import redact
from tests.contract.fleet import ALPINE_TOKEN, FOREIGN_ACCOUNT, FOREIGN_LIST, UNKNOWN_ICCID, UNKNOWN_ID, writes
from tests.contract.stage import MOVE, NEVER, OPERATIONS, Answered, ContractStage, Input, ServiceHouse, key_for
from tests.draw import drawn
from tests.network_facts import SIBLING

STORED = [pytest.param(o, id=o.id) for o in OPERATIONS if o.auth in (Auth.BEARER, Auth.SESSION) and "{id}" in o.path and o.id not in NEVER]
UNKNOWN_TEXT = "999999999999999"
# What an input needs beside the field, so that the field means something.
COMPANIONS: Mapping[str, Input] = {"simListId": {"simMode": "custom"}, "packageListId": {"packageMode": "custom"}}
# Finding is asking for what there is: nothing is found, and that is no refusal.
SEARCHES = {*(("list_subscribers", field) for field in ("iccid", "imsi", "msisdn")), ("list_network_profiles", "sponsorId")}


class Named(NamedTuple):
    """Values of a field: what is somebody else's, and what nobody has."""

    foreign: list[Any]
    unknown: Any


def named(stage: ContractStage, operation: AnyOperation, field: str) -> Named | None:
    """What to send in a field that names something of the network."""
    network, own = stage.network, stage.own
    alpine = ALPINE_TOKEN.reseller_id
    template = next(each.id for each in network.templates.values() if each.reseller_id == alpine)
    zone = next(each.id for each in network.zones.values() if each.reseller_id == alpine)
    other = next(line for line in network.lines_of(SIBLING))
    accounts = [FOREIGN_ACCOUNT] if operation.id == MOVE else [SIBLING, FOREIGN_ACCOUNT]
    plan = 531 if operation.id == "modify_subscriber_mobile_plan" else 95
    found = {
        "iccid": Named([own.sibling, own.foreign], UNKNOWN_ICCID),
        "imsi": Named([other.imsi], UNKNOWN_TEXT),
        "msisdn": Named([other.number], UNKNOWN_TEXT),
        "rangeStart": Named([own.foreign], UNKNOWN_ICCID),
        "accountId": Named(accounts, UNKNOWN_ID),
        "destAccount": Named(accounts, UNKNOWN_ID),
        "resellerId": Named([alpine], UNKNOWN_ID),
        "packageId": Named([own.sibling_package], UNKNOWN_ID),
        "packageTemplateId": Named([template], UNKNOWN_ID),
        "templateId": Named([template], UNKNOWN_ID),
        "zoneId": Named([zone], UNKNOWN_ID),
        "locationZoneId": Named([zone], UNKNOWN_ID),
        "listId": Named([FOREIGN_LIST], UNKNOWN_ID),
        "simListId": Named([FOREIGN_LIST], UNKNOWN_ID),
        "packageListId": Named([FOREIGN_LIST], UNKNOWN_ID),
        "planId": Named([plan], UNKNOWN_ID),
        "voipPlanId": Named([95], UNKNOWN_ID),
        "networkProfileId": Named([415], UNKNOWN_ID),
        "destNetworkProfileId": Named([415], UNKNOWN_ID),
        "destinationListId": Named([67], UNKNOWN_ID),
        "sponsorId": Named([33], UNKNOWN_ID),
        "esimSponsor": Named([33], UNKNOWN_ID),
    }
    return found.get(field)


def fields_of(operation: AnyOperation) -> list[str]:
    return [shown_field_name(name, info) for name, info in operation.params.model_fields.items()]


IDS = [
    pytest.param(o, field, id=f"{o.id}-{field}")
    for o in OPERATIONS
    if o.upstream or o.id == "set_network_default"
    for field in fields_of(o)
    if field.endswith("Id") or field in ("iccid", "imsi", "msisdn", "rangeStart", "destAccount", "esimSponsor")
    if field != "srcAccountId"  # the path's, or a bad request
]


def without(said: Answered, id: object) -> str:
    """The body without the id that was asked for, and without what masking leaves of it."""
    text = orjson.dumps({**said.body, "request_id": ""}).decode()
    return text.replace(str(id), "ID").replace(redact(str(id)), "ID")


@pytest.mark.rule("4.4.30")
@pytest.mark.rule("7.5")
@pytest.mark.parametrize("operation", drawn(STORED, __file__))
async def test_a_foreign_id_answers_as_an_unknown_one_does(house: ServiceHouse, operation: AnyOperation) -> None:
    stage, other = await house.stage(operation), await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    foreign = await house.http(operation, other.who.secret, given, key=key_for(operation, "a"))
    nowhere = {**given, "id": given["id"].partition("_")[0] + "_" + "0" * 26}
    unknown = await house.http(operation, other.who.secret, nowhere, key=key_for(operation, "b"))
    assert foreign.status == unknown.status == 404
    assert without(foreign, given["id"]) == without(unknown, nowhere["id"])


@pytest.mark.parametrize(("operation", "field"), drawn(IDS, __file__))
async def test_what_is_somebody_else_s_in_the_network_answers_as_what_is_unknown(
    house: ServiceHouse, operation: AnyOperation, field: str
) -> None:
    stage = await house.stage(operation)
    values = named(stage, operation, field)
    assert values is not None, f"say which {field} is somebody else's"
    given = stage.fitted(operation, operation.examples[0].input) | COMPANIONS.get(field, {})
    if field in ("iccid", "imsi", "msisdn") and operation.id == "list_subscribers":
        given.pop("q")
    said: list[tuple[int, str]] = []
    for value in (values.unknown, *values.foreign):
        sent = {**given, field: value} | ({"rangeEnd": value} if field == "rangeStart" else {})
        answer = await house.http(operation, stage.who.secret, sent, key=key_for(operation, f"k{value}"), sure=True)
        said.append((answer.status, without(answer, value)))
    assert said[0][0] == (200 if (operation.id, field) in SEARCHES else 404), said
    assert set(said) == {said[0]}
    assert writes(stage.asked()) == []
    assert await house.charged(stage.who.organisation) == len(said)


@pytest.mark.parametrize("field", ["resellerId", "zoneId", "locationZoneId", "destinationListId", "voipPlanId", "sponsorId", "listId"])
async def test_an_own_token_finds_nothing_of_another_reseller(house: ServiceHouse, field: str) -> None:
    readers = [o for o in OPERATIONS if o.upstream and o.read_only and field in fields_of(o) and "{iccid}" not in o.path]
    fjord = {"resellerId": 7001, "zoneId": 2301, "locationZoneId": 2301, "destinationListId": 64, "voipPlanId": 92, "sponsorId": 32}
    for operation in readers:
        await house.stage(operation)
        alps = await house.world.caller(Tier.ENTERPRISE, token=ALPINE_TOKEN.value)
        given = {field: fjord[field]}
        foreign = await house.http(operation, alps.secret, given)
        unknown = await house.http(operation, alps.secret, {field: UNKNOWN_ID})
        assert (foreign.status, without(foreign, fjord[field])) == (unknown.status, without(unknown, UNKNOWN_ID)), operation.id
