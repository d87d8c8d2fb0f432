"""Session tokens at the HTTP and MCP doors: believed when every rule holds, and never for more than our own store says."""

import json
from collections.abc import AsyncGenerator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from clients.identity.jwks import JwksCache
from clients.identity.session_tokens import HttpAudience, McpAudience, TokenVerifier
from registry.caller import Role, Tier
from registry.catalogue import Catalogue, Toolset
from storage.people import create_person
from tests.clients.identity.provider import ISSUER, KeysProvider, claims, rsa_jwk, signed_token
from tests.harness.processes import running
from tests.harness.thread_servers import serving_in_thread
from tests.identity import session_only
from tests.world import NOON, SITE, World, open_world
from transports.sessions import ProviderSessions

CATALOGUE = Catalogue([Toolset("people", "Who calls.", (session_only,))])
AUDIENCE = "https://api.reseller.test"


def session(**changes: object) -> str:
    """A token that is good at noon of the test's day."""
    return signed_token(claims(**{"iat": int(NOON) - 10, "exp": int(NOON) + 600, "aud": AUDIENCE, "azp": None, **changes}))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    clock = lambda: NOON  # noqa: E731
    verifier = TokenVerifier(ISSUER, JwksCache(KeysProvider(rsa_jwk("rsa-1")), clock), clock)
    sessions = ProviderSessions(verifier, HttpAudience(AUDIENCE), McpAudience(SITE.mcp_url))
    async with open_world(tmp_path, CATALOGUE, sessions=sessions) as world:
        yield world


async def member(world: World, subject: str = "user_1", tier: Tier = Tier.PRO) -> tuple[str, str]:
    person, organisation = await world.person(subject=subject), await world.organisation(tier)
    await world.join(person, organisation, Role.MEMBER)
    return person, organisation


async def ask(world: World, token: str, path: str = "/v1/who", method: str = "GET") -> httpx.Response:
    async with world.client(token) as http:
        return await http.request(method, path, json={} if method == "POST" else None)


async def test_a_session_acts_as_the_person_our_store_knows(world: World) -> None:
    person, organisation = await member(world)
    answer = await ask(world, session())
    assert answer.json() == {"kind": "session", "principal": person, "organisation": organisation}


async def test_the_active_organisation_of_the_token_counts_only_for_its_members(world: World) -> None:
    _, first = await member(world)
    second = await world.organisation(Tier.FREE)
    assert (await ask(world, session(org_id=first))).json()["organisation"] == first
    assert (await ask(world, session(org_id=second))).json()["organisation"] == ""
    refused = await ask(world, session(org_id=second), "/v1/mine")
    assert (refused.status_code, refused.json()["code"]) == (409, "organization_required")


@pytest.mark.parametrize("hint", ["\ud800", "org\0", "\n", ""])
async def test_an_organisation_that_no_database_can_hold_is_none(world: World, hint: str) -> None:
    _, first = await member(world)
    answer = await ask(world, session(org_id=hint), "/v1/mine")
    assert (answer.status_code, answer.json()["organisation"]) == (200, first)


async def test_an_unknown_person_has_a_stable_name_and_no_organisation(world: World) -> None:
    first, again, other = [(await ask(world, session(sub=sub))).json() for sub in ("a", "a", "b")]
    assert first == again != other
    assert first["organisation"] == ""
    assert first["principal"].startswith("usr_")


async def test_two_subjects_of_one_provider_never_share_a_person(world: World) -> None:
    await world.store.write(create_person, id="usr_x", now=NOON, subject="user_9")
    assert (await ask(world, session(sub="user_9"))).json()["principal"] == "usr_x"
    assert (await ask(world, session(sub="user_90"))).json()["principal"] != "usr_x"


async def test_what_only_a_person_may_do_takes_a_session_and_no_api_key(world: World) -> None:
    await member(world)
    caller = await world.caller(Tier.ENTERPRISE)
    assert (await ask(world, session(), "/v1/in-person", "POST")).json()["kind"] == "session"
    refused = await ask(world, caller.secret, "/v1/in-person", "POST")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == 'Bearer realm="connectivity", error="invalid_token"'


class KeySet(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"keys": [rsa_jwk("rsa-1")]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def key_set() -> Iterator[str]:
    with serving_in_thread(HTTPServer(("127.0.0.1", 0), KeySet)) as server:
        yield f"http://127.0.0.1:{server.server_port}/jwks"


@pytest.mark.long
def test_a_configured_provider_is_asked_for_its_keys_and_mcp_wants_its_own_audience(tmp_path: Path, key_set: str) -> None:
    from registry.clock import SystemClock

    now = int(SystemClock().now())
    environment = {"SERVICE_AUTH_ISSUER": ISSUER, "SERVICE_AUTH_JWKS_URL": key_set, "SERVICE_AUTH_AUDIENCE": AUDIENCE}
    with running(tmp_path / "data", environment) as server:

        def status(url: str, audience: str) -> int:
            token = signed_token(claims(iat=now - 10, exp=now + 600, aud=audience, azp=None))
            headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            with httpx.Client(headers=headers) as http:
                return (http.post(url, json=message) if url.endswith("/mcp") else http.get(url)).status_code

        intents = f"{server.base_url}/v1/connectivity/intents"
        assert status(intents, AUDIENCE) == 409  # a person whom the store does not know acts for no organisation
        assert status(intents, server.mcp_url) == 401
        assert status(server.mcp_url, server.mcp_url) == 200
        assert status(server.mcp_url, AUDIENCE) == 401
