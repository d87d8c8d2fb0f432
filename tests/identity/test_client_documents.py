"""Programs that are named by an https address: what stands there is fetched with care, and believed with less."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from clients.identity.client_metadata import DOCUMENTS_LIMIT, BadClientDocument, ClientDocuments, displayed_name
from tests.clients.webhooks.authority import self_signed
from tests.clients.webhooks.receiver import HookAnswer, HookReceiver, receiver, stall, status_answer
from tests.deliveries.post_office import LOOPBACK
from tests.identity.house import CALLBACK, IdentityHouse, open_identity_house, redirect_parameters
from tests.world import NOON, SITE
from transports.http.asgi import Receive, Scope, Send


class Page:
    """A server with TLS whose answer a test can change."""

    def __init__(self, receiver: HookReceiver) -> None:
        self.receiver = receiver
        self.url = receiver.url("localhost", "https").replace("/hook", "/client.json")

    def document(self, **changes: Any) -> dict[str, Any]:
        body = {"client_id": self.url, "client_name": "Good Program", "redirect_uris": [CALLBACK], **changes}
        return {name: value for name, value in body.items() if value is not None}

    def shows(self, *headers: str, line: str = "200 OK", media_type: str = "application/json", **changes: Any) -> None:
        body = json.dumps(self.document(**changes)).encode()
        self.receiver.answer = status_answer(line, f"content-type: {media_type}", *headers, body=body)

    def answers(self, answer: HookAnswer) -> None:
        self.receiver.answer = answer


@asynccontextmanager
async def programs_page(tmp_path: Path) -> AsyncGenerator[tuple[IdentityHouse, Page]]:
    server, trusting = self_signed(tmp_path, "localhost")
    async with receiver(status_answer("500 No"), server) as listening, open_identity_house(tmp_path, tls=trusting) as house:
        yield house, Page(listening)


async def test_a_program_logs_in_under_its_own_address_and_is_fetched_once(tmp_path: Path) -> None:
    async with programs_page(tmp_path) as (house, page):
        page.shows("cache-control: max-age=3600", client_uri="https://program.test")
        said = await house.consent(page.url, ("read",))
        answer = await house.exchange(page.url, said["code"])
        assert answer.status_code == 200, answer.text
        page.answers(status_answer("500 No"))
        tokens = (await house.refresh(page.url, answer.json()["refresh_token"])).json()
        assert (await house.mcp(tokens["access_token"])).status_code == 200
        assert (await house.ask(page.url)).status_code == 302
        assert page.receiver.connections == 1
        assert (await house.revoke(page.url, tokens["refresh_token"])).status_code == 200
        assert (await house.mcp(tokens["access_token"])).status_code == 401


class Memory:
    """What the official client remembers: nothing before the login."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.where = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """The address is all that there is to know."""


async def test_the_official_client_logs_in_by_its_address_and_registers_nowhere(tmp_path: Path) -> None:
    async with programs_page(tmp_path) as (house, page):
        page.shows()
        kept = Memory()

        async def open_browser(url: str) -> None:
            query = redirect_parameters(url)
            assert query["client_id"] == page.url
            shown = await house.get("/auth/authorize", **query)
            kept.where = await house.allow(redirect_parameters(shown.headers["location"])["request"], ("read",))

        async def listen() -> AuthorizationCodeResult:
            said = redirect_parameters(kept.where)
            return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await house.world.door({**scope, "state": {}}, receive, send)

        metadata = OAuthClientMetadata.model_validate({"redirect_uris": [CALLBACK]})
        auth = OAuthClientProvider(SITE.mcp_url, metadata, kept, open_browser, listen, client_metadata_url=page.url)
        async with (
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), auth=auth) as http,
            Client(streamable_http_client(SITE.mcp_url, http_client=http)) as client,
        ):
            assert "get_note" in [tool.name for tool in (await client.list_tools()).tools]
        assert kept.tokens is not None and kept.tokens.scope == "read"
        assert page.receiver.connections == 1


async def test_documents_are_kept_between_a_minute_and_a_day_and_failures_half_a_minute(tmp_path: Path) -> None:
    async with programs_page(tmp_path) as (house, page):
        for headers, least in (((), 60), (("cache-control: max-age=1",), 60), (("cache-control: no-store, max-age=99999999",), 86_400)):
            page.shows(*headers)
            count = page.receiver.connections
            await house.documents.get(page.url)
            house.world.clock.advance(least - 1)
            await house.documents.get(page.url)
            assert page.receiver.connections == count + 1
            house.world.clock.advance(1)
        page.answers(status_answer("503 Later"))
        for wait in (0, 29, 1):
            house.world.clock.advance(wait)
            with pytest.raises(BadClientDocument):
                await house.documents.get(page.url)
        assert page.receiver.connections == count + 3
        page.shows()
        house.world.clock.advance(30)
        assert (await house.documents.get(page.url)).name == "Good Program"
        assert DOCUMENTS_LIMIT == 1000


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"client_id": "https://other.test/client.json"}, "another client_id"),
        ({"client_id": None}, "another client_id"),
        ({"client_secret": "s"}, "public client"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "public client"),
        ({"redirect_uris": None}, "redirect_uris"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "redirect_uris"),
        ({"redirect_uris": ["http://program.test/"]}, "redirect_uris"),
        ({"line": "302 Found"}, "answered 302"),
        ({"line": "404 Not Found"}, "answered 404"),
        ({"media_type": "text/html"}, "application/json"),
        ({"client_name": "x" * 11_000}, "larger than"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_document_that_breaks_a_rule_names_nobody(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    async with programs_page(tmp_path) as (house, page):
        page.shows("location: https://localhost/other", **changes)
        refused = await house.ask(page.url)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_client")
        assert why in refused.json()["error_description"]
        assert "location" not in refused.headers
        assert page.receiver.connections == 1


async def test_a_body_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    async with programs_page(tmp_path) as (house, page):
        page.answers(status_answer("200 OK", "content-type: application/json", body=b" " * (1 << 20)))
        assert "larger than" in (await house.ask(page.url)).json()["error_description"]


async def test_a_redirect_uri_that_the_document_does_not_list_gets_no_answer(tmp_path: Path) -> None:
    async with programs_page(tmp_path) as (house, page):
        page.shows()
        assert (await house.ask(page.url, redirect_uri="https://evil.test/")).json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    "client_id",
    [
        "https://169.254.169.254/latest/meta-data",
        "https://127.0.0.1/client.json",
        "https://10.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://[::ffff:127.0.0.1]/client.json",
        "https://localhost/client.json",
        "https://metadata.internal/client.json",
        "https://2130706433/client.json",
        "https://user@program.test/client.json",
        "https://program.test/client.json#x",
        "https://program.test/a/../client.json",
        "https://program.test/",
        "https://program.test",
        "https://program.test:22/client.json",
    ],
)
async def test_an_address_inside_or_without_a_document_is_never_asked(house: IdentityHouse, client_id: str) -> None:
    refused = await house.ask(client_id)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_client")


async def test_a_name_that_leads_inside_is_blocked_when_it_is_looked_up(tmp_path: Path) -> None:
    async def inside(name: str) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    async with receiver(stall) as listening:
        documents = ClientDocuments(lambda: NOON, lookup=inside)
        with pytest.raises(BadClientDocument, match="blocked"):
            await documents.get(f"https://program.example.com:{listening.port}/client.json")
        assert listening.connections == 0
    assert LOOPBACK


def test_a_name_is_one_line_that_hides_nothing() -> None:
    assert displayed_name("A\u202eB\u200b\r\nC\x00 \u2066D\ufeff") == "AB C D"
    assert displayed_name("x" * 300) == "x" * 100
    assert displayed_name(7) == ""
