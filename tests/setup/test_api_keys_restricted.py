"""What a key may be restricted to when it is made: its own maker's limits, what is refused, and what is inherited."""

from typing import Any

import orjson
import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.call import Call
from registry.caller import Caller, Restrictions, Tier
from registry.ports import SessionClaims
from storage.access_grants import AccessGrant, insert_grant, revoke_grant
from tests.contract.stage import ServiceHouse
from tests.world import Credentials, World

KEYS, ICCID = "/v1/api-keys", "8988303700000100286"
PLANS, INTENTS, ACCOUNTS = "/v1/connectivity/plans", "/v1/connectivity/intents", "/v1/accounts"
Json = dict[str, Any]


async def mint(house: ServiceHouse, secret: str, key: str | None = None, **restrictions: Any) -> tuple[int, Json]:
    async with house.world.client(secret) as http:
        body = {"name": "child", "restrictions": restrictions} if restrictions else {"name": "child"}
        answer = await http.post(KEYS, json=body, headers={"Idempotency-Key": key} if key else {})
    return answer.status_code, answer.json()


async def limited(world: World, **restrictions: Any) -> tuple[Credentials, str]:
    caller = await world.caller(Tier.ENTERPRISE)
    _, secret = await world.key(caller.person, caller.organisation, restrictions=Restrictions(**restrictions))
    return caller, secret


async def status(house: ServiceHouse, secret: str, path: str = PLANS) -> int:
    async with house.world.client(secret) as http:
        return (await http.get(path)).status_code


async def test_a_key_says_what_it_may_not_do_and_is_held_to_it(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    code, made = await mint(house, caller.secret, read_only=True, toolsets=["connectivity", "connectivity"], calls_per_day=2)
    assert code == 201
    assert made["restrictions"] == snapshot(
        {
            "read_only": True,
            "no_admin": False,
            "toolsets": ["connectivity"],
            "iccids": None,
            "account_ids": None,
            "calls_per_day": 2,
            "tags": None,
            "spend_per_call": None,
            "spend_per_day": None,
            "spend_per_month": None,
            "times": None,
            "approve_above": None,
            "approval": "none",
            "another_person": False,
            "inherited": [],
        }
    )
    async with house.world.client(made["secret"]) as http:
        refused = await http.post(INTENTS, json={}, headers={"Idempotency-Key": "k"})
        assert (refused.status_code, refused.json()["code"]) == (403, "credential_restricted")
        refused = await http.get("/v1/members")
        assert (refused.status_code, refused.json()["code"]) == (403, "credential_restricted")
        assert [(await http.get(PLANS)).status_code for _ in range(3)] == [200, 200, 429]
    assert await status(house, caller.secret) == 200


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"toolsets": []}, "restrictions.toolsets"),
        ({"iccids": []}, "restrictions.iccids"),
        ({"account_ids": []}, "restrictions.account_ids"),
        ({"toolsets": ["nonesuch"]}, "restrictions.toolsets"),
        ({"toolsets": "connectivity"}, "restrictions.toolsets"),
        ({"iccids": ["8988"]}, "restrictions.iccids[0]"),
        ({"no_admin": True}, "restrictions.no_admin"),
        ({"counted_as": "key_x"}, "restrictions.counted_as"),
    ],
)
async def test_restrictions_that_cannot_be_are_refused_by_name(house: ServiceHouse, given: Json, param: str) -> None:
    caller = await house.world.caller(Tier.PRO)
    code, body = await mint(house, caller.secret, **given)
    assert (code, body["param"]) == (400, param), body


async def test_refusals_teach(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    told = [(await mint(house, caller.secret, iccids=[]))[1], (await mint(house, caller.secret, toolsets=["nonesuch"]))[1]]
    async with house.world.client(caller.secret) as http:
        told.append((await http.post(KEYS, json={"name": "x", "scopes": ["write"]})).json())
    assert [{name: body.get(name) for name in ("error", "code", "param", "hint")} for body in told] == snapshot(
        [
            {
                "error": "restrictions.iccids: got an array; an empty list would allow nothing; leave it out for no such restriction",
                "code": "invalid_request",
                "param": "restrictions.iccids",
                "hint": "Only operations on one line, and only these lines, 1-100.",
            },
            {
                "error": "restrictions.toolsets: got nonesuch; there is no such toolset",
                "code": "invalid_request",
                "param": "restrictions.toolsets",
                "hint": (
                    "Known are connectivity, events, accounts, "
                    "subscribers, network, invoicing, billing, storefronts, assistant, setup, fleet, "
                    "changes, intelligence, core, operator, all"
                ),
            },
            {
                "error": "scopes: a key carries no scopes of its own; it may do what its maker may at the moment of each call",
                "code": "unknown_field",
                "param": "scopes",
                "hint": 'To make it do less, send restrictions, for example {"read_only": true} or {"toolsets": ["connectivity"]}',
            },
        ]
    )


async def test_an_object_without_members_restricts_nothing(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    async with house.world.client(caller.secret) as http:
        made = await http.post(KEYS, json={"name": "x", "restrictions": {}})
    assert (made.status_code, made.json()["restrictions"]) == (201, None)


@pytest.mark.parametrize(
    ("held", "asked", "param"),
    [
        ({"toolsets": ("setup", "connectivity")}, {"toolsets": ["connectivity", "subscribers"]}, "restrictions.toolsets"),
        ({"toolsets": ("setup",)}, {"toolsets": ["all"]}, "restrictions.toolsets"),
        ({"calls_per_day": 10}, {"calls_per_day": 11}, "restrictions.calls_per_day"),
    ],
)
async def test_a_key_cannot_be_given_what_its_maker_lacks(house: ServiceHouse, held: Json, asked: Json, param: str) -> None:
    _, secret = await limited(house.world, **held)
    code, body = await mint(house, secret, **asked)
    assert (code, body["code"], body["param"]) == (403, "credential_restricted", param)
    assert "can do no more than its maker" in body["error"]


@pytest.mark.parametrize(
    ("held", "asked", "effective"),
    [
        ({"toolsets": ("setup", "connectivity")}, {}, {"toolsets": ["setup", "connectivity"]}),
        ({"toolsets": ("setup", "connectivity")}, {"toolsets": ["connectivity"]}, {"toolsets": ["connectivity"]}),
        ({"toolsets": ("all",)}, {"toolsets": ["network"]}, {"toolsets": ["network"]}),
        ({"calls_per_day": 10}, {"calls_per_day": 3, "read_only": True}, {"calls_per_day": 3, "read_only": True}),
        ({"no_admin": True}, {"iccids": [ICCID]}, {"no_admin": True, "iccids": [ICCID]}),
    ],
)
async def test_a_key_inherits_what_it_was_not_asked_for(house: ServiceHouse, held: Json, asked: Json, effective: Json) -> None:
    _, secret = await limited(house.world, **held)
    code, body = await mint(house, secret, **asked)
    assert code == 201
    assert {name: value for name, value in body["restrictions"].items() if value not in (False, None, "none", [])} == effective


@pytest.mark.parametrize("held", [{"read_only": True}, {"iccids": (ICCID,)}, {"account_ids": (8101,)}, {"toolsets": ("connectivity",)}])
async def test_a_key_for_something_else_makes_no_keys(house: ServiceHouse, held: Json) -> None:
    _, secret = await limited(house.world, **held)
    code, body = await mint(house, secret)
    assert (code, body["code"]) == (403, "credential_restricted")


async def test_keys_made_with_a_limited_key_share_its_count(house: ServiceHouse) -> None:
    _, secret = await limited(house.world, calls_per_day=5)
    first, second = [(await mint(house, secret))[1]["secret"] for _ in range(2)]
    answers = [await status(house, each) for each in (first, second, first, second, secret)]
    assert answers == [200, 200, 200, 429, 429]
    house.world.clock.advance(86_400)
    grandchild = (await mint(house, first))[1]["secret"]
    assert [await status(house, each) for each in (grandchild, second, first, secret, grandchild, second)] == [200] * 4 + [429] * 2


async def test_a_key_of_the_same_name_is_not_handed_to_another_credential(house: ServiceHouse) -> None:
    caller, secret = await limited(house.world, toolsets=("setup",))
    async with house.world.client(caller.secret) as http:
        mine = await http.post(KEYS, json={"name": "child"}, headers={"Idempotency-Key": "k"})
        again = await http.post(KEYS, json={"name": "child"}, headers={"Idempotency-Key": "k"})
    assert mine.json() == again.json() and again.headers["idempotent-replayed"] == "true"
    code, body = await mint(house, secret, key="k")
    assert (code, body["code"]) == (409, "idempotency_key_reused")
    other = await house.world.caller(organisation=caller.organisation)
    assert (await mint(house, other.secret, key="k"))[0] == 409


async def test_a_login_takes_the_keys_along_that_were_made_with_it_or_with_those(house: ServiceHouse) -> None:
    world = house.world
    caller = await world.caller(Tier.PRO)
    now = world.clock.now()
    grant = AccessGrant("gnt_1", caller.person, caller.organisation, "cli", "CLI", "read write", "r", now, now + 1000)
    await world.store.write(insert_grant, grant)
    session = await world.pipeline.directory.by_session(SessionClaims(grant.person_id, None, grant.id), now)
    assert session is not None and session.expires_at == int(now) + 1000
    found = await ask(house, session, {"name": "by login"})
    assert (found["restrictions"]["no_admin"], found["expires_at"]) == (True, "2027-01-15T12:16:40Z")
    child = (await mint(house, found["secret"]))[1]["secret"]
    assert [await status(house, secret) for secret in (found["secret"], child)] == [200, 200]
    await world.store.write(revoke_grant, grant="gnt_1", now=now)
    assert [await status(house, secret) for secret in (found["secret"], child, caller.secret)] == [401, 401, 200]


async def ask(house: ServiceHouse, caller: Caller, arguments: Json) -> Json:
    """A call of somebody who is signed in at the built-in identity provider."""
    call = Call(operation=CATALOGUE.operations["create_api_key"], surface="mcp", request_id="req_1", caller=caller, arguments=arguments)
    return orjson.loads((await house.world.pipeline.run(call)).body)
