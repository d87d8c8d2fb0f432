"""Serve the fixtures over a real socket, from a thread of this process: what a process of its own would import is here already.

Production is the whole way of a request: HTTP door, gate, credential, MCP door, stateless transport. Stateful is the same server and
settings on a transport with sessions, for the handshake-era scenarios in which the server asks the client. Catalogue is production with
the operations of the door's own tests; whole_sdk is that without the short way of plain calls.
"""

import socket
import tempfile
import warnings
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import uvicorn
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPDeprecationWarning

from registry.catalogue import Catalogue
from tests.conformance.fixtures import fixture_server
from tests.mcp.house import CATALOGUE
from tests.world import open_world
from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.http.door import InnerApplication
from transports.http.request import HttpRules
from transports.mcp.door import MCP_PATHS, McpDoor
from transports.mcp.server import McpHttpServer
from transports.mcp.settings import McpSettings

HOSTS = ("127.0.0.1", "localhost")

LOOPBACK = TransportSecuritySettings(
    allowed_hosts=["127.0.0.1:*", "localhost:*"], allowed_origins=["http://127.0.0.1:*", "http://localhost:*"]
)


def settings_for(port: int) -> McpSettings:
    origins = tuple(f"http://{host}:{port}" for host in HOSTS)
    return McpSettings(version="1.0.0", state_keys=(bytes(32),), allowed_hosts=HOSTS, allowed_origins=origins)


@asynccontextmanager
async def production(folder: Path, settings: McpSettings, operations: Catalogue | None = None) -> AsyncGenerator[App]:
    catalogue = operations or Catalogue([])
    doors: list[McpDoor] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await doors[0](scope, receive, send)

    rules = HttpRules(hosts=frozenset(settings.allowed_hosts), origins=frozenset(settings.allowed_origins))
    async with open_world(folder, catalogue, rules=rules, inner=InnerApplication(inner, MCP_PATHS)) as world:
        doors.append(McpDoor(world.pipeline, settings, lambda call, error: None))
        if operations is None:
            doors[0].make = lambda: McpHttpServer(fixture_server(settings), settings)
        caller = await world.caller()

        async def signed_in(scope: Scope, receive: Receive, send: Send) -> None:
            headers: HttpScope = scope  # pyright: ignore[reportAssignmentType]  # uvicorn's scope
            authorization = (b"authorization", f"Bearer {caller.secret}".encode())
            await world.door({**scope, "headers": [*headers["headers"], authorization]}, receive, send)

        async with doors[0].running():
            yield signed_in


def catalogue(folder: Path, settings: McpSettings) -> AbstractAsyncContextManager[App]:
    return production(folder, settings, CATALOGUE)


def whole_sdk(folder: Path, settings: McpSettings) -> AbstractAsyncContextManager[App]:
    return production(folder, replace(settings, edge=False), CATALOGUE)


@asynccontextmanager
async def stateful(folder: Path, settings: McpSettings) -> AsyncGenerator[App]:
    del folder
    server = McpHttpServer(fixture_server(settings), settings, stateless=False)
    server.manager.security_settings = LOOPBACK  # in production our door checks hosts and origins
    async with server.manager.run():
        yield server.app


async def serve(mode: str, listener: socket.socket, stop: anyio.Event, *, task_status: TaskStatus[None]) -> None:
    make = {"production": production, "stateful": stateful, "catalogue": catalogue, "whole_sdk": whole_sdk}[mode]
    with tempfile.TemporaryDirectory() as folder:
        async with make(Path(folder), settings_for(listener.getsockname()[1])) as app:
            config = uvicorn.Config(app, http="httptools", lifespan="off", log_level="error", timeout_graceful_shutdown=1)
            server = uvicorn.Server(config)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.serve, [listener])
                task_status.started()
                await stop.wait()
                server.should_exit = True


@contextmanager
def serving_fixtures(mode: str) -> Generator[str]:
    """The address of a server in this mode. Its socket listens from the start, so nobody comes too early."""
    with warnings.catch_warnings(), start_blocking_portal() as portal, socket.create_server(("127.0.0.1", 0)) as listener:
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        stop = portal.call(anyio.Event)
        served, _ = portal.start_task(partial(serve, mode, listener, stop))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            portal.call(stop.set)
            served.result(30)
