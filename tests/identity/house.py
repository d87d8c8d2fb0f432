"""The service with its built-in identity provider behind both doors, and a program that logs in as any would."""

import base64
import hashlib
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from clients.identity.client_metadata import ClientDocuments
from operations.deps import Deps
from operations.people.consents import grant_consent
from operations.people.session_tokens import LOGIN_SCOPES, token_issuer
from registry.call import Surface
from registry.caller import Role, Tier
from registry.catalogue import Catalogue, Toolset
from registry.ports import SessionClaims, Sessions
from tests.deliveries.post_office import LOOPBACK
from tests.identity import session_only
from tests.mcp import notes
from tests.mcp.house import SETTINGS, request, wire_headers
from tests.world import SITE, World, open_world
from transports.http.asgi import Receive, Scope, Send
from transports.http.door import InnerApplication
from transports.mcp.door import MCP_PATHS, McpDoor
from transports.oauth.door import OauthProtocol
from transports.oauth.messages import protocol_paths
from transports.sessions import own_sessions

CATALOGUE = Catalogue([Toolset("people", "Who calls.", (session_only,)), Toolset("connectivity", "Notes.", (notes,))])
VERIFIER = "v" * 64
STATE = "state-canary-7c1f"
CALLBACK = "https://program.test/callback"


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class Late:
    """Sessions of dependencies that are made after whoever asks for them."""

    def __init__(self) -> None:
        self.sessions: Sessions | None = None

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        assert self.sessions is not None
        return await self.sessions.verify(token, surface)


@dataclass
class IdentityHouse:
    """The world, its people and their programs."""

    world: World
    documents: ClientDocuments
    person: str = ""
    organisation: str = ""
    seen: list[str] = field(default_factory=list[str])
    """Every secret that was handed out: none may lie anywhere in clear."""

    @property
    def deps(self) -> Deps:
        return self.world.pipeline.deps

    async def get(self, path: str, **query: str) -> httpx.Response:
        async with self.world.client() as http:
            return await http.get(path, params=query)

    async def post(self, path: str, form: dict[str, str], **headers: str) -> httpx.Response:
        async with self.world.client(**headers) as http:
            return await http.post(path, data=form)

    async def register(self, **changes: Any) -> httpx.Response:
        body = {"client_name": "A program", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", **changes}
        async with self.world.client() as http:
            return await http.post("/auth/register", json={name: value for name, value in body.items() if value is not None})

    async def program(self, **changes: Any) -> dict[str, Any]:
        answer = await self.register(**changes)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def ask(self, client_id: str, **changes: str | None) -> httpx.Response:
        """An authorization request; None leaves a parameter out."""
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "state": STATE,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "resource": SITE.mcp_url,
            **changes,
        }
        return await self.get("/auth/authorize", **{name: value for name, value in query.items() if value is not None})

    async def request_token(self, client_id: str, **changes: str | None) -> str:
        answer = await self.ask(client_id, **changes)
        assert answer.status_code == 302, answer.text
        location = answer.headers["location"]
        assert location.startswith(f"{SITE.base_url}/auth/consent?request="), location
        token = redirect_parameters(location)["request"]
        self.seen.append(token)
        return token

    async def consent(self, client_id: str, scopes: Sequence[str] = ("read", "write", "admin"), **changes: str | None) -> dict[str, str]:
        """Ask, and have the person say yes: what the program is told."""
        token = await self.request_token(client_id, **changes)
        where = await self.allow(token, scopes)
        return redirect_parameters(where)

    async def allow(self, token: str, scopes: Sequence[str] = ("read", "write", "admin")) -> str:
        where = await grant_consent(
            self.deps, token=token, person=self.person, organisation=self.organisation, scopes=scopes, now=self.world.clock.now()
        )
        self.seen.append(redirect_parameters(where)["code"])
        return where

    async def exchange(self, client_id: str, code: str, *, authorization: str = "", **changes: str | None) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **changes,
        }
        headers = {"Authorization": authorization} if authorization else {}
        return self.noted(await self.post("/auth/token", {name: value for name, value in form.items() if value is not None}, **headers))

    async def refresh(self, client_id: str, token: str, **changes: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": token, **changes}
        return self.noted(await self.post("/auth/token", form))

    async def revoke(self, client_id: str, token: str, **changes: str) -> httpx.Response:
        return await self.post("/auth/revoke", {"client_id": client_id, "token": token, **changes})

    async def login(self, scopes: Sequence[str] = ("read", "write", "admin"), **changes: str | None) -> tuple[str, dict[str, Any]]:
        client_id = (await self.program())["client_id"]
        said = await self.consent(client_id, scopes, **changes)
        answer = await self.exchange(client_id, said["code"])
        assert answer.status_code == 200, answer.text
        return client_id, answer.json()

    async def login_of_new_member(self) -> tuple[str, dict[str, Any]]:
        self.person = await self.world.person()
        await self.world.join(self.person, self.organisation, Role.ADMIN)
        return await self.login()

    def noted(self, answer: httpx.Response) -> httpx.Response:
        if answer.status_code == 200:
            self.seen += [value for name, value in answer.json().items() if name in ("access_token", "refresh_token")]
        return answer

    async def http(self, token: str, path: str = "/v1/who") -> httpx.Response:
        async with self.world.client(token) as http:
            return await http.get(path)

    async def mcp(self, token: str, method: str = "tools/list", **params: Any) -> httpx.Response:
        body = request(method, **params)
        async with self.world.client(token) as http:
            return await http.post("/mcp", json=body, headers=wire_headers(body))

    async def tools(self, token: str) -> list[str]:
        answer = await self.mcp(token)
        assert answer.status_code == 200, answer.text
        return [tool["name"] for tool in answer.json()["result"]["tools"]]


def redirect_parameters(location: str) -> dict[str, str]:
    """The parameters of a redirect; none may stand there twice."""
    found = parse_qs(urlsplit(location).query, keep_blank_values=True, strict_parsing=True)
    assert all(len(values) == 1 for values in found.values()), location
    return {name: values[0] for name, values in found.items()}


@asynccontextmanager
async def open_identity_house(folder: Path, *, tls: ssl.SSLContext | None = None, url: str | None = None) -> AsyncGenerator[IdentityHouse]:
    """Both doors, the protocol, a person with an organisation of the enterprise tier."""
    doors: list[McpDoor] = []
    protocols: list[OauthProtocol] = []
    late = Late()
    paths = protocol_paths(SITE.base_url)

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        await (protocols[0] if path in paths else doors[0])(scope, receive, send)

    async def stated(scope: Scope, receive: Receive, send: Send) -> None:
        await inner({**scope, "state": scope.get("state", {})}, receive, send)

    async with open_world(folder, CATALOGUE, url=url, sessions=late, inner=InnerApplication(stated, MCP_PATHS | paths)) as world:
        deps = world.pipeline.deps
        late.sessions = own_sessions(deps)
        documents = ClientDocuments(world.clock.now, exempt=LOOPBACK if tls else (), tls=tls)
        protocols.append(OauthProtocol(deps, documents))
        settings = replace(SETTINGS, authorization_servers=(token_issuer(SITE),), scopes=LOGIN_SCOPES)
        doors.append(McpDoor(world.pipeline, settings, lambda call, error: world.faults.append(("", call.operation.id, error))))
        person, organisation = await world.person(), await world.organisation(Tier.ENTERPRISE)
        await world.join(person, organisation, Role.ADMIN)
        async with doors[0].running():
            yield IdentityHouse(world, documents, person, organisation)
        assert world.faults == []
