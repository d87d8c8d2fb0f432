"""What an attack found open, and what stands in its place."""

from pathlib import Path

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import TIERS
from tests.harness.processes import running
from tests.mcp.house import open_house, request
from tests.world import open_world

JSON_RPC = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'


async def test_a_key_made_with_a_key_that_ends_does_not_outlive_it(tmp_path: Path) -> None:
    async with open_world(tmp_path, CATALOGUE) as world:
        caller = await world.caller()
        _, secret = await world.key(caller.person, caller.organisation, expires_at=int(world.clock.now()) + 60)
        async with world.client(secret) as http:
            for body in ({"name": "for ever"}, {"name": "a year", "seconds_until_expiration": 31_536_000}):
                assert (await http.post("/v1/api-keys", json=body)).json()["expires_at"] == "2027-01-15T12:01:00Z"
            shorter = await http.post("/v1/api-keys", json={"name": "shorter", "seconds_until_expiration": 60})
            assert shorter.json()["expires_at"] == "2027-01-15T12:01:00Z"
        world.clock.advance(61)
        async with world.client(shorter.json()["secret"]) as http:
            assert (await http.get("/v1/connectivity/plans")).status_code == 401


@pytest.mark.long
def test_public_pages_share_the_public_limit_of_an_address_and_health_has_none(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server, httpx.Client(base_url=server.base_url) as http:
        statuses = [http.get(path).status_code for _ in range(40) for path in ("/openapi.json", "/docs")]
        assert statuses[:60] == [200] * 60
        assert 429 in statuses[60:]
        assert {http.get("/health").status_code for _ in range(70)} == {200}


@pytest.mark.long
def test_a_name_that_stands_twice_in_an_mcp_message_is_refused(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server, httpx.Client(headers={**JSON_RPC, "authorization": f"Bearer {server.api_key}"}) as http:
        call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_connectivity_intent","arguments":%s}}'
        arguments = b'{"plan":"test_eu_1gb","idempotency_key":"a","idempotency_key":"b"}'
        refused = http.post(server.mcp_url, content=call % arguments)
        assert (refused.status_code, refused.json()["code"], refused.json()["param"]) == (400, "invalid_json", "idempotency_key")
        assert http.post(server.mcp_url, content=LIST).status_code == 200
        assert http.post(server.mcp_url, content=b"{no json").status_code == 400
        assert http.get(f"{server.base_url}/v1/connectivity/intents").json()["data"] == []


async def test_lists_and_handshakes_over_mcp_are_limited_like_calls(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:  # its clock stands still, so nothing is filled up however slow the machine is
        key, most = (await house.world.caller(Tier.FREE)).secret, 2 * TIERS[Tier.FREE].burst_size
        answers = [await house.post(request("tools/list"), secret=key) for _ in range(most + 3)]
        assert [answer.status_code for answer in answers] == [200] * most + [429] * 3
        refused = answers[-1]
        assert (refused.json()["code"], refused.headers["retry-after"]) == ("rate_limited", "1")
        house.world.clock.advance(1)
        assert (await house.post(request("tools/list"), secret=key)).status_code == 200
