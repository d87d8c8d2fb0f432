"""An organisation without an account upstream is told so, and how to go on; the network hears nothing (rules 2.1 and 5.3)."""

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.errors import OrgNotConnected
from tests.contract.payments import prepared
from tests.contract.stage import OPERATIONS, Answered, ContractStage, ServiceHouse, key_for
from tests.draw import drawn
from tests.network_facts import ACCOUNT

UPSTREAM = [pytest.param(o, id=o.id) for o in OPERATIONS if o.upstream]


async def refused(house: ServiceHouse, stage: ContractStage, operation: AnyOperation) -> dict[str, object]:
    """What both doors say, without what is each answer's own."""
    given = stage.fitted(operation, operation.examples[0].input)
    said: list[Answered] = [await house.http(operation, stage.who.secret, given, key=key_for(operation))]
    assert said[0].status == 409
    if operation.tool:
        said.append(await house.mcp(operation, stage.who.secret, given, key=key_for(operation)))
    bodies: list[dict[str, object]] = [{**each.body, "request_id": ""} for each in said]
    assert all(body == bodies[0] for body in bodies)
    return bodies[0]


async def nothing_happened(house: ServiceHouse, stage: ContractStage) -> bool:
    """No call of the network, no charge, no row."""
    mine = [row for row in await house.committed(organisation=stage.who.organisation) if row.operation != "create_api_key"]
    return (stage.asked(), await house.charged(stage.who.organisation), mine) == ([], 0, [])


@pytest.mark.rule("7.18")
@pytest.mark.rule("5.3.1")
@pytest.mark.parametrize("operation", drawn(UPSTREAM, __file__))
async def test_without_any_connection_the_way_on_is_to_connect(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation, connected=False)
    body = await refused(house, stage, operation)
    active = {"id": stage.who.organisation, "name": "Reseller"}
    assert body.pop("hint", "")  # in whose hands it is
    assert body == {
        "error": "The organisation Reseller has no connected account; connect it at connect_url or switch organisation",
        "code": "org_not_connected",
        "request_id": "",
        "error_code": "org_not_connected",
        "active_org": active,
        "switch_to": active,
        "connected_orgs": [],
        "connect_url": "https://reseller.test/connect",
    }
    assert await nothing_happened(house, stage)


@pytest.mark.parametrize("operation", drawn(UPSTREAM, __file__))
async def test_a_member_of_connected_organisations_is_shown_them(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation, connected=False)
    world = house.world
    connected = [await world.organisation(name=name, mode="managed", account=ACCOUNT) for name in ("Fjord", "Fjell")]
    lonely = await world.organisation(name="Lonely")
    for organisation in (*connected, lonely):
        await world.join(stage.who.person, organisation)
    body = await refused(house, stage, operation)
    shown = [{"id": id, "name": name} for id, name in zip(connected, ("Fjord", "Fjell"), strict=True)]
    assert (body["connected_orgs"], body["switch_to"]) == (shown, shown[0])
    assert await nothing_happened(house, stage)


async def test_the_names_of_the_members_of_the_body_are_those_of_the_specification() -> None:
    named = OrgNotConnected("", active={"id": "", "name": ""}, connected=[], connect_url="").body("")
    assert list(named) == snapshot(
        ["error", "code", "request_id", "error_code", "active_org", "switch_to", "connected_orgs", "connect_url"]
    )


async def test_what_needs_no_account_works_without_one(house: ServiceHouse) -> None:
    stage = await house.stage(connected=False)
    for operation in OPERATIONS:
        if not operation.upstream and operation.tool and OrgNotConnected not in operation.raises and operation.read_only:
            stage.proof = await prepared(house.world, stage.who, operation.id)
            given = stage.fitted(operation, operation.examples[0].input)
            said = await house.http(operation, stage.who.secret, given)
            assert said.status == operation.status, (operation.id, said.body)
    assert stage.asked() == []


async def test_a_free_organisation_without_an_account_hears_of_its_tier_first(house: ServiceHouse) -> None:
    operation = next(o for o in OPERATIONS if o.id == "assign_package")
    stage = await house.stage(operation, Tier.FREE, connected=False)
    said = await house.http(operation, stage.who.secret, stage.fitted(operation, operation.examples[0].input))
    assert said.status == 402
