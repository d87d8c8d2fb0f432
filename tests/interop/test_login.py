"""The official clients log in at a server as a user starts it, knowing its address alone."""

import json
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
import httpx
import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from operations.catalogue import CATALOGUE
from registry.operation import Scope
from tests.conformance.test_conformance import MODULES, NODE
from tests.harness.processes import Child, Running, running
from tests.interop.consenting import ConsentingPerson, person_of
from tests.interop.test_clients import HERE

CLIENT = MODULES / "@modelcontextprotocol" / "client" / "dist" / "index.mjs"

CALLBACK = "http://localhost:53682/callback"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    data = tmp_path_factory.mktemp("login") / "data"
    with running(data) as server:
        yield server, data


@dataclass
class Kept:
    """What the client remembers, and a person who answers for it."""

    person: ConsentingPerson
    scopes: tuple[str, ...]
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    asked: list[str] = field(default_factory=list[str])
    where: str = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def open(self, url: str) -> None:
        self.asked.append(url)
        self.where = await self.person.answer(url, self.scopes)

    async def listen(self) -> AuthorizationCodeResult:
        said = parse_qs(urlsplit(self.where).query)
        return AuthorizationCodeResult(code=said["code"][0], state=said["state"][0], iss=said["iss"][0])


def provider(server: Running, kept: Kept, method: str | None = None) -> OAuthClientProvider:
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "interop", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": method}
    )
    return OAuthClientProvider(server.mcp_url, metadata, kept, kept.open, kept.listen)


@asynccontextmanager
async def connected(server: Running, auth: OAuthClientProvider) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(server.mcp_url, http_client=http)) as client,
    ):
        yield client


def reading_only(names: list[str]) -> bool:
    return all(CATALOGUE.operations[name].scope in (Scope.READ, Scope.READ | Scope.ANY) for name in names)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.long
@pytest.mark.parametrize("method", ["none", "client_secret_post", "client_secret_basic"])
async def test_the_python_client_logs_in_calls_renews_and_is_out_when_it_is_revoked(server: tuple[Running, Path], method: str) -> None:
    running_server, _ = server
    async with person_of(*server) as person:
        kept = Kept(person, ("read",))
        auth = provider(running_server, kept, method)
        async with connected(running_server, auth) as client:
            shown = await names(client)
            assert shown and reading_only(shown)
            plans = await client.call_tool("list_connectivity_plans", {})
            assert not plans.is_error
            first = kept.tokens
            assert first is not None and first.scope == "read" and first.refresh_token is not None
            [asked] = kept.asked
            assert parse_qs(urlsplit(asked).query)["scope"] == ["read write admin"]
            assert parse_qs(urlsplit(asked).query)["resource"] == [running_server.mcp_url]
            auth.context.token_expiry_time = 1.0  # long ago
            assert not (await client.call_tool("list_connectivity_plans", {})).is_error
            assert kept.tokens is not None and kept.tokens.refresh_token != first.refresh_token and len(kept.asked) == 1
            await revoke(running_server, kept)
            async with httpx.AsyncClient(headers={"authorization": f"Bearer {kept.tokens.access_token}"}) as http:
                refused = await http.post(running_server.mcp_url, json={})
            assert refused.status_code == 401
            kept.scopes = ("read", "write", "admin")
            assert not (await client.call_tool("list_connectivity_plans", {})).is_error
            assert len(kept.asked) == 2 and kept.tokens.scope == "read write admin"  # the client asked the person again


async def revoke(server: Running, kept: Kept) -> None:
    assert kept.tokens is not None and kept.client is not None
    form = {"token": str(kept.tokens.refresh_token), "client_id": kept.client.client_id}
    secret = kept.client.client_secret or ""
    basic = kept.client.token_endpoint_auth_method == "client_secret_basic"
    auth = httpx.BasicAuth(kept.client.client_id, secret) if basic else None
    async with httpx.AsyncClient(auth=auth) as http:
        done = await http.post(f"{server.base_url}/auth/revoke", data=form if basic or not secret else {**form, "client_secret": secret})
    assert done.status_code == 200, done.text


@pytest.mark.long
async def test_the_python_client_with_write_sees_and_calls_a_tool_that_writes(server: tuple[Running, Path]) -> None:
    async with person_of(*server) as person:
        kept = Kept(person, ("read", "write"))
        async with connected(server[0], provider(server[0], kept)) as client:
            assert not reading_only(await names(client))
            issued = await client.call_tool("create_connectivity_intent", {"plan": "test_eu_1gb", "idempotency_key": "login"})
            assert issued.structured_content is not None and issued.structured_content["status"] == "succeeded"


async def test_the_python_client_believes_no_answer_of_another_issuer(server: tuple[Running, Path]) -> None:
    async with person_of(*server) as person:
        kept = Kept(person, ("read",))

        async def mixed_up() -> AuthorizationCodeResult:
            return (await kept.listen()).model_copy(update={"iss": "https://evil.test"})

        metadata = OAuthClientMetadata.model_validate({"redirect_uris": [CALLBACK]})
        auth = OAuthClientProvider(server[0].mcp_url, metadata, kept, kept.open, mixed_up)
        with pytest.raises(BaseException) as failed:
            async with connected(server[0], auth) as client:
                await names(client)
        assert failed.group_contains(OAuthFlowError) if isinstance(failed.value, BaseExceptionGroup) else True
        assert kept.tokens is None


@pytest.mark.long
@pytest.mark.node
@pytest.mark.skipif(not NODE.exists(), reason="the Node tools are not installed: npm ci in tools/node")
async def test_the_typescript_client_logs_in_calls_and_renews(server: tuple[Running, Path]) -> None:
    async with person_of(*server) as person:
        words = [str(NODE), str(HERE / "login.mjs"), str(CLIENT), server[0].mcp_url, CALLBACK]
        with Child(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
            assert node.stdin is not None and node.stdout is not None and node.stderr is not None
            url = (await anyio.to_thread.run_sync(node.stdout.readline)).strip()
            assert url.startswith(server[0].base_url), node.stderr.read()
            node.stdin.write(await person.answer(url, ("read",)) + "\n")
            node.stdin.close()
            said = await anyio.to_thread.run_sync(node.stdout.read)
            assert await anyio.to_thread.run_sync(node.wait) == 0, node.stderr.read()
        told = json.loads(said)
        assert told["tools"] and reading_only(told["tools"])
        assert told["called"] and told["renewed"]
