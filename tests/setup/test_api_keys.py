"""POST /v1/api-keys."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from registry.authentication import is_api_key
from registry.caller import Role, Tier
from storage.api_keys import list_keys
from tests.contract.stage import ServiceHouse
from tests.world import NOON

KEYS = "/v1/api-keys"


async def mint(http: httpx.AsyncClient, key: str | None = None, **body: Any) -> httpx.Response:
    return await http.post(KEYS, json={"name": "order service", **body}, headers={"Idempotency-Key": key} if key else {})


async def works(house: ServiceHouse, secret: object) -> int:
    async with house.world.client(str(secret)) as http:
        return (await http.get("/v1/connectivity/intents")).status_code


@pytest.mark.rule("4.9.1")
@pytest.mark.rule("5.1.1")
async def test_a_key_acts_for_its_maker_s_organisation(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    async with house.world.client(caller.secret) as http:
        answer = await mint(http, description="on server 7")
    body: dict[str, Any] = answer.json()
    secret, id = body.pop("secret"), body.pop("id")
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert body == {
        "object": "api_key",
        "name": "order service",
        "description": "on server 7",
        "organization_id": caller.organisation,
        "created_at": "2027-01-15T12:00:00Z",
        "expires_at": None,
        "restrictions": None,
        "worst_case": None,
        "warnings": [],
    }
    assert is_api_key(secret) and re.fullmatch(r"key_[0-9a-z]{26}", id)
    async with house.world.client(secret) as http:
        made = await http.post("/v1/connectivity/intents", json={}, headers={"Idempotency-Key": "k"})
        assert made.status_code == 201
    async with house.world.client(caller.secret) as http:
        assert (await http.get("/v1/connectivity/intents")).json()["data"] == [made.json()]


async def test_the_secret_is_nowhere_in_the_database(house: ServiceHouse, tmp_path: Path) -> None:
    caller = await house.world.caller(Tier.PRO)
    async with house.world.client(caller.secret) as http:
        secret = (await mint(http, key="k")).json()["secret"]
        assert (await mint(http, key="k")).json()["secret"] == secret
    rows = await house.world.store.read(list_keys, organisation=caller.organisation)
    assert sorted(row.prefix for row in rows) == sorted([secret[:12], caller.secret[:12]])
    await house.world.journal.flush()
    dump = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert len(dump) > 4096
    assert secret[12:].encode() not in dump and caller.secret[12:].encode() not in dump


@pytest.mark.rule("4.9.2")
async def test_a_person_without_an_organisation_gets_a_key_of_their_own(house: ServiceHouse) -> None:
    for subject in ("known", "unknown"):
        if subject == "known":
            await house.world.person(subject=subject)
        async with house.world.client(f"session.{subject}.org_none") as http:
            answer = await mint(http)
        assert (answer.status_code, answer.json()["organization_id"]) == (201, None)
        async with house.world.client(answer.json()["secret"]) as http:
            refused = await http.get("/v1/connectivity/intents")
            assert (refused.status_code, refused.json()["code"]) == (409, "organization_required")
            assert (await mint(http)).status_code == 201


@pytest.mark.rule("4.9.3")
@pytest.mark.parametrize("field", ["scopes", "scope", "role", "tier", "organization_id", "org_id", "restrictions_"])
async def test_a_key_takes_no_rights_from_its_body(house: ServiceHouse, field: str) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    async with house.world.client(caller.secret) as http:
        answer = await mint(http, **{field: "admin"})
    assert (answer.status_code, answer.json()["code"], answer.json()["param"]) == (400, "unknown_field", field)


async def test_a_key_has_the_role_its_maker_has_at_the_moment(house: ServiceHouse) -> None:
    world = house.world
    caller = await world.caller(Tier.FREE, Role.MEMBER)
    async with world.client(caller.secret) as http:
        secret = (await mint(http)).json()["secret"]
    async with world.client(secret) as http:
        product = {"name": "x", "data_mb": 1, "validity_days": 1, "countries": ["DE"], "price_cents": 1, "currency": "EUR"}
        product["package_template_id"] = 1
        refused = await http.post("/v1/connectivity/products", json=product, headers={"Idempotency-Key": "k"})
        assert refused.status_code == 402
        await world.move_to(Tier.PRO, caller.organisation)
        made = await http.post("/v1/connectivity/products", json=product, headers={"Idempotency-Key": "k"})
        assert made.status_code == 201
        await world.leave(caller.person, caller.organisation)
        assert (await http.get("/v1/connectivity/products")).status_code == 401


async def test_a_key_ends_when_it_was_told_to(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    async with house.world.client(caller.secret) as http:
        body = (await mint(http, seconds_until_expiration=60)).json()
    assert body["expires_at"] == "2027-01-15T12:01:00Z"
    house.world.clock.advance(59.999)
    assert await works(house, body["secret"]) == 200
    house.world.clock.advance(0.001)
    assert await works(house, body["secret"]) == 401
    assert house.world.clock.now() == NOON + 60


@pytest.mark.parametrize("body", [{"name": "x" * 64}, {"seconds_until_expiration": 31_536_000}, {"seconds_until_expiration": 60.0}])
async def test_what_keeps_the_rules_is_taken(house: ServiceHouse, body: dict[str, Any]) -> None:
    caller = await house.world.caller(Tier.PRO)
    async with house.world.client(caller.secret) as http:
        assert (await mint(http, **body)).status_code == 201


async def test_a_mistyped_key_is_refused(house: ServiceHouse) -> None:
    secret = (await house.world.caller(Tier.PRO)).secret
    for position in range(len(secret)):
        typo = secret[:position] + ("A" if secret[position] != "A" else "B") + secret[position + 1 :]
        assert not is_api_key(typo)
    assert await works(house, secret[:-1]) == 401


async def test_minting_is_a_tool_only_for_who_asks_for_it(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    async with house.world.client(caller.secret) as http:
        listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
        plain = (await http.post("/mcp", json=listed, headers=HEADERS)).text
        asked = (await http.post("/mcp?toolsets=setup", json=listed, headers=HEADERS)).text
    assert '"create_connectivity_intent"' in plain and '"create_api_key"' not in plain
    assert '"create_connectivity_intent"' not in asked and '"create_api_key"' in asked


ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
