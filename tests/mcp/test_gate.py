"""What stands before JSON-RPC: credentials, addresses, methods, origins, headers, sizes."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from registry.call import Surface
from registry.errors import Unauthorized
from registry.ports import SessionClaims
from tests.mcp.house import MODERN, House, open_house, request
from tests.mcp.refusals import refusal_in
from tests.world import HOST, ORIGIN, Credentials

LIST = request("tools/list")
CALL = request("tools/call", name="get_note", arguments={"name": "x"})
METADATA_URL = f"https://{HOST}/.well-known/oauth-protected-resource/mcp"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


class McpOnly:
    """Sessions whose tokens were issued for the MCP resource alone."""

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        if surface != "mcp" or token != "for.mcp.alone":
            raise Unauthorized("The token was issued for another resource", presented=True)
        return SessionClaims("person-1", None)


@pytest.mark.parametrize("body", [LIST, CALL, INITIALIZE, request("server/discover"), request("resources/list"), {"method": "nonsense"}])
async def test_without_a_credential_nothing_is_served_and_the_way_to_log_in_is_told(house: House, body: dict[str, Any]) -> None:
    answer = await house.post(body)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == f'Bearer realm="connectivity", resource_metadata="{METADATA_URL}"'
    assert answer.json()["code"] == "unauthorized"
    assert answer.json()["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize("value", ["Bearer", "Bearer ", "Bearer ak_short", "Bearer a.b.c", f"Bearer ak_{'0' * 46}", "bearer x"])
async def test_a_bad_credential_is_named_as_one(house: House, value: str) -> None:
    answer = await house.post(LIST, authorization=value)
    assert answer.status_code == 401
    challenge = answer.headers["www-authenticate"]
    assert challenge == f'Bearer realm="connectivity", error="invalid_token", resource_metadata="{METADATA_URL}"'


async def test_another_scheme_counts_as_no_credential(house: House) -> None:
    answer = await house.post(LIST, authorization="Basic dXNlcjpwYXNz")
    assert answer.status_code == 401
    assert "error=" not in answer.headers["www-authenticate"]


async def test_a_revoked_key_stops_working_with_the_next_request(house: House, pro: Credentials) -> None:
    assert (await house.post(LIST, secret=pro.secret)).status_code == 200
    await house.world.revoke(pro)
    assert (await house.post(LIST, secret=pro.secret)).status_code == 401


async def test_a_session_token_must_have_been_issued_for_this_resource(tmp_path: Path) -> None:
    async with open_house(tmp_path, sessions=McpOnly()) as house:
        person = await house.world.person(subject="person-1")
        await house.world.join(person, await house.world.organisation())
        assert (await house.post(LIST, secret="for.mcp.alone")).status_code == 200
        assert (await house.post(LIST, secret="for.other.use")).status_code == 401


@pytest.mark.parametrize("name", ["TOKEN", "token", "Token", "access_token", "ACCESS_TOKEN", "api_key"])
async def test_a_credential_in_the_address_is_refused_with_the_reason(house: House, pro: Credentials, name: str) -> None:
    for secret in (None, pro.secret):
        answer = await house.post(LIST, secret=secret, path=f"/mcp?{name}={pro.secret}")
        assert answer.status_code == 400
        assert "logs" in answer.json()["error"]
        assert "Authorization: Bearer" in answer.json()["hint"]
        assert pro.secret not in answer.text


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_only_post_is_served(house: House, pro: Credentials, method: str) -> None:
    async with house.world.client(pro.secret) as http:
        answer = await http.request(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_the_metadata_is_public_and_names_no_server_when_there_is_none(house: House) -> None:
    async with house.world.client() as http:
        answer = await http.get("/.well-known/oauth-protected-resource/mcp")
        bare = await http.get("/.well-known/oauth-protected-resource")
        posted = await http.post("/.well-known/oauth-protected-resource/mcp")
    assert answer.json() == {
        "resource": f"https://{HOST}/mcp",
        "bearer_methods_supported": ["header"],
        "resource_name": "Connectivity",
        "resource_documentation": f"https://{HOST}/docs",
    }
    assert (bare.status_code, posted.status_code) == (404, 405)


async def test_the_metadata_names_the_authorization_servers(tmp_path: Path) -> None:
    async with open_house(tmp_path, authorization_servers=("https://id.test",)) as house, house.world.client() as http:
        answer = await http.get("/.well-known/oauth-protected-resource/mcp")
    assert answer.json()["authorization_servers"] == ["https://id.test"]


@pytest.mark.parametrize("origin", ["https://evil.test", "null", f"{ORIGIN}.evil.test", ORIGIN.replace("https", "http"), f"{ORIGIN}:444"])
async def test_a_page_of_another_origin_is_refused(house: House, pro: Credentials, origin: str) -> None:
    assert (await house.post(LIST, secret=pro.secret, origin=origin)).status_code == 403
    assert (await straight(house, pro, origin=origin)).status_code == 403


async def test_the_listed_origin_may_call(house: House, pro: Credentials) -> None:
    assert (await house.post(LIST, secret=pro.secret, origin=ORIGIN)).status_code == 200


async def test_the_door_refuses_other_hosts_even_without_the_http_door_in_front(house: House, pro: Credentials) -> None:
    assert (await straight(house, pro, host="evil.test")).status_code == 421
    assert (await straight(house, pro, host=f"{HOST}:8443")).status_code == 200


async def test_an_ipv6_host_stands_in_brackets(tmp_path: Path) -> None:
    async with open_house(tmp_path, allowed_hosts=("::1",)) as house:
        pro = await house.world.caller()
        assert [(await straight(house, pro, host=host)).status_code for host in ("[::1]", "[::1]:8000", "[::2]")] == [200, 200, 421]


async def test_a_deployment_that_serves_any_host_still_checks_origins(tmp_path: Path) -> None:
    async with open_house(tmp_path, allowed_hosts=("*",)) as house:
        pro = await house.world.caller()
        assert (await straight(house, pro, host="any.test")).status_code == 200
        assert (await straight(house, pro, host="any.test", origin="https://evil.test")).status_code == 403


async def straight(house: House, who: Credentials, **headers: str) -> httpx.Response:
    """A request to the MCP door itself."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=house.door), base_url=f"http://{HOST}") as http:
        given = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
        return await http.post("/mcp", json=LIST, headers={**given, "authorization": f"Bearer {who.secret}", **headers})


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-method": "tools/call"},
        {"mcp-method": "TOOLS/LIST"},
        {"mcp-protocol-version": "2027-01-01"},
        {"mcp-protocol-version": "garbage"},
    ],
)
async def test_headers_that_disagree_with_the_body_are_refused(house: House, pro: Credentials, headers: dict[str, str]) -> None:
    answer = await house.post(LIST, secret=pro.secret, **headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32020


async def test_every_pair_of_different_methods_is_a_mismatch(house: House, pro: Credentials) -> None:
    methods = ("tools/list", "tools/call", "prompts/list", "resources/list", "server/discover", "ping")
    for said in methods:
        for meant in methods:
            answer = await house.post(request(meant, name="get_note", arguments={}), secret=pro.secret, **{"mcp-method": said})
            assert (answer.status_code == 400 and answer.json()["error"]["code"] == -32020) == (said != meant), (said, meant)


async def test_the_name_in_the_header_must_be_that_of_the_body(house: House, pro: Credentials) -> None:
    answer = await house.post(CALL, secret=pro.secret, **{"mcp-name": "list_notes"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


async def test_white_space_around_header_values_does_not_matter(house: House, pro: Credentials) -> None:
    answer = await house.post(CALL, secret=pro.secret, **{"mcp-name": "get_note \t", "mcp-method": " tools/call "})
    assert answer.status_code == 200


async def test_a_body_over_a_mebibyte_is_refused(house: House, pro: Credentials) -> None:
    answer = await house.post(request("tools/call", name="get_note", arguments={"name": "x" * (1 << 20)}), secret=pro.secret)
    assert answer.status_code == 413


async def test_a_credential_is_checked_before_the_body_is_read(house: House) -> None:
    answer = await house.post(request("tools/call", name="get_note", arguments={"name": "x" * (1 << 20)}))
    assert answer.status_code == 401


@pytest.mark.parametrize("body", [[LIST, CALL], [], 7, "text", {"jsonrpc": "2.0"}])
async def test_what_is_no_request_is_refused(house: House, pro: Credentials, body: Any) -> None:
    given = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    async with house.world.client(pro.secret) as http:
        answer = await http.post("/mcp", json=body, headers=given)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


async def test_numbers_and_depths_that_are_not_welcome_over_http_are_not_welcome_here(house: House, pro: Credentials) -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    for value in (2**60, deep, "a\x00b"):
        answer = await house.post(request("tools/call", name="get_note", arguments={"name": value}), secret=pro.secret)
        result = answer.json()["result"]
        assert (result["isError"], refusal_in(result)["code"]) == (True, "invalid_json")


@pytest.mark.parametrize(("name", "value"), [("authorization", "{}"), ("authorization", "Basic {}"), ("x-api-key", "{}")])
async def test_a_credential_where_none_is_read_is_named_and_not_repeated(house: House, pro: Credentials, name: str, value: str) -> None:
    async with house.world.client() as http:
        answer = await http.post("/mcp", json=LIST, headers={name: value.format(pro.secret)})
    assert answer.status_code == 401 and "error=" not in answer.headers["www-authenticate"]
    assert answer.json()["error"].startswith("No credential: ") and "this address" not in answer.json()["error"]
    assert pro.secret not in answer.text and f"https://{HOST}/auth/api-keys" in answer.json()["hint"]


@pytest.mark.parametrize("version", [MODERN, "2025-11-25", None])
@pytest.mark.parametrize("body", ["[]", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
async def test_a_batch_is_told_that_there_are_none(house: House, pro: Credentials, version: str | None, body: str) -> None:
    given = {} if version is None else {"mcp-protocol-version": version}
    headers = {"authorization": f"Bearer {pro.secret}", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=house.app), base_url=f"http://{HOST}") as http:
        answer = await http.post("/mcp", content=body, headers={**headers, **given})
    assert answer.status_code == 400
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "The body is a JSON-RPC batch, which this server does not take: send each message in a request of its own",
        },
    }
