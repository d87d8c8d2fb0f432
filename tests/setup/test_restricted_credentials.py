"""A credential that may do less than its person gives nobody access, takes none away, and ends itself alone."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from storage.access_grants import AccessGrant, insert_grant
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

KEYS, MEMBERS = "/v1/api-keys", "/v1/members"
ICCID = "8988303700000100286"
RESTRICTED = [
    {"calls_per_day": 100},
    {"toolsets": ("setup",)},
    {"toolsets": ("all",)},
    {"calls_per_day": 100, "toolsets": ("setup", "intelligence")},
    {"read_only": True},
    {"iccids": (ICCID,)},
    {"account_ids": (8101,)},
    {"no_admin": True},
]


async def admin(house: ServiceHouse) -> Credentials:
    return await house.world.caller(Tier.ENTERPRISE)


async def key_of(house: ServiceHouse, caller: Credentials, **restrictions: Any) -> tuple[str, str]:
    return await house.world.key(caller.person, caller.organisation, restrictions=Restrictions(**restrictions))


async def login_of(house: ServiceHouse, caller: Credentials, scopes: str) -> tuple[str, str]:
    """A token of a login at the built-in identity provider, and its grant."""
    now, id = house.world.clock.now(), house.world.ids.new("gnt_")
    await house.world.store.write(
        insert_grant, AccessGrant(id, caller.person, caller.organisation, "client", "A program", scopes, "", now, now + 3600)
    )
    return id, f"login.{caller.person}.{id}"


async def ask(house: ServiceHouse, secret: str, method: str, path: str, body: Any = None) -> httpx.Response:
    async with house.world.client(secret) as http:
        return await http.request(method, path, json=body)


async def tries(house: ServiceHouse, caller: Credentials, secret: str) -> list[tuple[int, str]]:
    """Everything that would change who may act for the organisation."""
    other, _ = await house.world.key(caller.person, caller.organisation)
    colleague = await house.world.person()
    await house.world.join(colleague, caller.organisation, Role.MEMBER)
    answers = [
        await ask(house, secret, "POST", MEMBERS, {"email": "mallory@evil.example", "role": "admin"}),
        await ask(house, secret, "POST", MEMBERS, {"email": "bo@fjord.example"}),
        await ask(house, secret, "DELETE", f"{MEMBERS}/{colleague}"),
        await ask(house, secret, "DELETE", f"{MEMBERS}/{caller.person}"),
        await ask(house, secret, "DELETE", f"{KEYS}/{other}"),
    ]
    return [(answer.status_code, answer.json()["code"]) for answer in answers]


@pytest.mark.cases
@pytest.mark.parametrize("restrictions", RESTRICTED)
async def test_a_restricted_key_of_an_admin_invites_nobody_and_removes_nobody(house: ServiceHouse, restrictions: dict[str, Any]) -> None:
    caller = await admin(house)
    _, secret = await key_of(house, caller, **restrictions)
    before = (await ask(house, caller.secret, "GET", MEMBERS)).json()["data"]
    assert await tries(house, caller, secret) == [(403, "credential_restricted")] * 5
    people = (await ask(house, caller.secret, "GET", MEMBERS)).json()["data"]
    assert [one for one in people if one["status"] == "invited"] == []
    assert len(people) == len(before) + 1, "the colleague is there, and so is whoever made the key"
    assert {one["status"] for one in (await ask(house, caller.secret, "GET", KEYS)).json()["data"]} == {"active"}


async def test_a_key_without_restrictions_and_a_login_with_everything_do_all_that_their_person_may(house: ServiceHouse) -> None:
    caller = await admin(house)
    for secret in ((await key_of(house, caller))[1], (await login_of(house, caller, "read write admin"))[1]):
        assert [status for status, _ in await statuses(house, caller, secret)] == [201, 200, 200]


async def statuses(house: ServiceHouse, caller: Credentials, secret: str) -> list[tuple[int, Any]]:
    """Inviting, taking the invitation back, ending another key."""
    other, _ = await house.world.key(caller.person, caller.organisation)
    invited = await ask(house, secret, "POST", MEMBERS, {"email": "bo@fjord.example"})
    withdrawn = await ask(house, secret, "DELETE", f"{MEMBERS}/{invited.json()['id']}")
    revoked = await ask(house, secret, "DELETE", f"{KEYS}/{other}")
    return [(each.status_code, each.json()) for each in (invited, withdrawn, revoked)]


@pytest.mark.parametrize("scopes", ["read", "write", "read write", "admin", "read admin"])
async def test_a_login_that_was_granted_less_than_its_person_has_changes_nobodys_access(house: ServiceHouse, scopes: str) -> None:
    caller = await admin(house)
    _, secret = await login_of(house, caller, scopes)
    assert await tries(house, caller, secret) == [(403, "credential_restricted")] * 5


async def test_a_login_without_admin_is_not_restricted_while_its_person_is_no_admin(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO, Role.MEMBER)
    _, secret = await login_of(house, caller, "read write")
    other, _ = await house.world.key(caller.person, caller.organisation)
    assert (await ask(house, secret, "DELETE", f"{KEYS}/{other}")).status_code == 200
    await house.world.join(caller.person, caller.organisation, Role.ADMIN)
    other, _ = await house.world.key(caller.person, caller.organisation)
    refused = await ask(house, secret, "DELETE", f"{KEYS}/{other}")
    assert (refused.status_code, refused.json()["code"]) == (403, "credential_restricted")


async def test_a_restricted_key_ends_itself_and_what_was_made_with_it_and_nothing_else(house: ServiceHouse) -> None:
    caller = await admin(house)
    id, secret = await key_of(house, caller, calls_per_day=100)
    child = (await ask(house, secret, "POST", KEYS, {"name": "child"})).json()
    sibling = (await ask(house, secret, "POST", KEYS, {"name": "sibling"})).json()
    assert child["restrictions"]["calls_per_day"] == 100
    for key, ended in ((child, id), (child, sibling["id"]), (sibling, child["id"])):
        refused = await ask(house, key["secret"], "DELETE", f"{KEYS}/{ended}")
        assert (refused.status_code, refused.json()["code"]) == (403, "credential_restricted")
    assert (await ask(house, secret, "DELETE", f"{KEYS}/{child['id']}")).status_code == 403
    assert (await ask(house, sibling["secret"], "DELETE", f"{KEYS}/{sibling['id']}")).status_code == 200
    answer = await ask(house, secret, "DELETE", f"{KEYS}/{id}")
    assert (answer.status_code, answer.json()["status"]) == (200, "revoked")
    assert [(await ask(house, each, "GET", KEYS)).status_code for each in (secret, child["secret"], caller.secret)] == [401, 401, 200]


async def test_the_refusal_says_who_may(house: ServiceHouse) -> None:
    caller = await admin(house)
    _, secret = await key_of(house, caller, calls_per_day=100)
    said = [
        (await ask(house, secret, "POST", MEMBERS, {"email": "bo@fjord.example"})).json(),
        (await ask(house, secret, "DELETE", f"{KEYS}/{house.world.ids.new('key_')}")).json(),
    ]
    assert [{name: each.get(name) for name in ("error", "code", "param", "hint")} for each in said] == snapshot(
        [
            {
                "error": "This credential may do less than its person, so it changes nobody's access",
                "code": "credential_restricted",
                "param": None,
                "hint": "Use a key without restrictions, a login that was granted all that you may do, or the service's own pages",
            },
            {
                "error": "id: This credential may do less than its person, so it changes nobody's access but its own",
                "code": "credential_restricted",
                "param": "id",
                "hint": "Give its own id, key_01mcckg2g0000000000000000a, or use another credential",
            },
        ]
    )


async def test_a_restricted_key_keeps_nothing_by_an_answer_that_another_credential_got(house: ServiceHouse) -> None:
    """A stored answer is looked up after the caller was judged."""
    caller = await admin(house)
    _, secret = await key_of(house, caller, calls_per_day=100)
    async with house.world.client(caller.secret) as http:
        first = await http.post(MEMBERS, json={"email": "bo@fjord.example"}, headers={"Idempotency-Key": "k"})
        assert first.status_code == 201
    async with house.world.client(secret) as http:
        again = await http.post(MEMBERS, json={"email": "bo@fjord.example"}, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["code"]) == (403, "credential_restricted")


def test_the_operations_that_change_who_may_act_are_these() -> None:
    declared = {o.id: o.authority for o in CATALOGUE.operations.values() if o.authority is not None}
    assert {id: (each.itself, each.narrower) for id, each in declared.items()} == {
        "create_api_key": (None, True),
        "revoke_api_key": ("id", False),
        "invite_member": (None, False),
        "remove_member": (None, False),
    }
