"""The service with the test operations behind both doors, and MCP clients of either era."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp.client.client import Client
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from registry.call import Call
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from registry.ports import Sessions
from simulators.network.simulated_network import SimulatedNetwork
from tests.mcp import ledgers, notes
from tests.world import HOST, ORIGIN, Credentials, World, open_world
from transports.http.asgi import Receive, Scope, Send
from transports.http.door import InnerApplication
from transports.mcp.door import MCP_PATHS, McpDoor
from transports.mcp.settings import McpSettings

CATALOGUE = Catalogue(
    [Toolset("connectivity", "Notes.", (notes,)), Toolset("ledgers", "Ledgers.", (ledgers,))], core=("get_note", "read_ledger")
)
KEY = bytes(range(32))
SETTINGS = McpSettings(version="1.0.0", state_keys=(KEY,), allowed_hosts=(HOST,), allowed_origins=(ORIGIN,))
MODERN = "2026-07-28"
ERAS = ("auto", "legacy")
URL = f"http://{HOST}/mcp"


@dataclass
class House:
    world: World
    door: McpDoor

    @asynccontextmanager
    async def connect(
        self,
        who: Credentials | str,
        mode: str = "auto",
        *,
        query: str = "",
        elicit: ElicitationFnT | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncGenerator[Client]:
        """A client of the SDK, over HTTP through the whole application."""
        secret = who if isinstance(who, str) else who.secret
        transport = httpx2.ASGITransport(app=self.app)
        authorization = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(transport=transport, headers={**authorization, **(headers or {})}) as http,
            Client(streamable_http_client(URL + query, http_client=http), mode=mode, elicitation_callback=elicit) as client,
        ):
            yield client

    async def post(self, body: dict[str, Any], *, secret: str | None = None, path: str = "/mcp", **headers: str) -> httpx.Response:
        """One message as bytes on the wire, with the headers a modern client sends unless others are given."""
        given = {"authorization": f"Bearer {secret}"} if secret else {}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=f"http://{HOST}") as http:
            return await http.post(path, json=body, headers={**wire_headers(body), **given, **headers})

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Both doors; like a real server, the scope has a place for what they tell each other."""
        await self.world.door({**scope, "state": {}}, receive, send)


def wire_headers(body: dict[str, Any]) -> dict[str, str]:
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN, "mcp-method": str(body["method"])}
    name = body.get("params", {}).get("name")
    return {**headers, "mcp-name": name} if name else headers


def request(
    method: str, *, capabilities: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, **params: Any
) -> dict[str, Any]:
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        **(meta or {}),
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}


@asynccontextmanager
async def open_house(
    folder: Path,
    *,
    catalogue: Catalogue = CATALOGUE,
    sessions: Sessions | None = None,
    sandbox: SimulatedNetwork | None = None,
    limits: Limits | None = None,
    url: str | None = None,
    **changes: Any,
) -> AsyncGenerator[House]:
    doors: list[McpDoor] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await doors[0](scope, receive, send)

    async with open_world(
        folder, catalogue, url=url, sessions=sessions, sandbox=sandbox, limits=limits, inner=InnerApplication(inner, MCP_PATHS)
    ) as world:

        def report(call: Call, error: BaseException) -> None:
            world.faults.append((call.request_id, call.operation.id, error))

        doors.append(McpDoor(world.pipeline, replace(SETTINGS, **changes), report))
        async with doors[0].running():
            yield House(world, doors[0])
