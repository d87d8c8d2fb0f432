"""FastMCP as its documentation writes it: @mcp.tool functions and a TokenVerifier; stateless and with JSON answers, in its favour.

It gives the SDK no get_tool_input_schema, so every call with arguments first lists all tools.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth.auth import AccessToken, TokenVerifier
from fastmcp.server.dependencies import get_access_token
from fastmcp.tools import FunctionTool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from benchmarks.rivals.ledger import Caller, Ledger, Refused
from benchmarks.rivals.routes import READ as GET
from benchmarks.rivals.tool_call import caller_of, listed_tools, read_intent


class Keys(TokenVerifier):
    """Checks an API key in the store."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            caller = caller_of(self._ledger, f"Bearer {token}")
        except Refused:
            return None
        return AccessToken(token=token, client_id=caller.key, scopes=[], claims=caller._asdict())


def filler(tool: dict[str, Any]) -> FunctionTool:
    """A tool that nobody calls here, with the name, text and schemas of one of the service's."""

    def unused() -> dict[str, Any]:
        raise ValueError("not measured")

    made = FunctionTool.from_function(unused, name=tool["name"], title=tool.get("title"), description=tool["description"])
    return made.model_copy(update={"parameters": tool["inputSchema"], "output_schema": tool.get("outputSchema")})


def make(data: Path) -> ASGIApp:
    """The application."""
    ledger = Ledger(data)

    @asynccontextmanager
    async def lifespan(server: FastMCP) -> AsyncGenerator[None]:
        keeper = asyncio.create_task(ledger.keep())
        yield
        keeper.cancel()
        await keeper

    mcp = FastMCP("rival", auth=Keys(ledger), lifespan=lifespan)
    for tool in listed_tools(data):
        if tool["name"] != GET:
            mcp.add_tool(filler(tool))

    @mcp.tool
    def get_connectivity_intent(id: str) -> dict[str, Any]:
        """Get one intent with its status, plan and eSIM."""
        token = get_access_token()
        assert token is not None
        return read_intent(ledger, Caller(**token.claims), id)

    @mcp.custom_route("/health", methods=["GET"])
    async def health(request: Request) -> Response:
        return Response(b"{}")

    return mcp.http_app(path="/mcp", json_response=True, stateless_http=True)
