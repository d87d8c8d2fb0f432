"""GET /v1/audit-log, over HTTP and as a tool."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from registry.errors import Refusal
from storage.people import ensure_person
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

AUDIT, PLANS, INTENTS = "/v1/audit-log", "/v1/connectivity/plans", "/v1/connectivity/intents"
Json = dict[str, Any]


async def log(house: ServiceHouse, who: Credentials, query: str = "") -> tuple[int, Json]:
    async with house.world.client(who.secret) as http:
        answer = await http.get(AUDIT + query)
    return answer.status_code, answer.json()


async def rows(house: ServiceHouse, who: Credentials, query: str = "") -> list[tuple[str, str, int]]:
    code, body = await log(house, who, query)
    assert code == 200, body
    return [(row["operation"], row["outcome"], row["status"]) for row in body["data"]]


async def busy(house: ServiceHouse, who: Credentials) -> None:
    """Reads, writes, a replay and a refusal, a second apart."""
    async with house.world.client(who.secret) as http:
        for method, path in (("GET", PLANS), ("POST", INTENTS), ("POST", INTENTS), ("GET", f"{INTENTS}/cni_none")):
            headers = {"Idempotency-Key": "k"} if method == "POST" else {}
            await http.request(method, path, json={} if method == "POST" else None, headers=headers)
            house.world.clock.advance(1)


async def test_every_call_is_in_the_log_as_soon_as_it_was_answered(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    await busy(house, caller)
    assert await rows(house, caller) == [
        ("get_connectivity_intent", "not_found", 404),
        ("create_connectivity_intent", "replayed", 201),
        ("create_connectivity_intent", "ok", 201),
        ("list_connectivity_plans", "ok", 200),
    ]
    assert (await rows(house, caller))[0] == ("list_audit_log", "ok", 200)


async def test_each_outcome_gives_the_rows_that_the_whole_log_has_of_it(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    await busy(house, caller)
    async with house.world.client(caller.secret) as http:
        await http.post(INTENTS, json={"plan": "test_none"}, headers={"Idempotency-Key": "none"})
    whole = await rows(house, caller)
    assert {outcome for _, outcome, _ in whole} == {"ok", "replayed", "not_found"}
    for outcome in ("ok", "replayed", "not_found", "quota_exceeded"):
        found = [row for row in await rows(house, caller, f"?outcome={outcome}") if row[0] != "list_audit_log"]
        assert found == [row for row in whole if row[1] == outcome]
    writes = [row for row in whole if row[0] == "create_connectivity_intent" and row[1] == "not_found"]
    assert await rows(house, caller, "?outcome=not_found&operation=create_connectivity_intent") == writes
    assert len(writes) == 1


def test_every_refusal_has_a_status_that_the_index_of_refused_calls_has() -> None:
    refusals, found = [Refusal], list[type[Refusal]]()
    while refusals:
        found.append(refusals.pop())
        refusals += found[-1].__subclasses__()
    assert len(found) > 50 and min(refusal.status for refusal in found) > 201


async def test_an_entry_says_who_and_how_and_nothing_of_what_was_sent(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    async with house.world.client(caller.secret) as http:
        answer = await http.post(INTENTS, json={"metadata": {"secret": "canary-7"}}, headers={"Idempotency-Key": "canary-8"})
    _, body = await log(house, caller)
    row = body["data"][0]
    assert (row.pop("principal"), row.pop("key_id")) == (caller.person, caller.key_id)
    assert row.pop("request_id") == answer.headers["request-id"] and row.pop("id").startswith("aud_")
    assert row == snapshot(
        {
            "object": "audit_entry",
            "at": "2027-01-15T12:00:00Z",
            "principal_name": None,
            "operation": "create_connectivity_intent",
            "outcome": "ok",
            "status": 201,
            "surface": "http",
            "milliseconds": 0.0,
            "change": None,
        }
    )
    assert "canary" not in str(body)


async def test_filters_narrow_the_log(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    await busy(house, caller)
    create = "create_connectivity_intent"
    assert await rows(house, caller, f"?operation={create}") == [(create, "replayed", 201), (create, "ok", 201)]
    assert await rows(house, caller, f"?operation={create}&outcome=ok") == [(create, "ok", 201)]
    assert await rows(house, caller, "?surface=mcp") == []
    assert await rows(house, caller, "?principal=usr_none") == []
    assert len(await rows(house, caller, f"?principal={caller.person}&surface=http&from=2027-01-15T12:00:00Z")) == 8
    assert await rows(house, caller, "?to=2027-01-15T12:00:00Z") == []
    assert await rows(house, caller, "?from=2027-01-15T12:00:01Z&to=2027-01-15T12:00:02Z") == [(create, "ok", 201)]
    assert await rows(house, caller, "?from=2027-01-15T12:00:05Z") == []


async def test_the_last_calls_with_a_key_are_found(house: ServiceHouse) -> None:
    caller, stranger = await house.world.caller(Tier.PRO), await house.world.caller(Tier.PRO)
    id, secret = await house.world.key(caller.person, caller.organisation)
    await busy(house, Credentials(caller.organisation, caller.person, id, secret))
    await busy(house, caller)
    create = "create_connectivity_intent"
    assert await rows(house, caller, f"?key_id={id}&limit=3") == [
        ("get_connectivity_intent", "not_found", 404),
        (create, "replayed", 201),
        (create, "ok", 201),
    ]
    assert await rows(house, caller, f"?key_id={id}&operation={create}&outcome=ok") == [(create, "ok", 201)]
    assert await rows(house, caller, f"?key_id={stranger.key_id}") == [] == await rows(house, stranger, f"?key_id={id}")
    code, body = await log(house, caller, "?key_id=")
    assert (code, body["param"]) == (400, "key_id")
    said = await house.mcp(CATALOGUE.operations["list_audit_log"], caller.secret, {"key_id": id, "limit": 1})
    assert [(row["operation"], row["key_id"]) for row in said.body["data"]] == [("get_connectivity_intent", id)]


async def test_the_log_has_pages(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    await busy(house, caller)
    _, first = await log(house, caller, "?limit=3&operation=create_connectivity_intent&to=2027-01-16T00:00:00Z")
    assert (len(first["data"]), first["has_more"]) == (2, False)
    _, first = await log(house, caller, "?limit=2")
    _, second = await log(house, caller, f"?limit=9&starting_after={first['data'][-1]['id']}")
    assert first["has_more"] and [row["operation"] for row in second["data"]][-2:] == [
        "create_connectivity_intent",
        "list_connectivity_plans",
    ]
    assert not {row["id"] for row in first["data"]} & {row["id"] for row in second["data"]}


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?starting_after=aud_", "starting_after"),
        ("?starting_after=5", "starting_after"),
        ("?starting_after=aud_99999999999999999999", "starting_after"),
        ("?starting_after=aud_99999999", "starting_after"),
        ("?from=yesterday", "from"),
        ("?to=2027-01-15", "to"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(house: ServiceHouse, query: str, param: str) -> None:
    caller = await house.world.caller(Tier.PRO)
    code, body = await log(house, caller, query)
    assert (code, body["param"]) == (400, param)


async def test_only_admins_read_it_and_only_their_own(house: ServiceHouse) -> None:
    admin, stranger = await house.world.caller(Tier.FREE), await house.world.caller(Tier.FREE)
    member = await house.world.caller(organisation=admin.organisation, role=Role.MEMBER)
    await busy(house, member)
    code, body = await log(house, member)
    assert (code, body["code"]) == (403, "role_required")
    seen = await rows(house, admin)
    assert seen[0] == ("list_audit_log", "role_required", 403) and len(seen) == 5
    assert await rows(house, stranger) == []
    _, secret = await house.world.key(admin.person, admin.organisation, restrictions=Restrictions(no_admin=True))
    code, body = await log(house, Credentials(admin.organisation, admin.person, "", secret))
    assert (code, body["code"]) == (403, "credential_restricted")


async def test_the_names_of_people_are_shown(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    person = await house.world.store.write(ensure_person, address="a@b.se", id="usr_named", now=1.0, name="Ada Berg")
    await house.world.join(person, admin.organisation, Role.MEMBER)
    _, secret = await house.world.key(person, admin.organisation)
    async with house.world.client(secret) as http:
        await http.get(PLANS)
    _, body = await log(house, admin)
    assert [(row["principal"], row["principal_name"]) for row in body["data"]] == [(person, "Ada Berg")]
    assert "a@b.se" not in str(body)


async def test_an_agent_reads_it_with_the_tool(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    await busy(house, caller)
    operation = CATALOGUE.operations["list_audit_log"]
    said = await house.mcp(operation, caller.secret, {"outcome": "not_found", "from": "2027-01-15T00:00:00Z"})
    assert [(row["operation"], row["status"]) for row in said.body["data"]] == [("get_connectivity_intent", 404)]
    said = await house.mcp(operation, caller.secret, {"surface": "mcp"})
    assert [row["operation"] for row in said.body["data"]] == ["list_audit_log"]
