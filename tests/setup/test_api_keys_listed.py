"""GET /v1/api-keys and DELETE /v1/api-keys/{id}."""

from typing import Any

from inline_snapshot import snapshot

from registry.caller import Role, Tier
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

KEYS = "/v1/api-keys"
Json = dict[str, Any]


async def mint(house: ServiceHouse, secret: str, **body: Any) -> Json:
    async with house.world.client(secret) as http:
        answer = await http.post(KEYS, json={"name": "child", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def listed(house: ServiceHouse, secret: str, query: str = "") -> Json:
    async with house.world.client(secret) as http:
        return (await http.get(KEYS + query)).json()


async def revoked(house: ServiceHouse, secret: str, id: str) -> tuple[int, Json]:
    async with house.world.client(secret) as http:
        answer = await http.delete(f"{KEYS}/{id}")
    return answer.status_code, answer.json()


async def works(house: ServiceHouse, secret: str) -> bool:
    async with house.world.client(secret) as http:
        return (await http.get("/v1/api-keys")).status_code == 200


async def test_the_list_tells_of_every_key_but_its_secret(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    made = await mint(house, caller.secret, name="desk", description="of the support", seconds_until_expiration=60)
    limited = await mint(house, caller.secret, restrictions={"read_only": True, "calls_per_day": 9})
    house.world.clock.advance(60)
    await house.world.pipeline.directory.flush()  # pyright: ignore[reportAttributeAccessIssue]  # as the worker does
    answer = await listed(house, caller.secret)
    names = {made["id"]: "KEY-1", limited["id"]: "KEY-2", caller.key_id: "KEY-0", caller.person: "PERSON", caller.organisation: "ORG"}
    rows = [
        {name: names.get(str(value), value) for name, value in row.items() if name not in ("made_by", "prefix")} for row in answer["data"]
    ]
    assert rows[0] == snapshot(
        {
            "id": "KEY-2",
            "object": "api_key",
            "name": "child",
            "description": None,
            "organization_id": "ORG",
            "status": "active",
            "created_at": "2027-01-15T12:00:00Z",
            "expires_at": None,
            "revoked_at": None,
            "last_used_on": None,
            "restrictions": {
                "read_only": True,
                "no_admin": False,
                "toolsets": None,
                "iccids": None,
                "account_ids": None,
                "calls_per_day": 9,
                "tags": None,
                "spend_per_call": None,
                "spend_per_day": None,
                "spend_per_month": None,
                "times": None,
                "approve_above": None,
                "approval": "none",
                "another_person": False,
                "inherited": [],
            },
            "made_with": "KEY-0",
        }
    )
    told = ("id", "name", "description", "status", "expires_at", "last_used_on", "restrictions", "made_with")
    assert [[row[name] for name in told] for row in rows[1:]] == [
        ["KEY-1", "desk", "of the support", "expired", "2027-01-15T12:01:00Z", None, None, "KEY-0"],
        ["KEY-0", "test", None, "active", None, "2027-01-15", None, None],
    ]
    assert [row["made_by"] for row in answer["data"]] == [{"id": caller.person, "name": None}] * 3
    assert [row["prefix"] for row in answer["data"]] == [limited["secret"][:12], made["secret"][:12], caller.secret[:12]]
    assert made["secret"][12:] not in str(answer) and "digest" not in str(answer)


async def test_the_list_has_pages(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    ids = [caller.key_id, *[(await mint(house, caller.secret))["id"] for _ in range(3)]]
    first = await listed(house, caller.secret, "?limit=3")
    second = await listed(house, caller.secret, f"?limit=3&starting_after={first['data'][-1]['id']}")
    assert [row["id"] for row in first["data"] + second["data"]] == ids[::-1]
    assert (first["has_more"], second["has_more"]) == (True, False)


async def test_a_revoked_key_is_refused_from_the_next_call_on(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    made = await mint(house, caller.secret)
    assert await works(house, made["secret"])
    code, body = await revoked(house, caller.secret, made["id"])
    assert (code, body["status"], body["revoked_at"]) == (200, "revoked", "2027-01-15T12:00:00Z")
    assert not await works(house, made["secret"]) and await works(house, caller.secret)
    house.world.clock.advance(5)
    assert await revoked(house, caller.secret, made["id"]) == (200, body)


async def test_a_key_may_revoke_itself(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.FREE, Role.MEMBER)
    assert (await revoked(house, caller.secret, caller.key_id))[0] == 200
    assert not await works(house, caller.secret)


async def test_a_key_takes_along_what_was_made_with_it(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    child = await mint(house, caller.secret)
    grandchild, sibling = await mint(house, child["secret"]), await mint(house, caller.secret)
    assert (await revoked(house, caller.secret, child["id"]))[0] == 200
    rows = {row["id"]: (row["status"], row["made_with"]) for row in (await listed(house, caller.secret))["data"]}
    assert rows == {
        caller.key_id: ("active", None),
        child["id"]: ("revoked", caller.key_id),
        grandchild["id"]: ("revoked", child["id"]),
        sibling["id"]: ("active", caller.key_id),
    }
    assert not await works(house, grandchild["secret"])


async def test_a_key_made_with_a_key_ends_with_it_at_the_latest(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    short = await mint(house, caller.secret, seconds_until_expiration=100)
    child = await mint(house, short["secret"], seconds_until_expiration=1000)
    assert child["expires_at"] == short["expires_at"]


async def test_a_member_revokes_their_own_keys_only_and_an_admin_all(house: ServiceHouse) -> None:
    world = house.world
    admin = await world.caller(Tier.PRO)
    member = await world.caller(organisation=admin.organisation, role=Role.MEMBER)
    stranger = await world.caller(Tier.PRO)
    theirs, own = await mint(house, admin.secret), await mint(house, member.secret)
    hidden = await revoked(house, member.secret, theirs["id"])
    unknown = await revoked(house, member.secret, "key_" + "0" * 26)
    foreign = await revoked(house, stranger.secret, theirs["id"])
    answers = [(code, {name: body[name] for name in ("error", "code", "param", "hint")}) for code, body in (hidden, unknown, foreign)]
    assert answers[0] == answers[1] == answers[2] and answers[0][0] == 404
    assert await works(house, theirs["secret"])
    assert (await revoked(house, member.secret, own["id"]))[0] == 200
    assert (await revoked(house, admin.secret, member.key_id))[0] == 200
    assert not await works(house, member.secret)
    assert [row["id"] for row in (await listed(house, stranger.secret))["data"]] == [stranger.key_id]


async def test_a_person_without_an_organisation_has_keys_of_their_own(house: ServiceHouse) -> None:
    person = await house.world.person()
    id, secret = await house.world.key(person, None)
    caller = Credentials("", person, id, secret)
    child = await mint(house, secret)
    other = await house.world.key(await house.world.person(), None)
    assert [row["id"] for row in (await listed(house, caller.secret))["data"]] == [child["id"], id]
    assert (await revoked(house, other[1], child["id"]))[0] == 404
    assert (await revoked(house, secret, child["id"]))[0] == 200
    assert not await works(house, child["secret"])


async def test_a_repeated_revocation_under_one_key_is_one(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    made = await mint(house, caller.secret)
    async with house.world.client(caller.secret) as http:
        first, second = [await http.delete(f"{KEYS}/{made['id']}", headers={"Idempotency-Key": "r"}) for _ in range(2)]
    assert first.json() == second.json() and second.headers["idempotent-replayed"] == "true"
