"""The bare SDK: the lowlevel server with get_tool_input_schema, JSON answers, behind a key check of a few lines."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from benchmarks.rivals.ledger import Ledger, Refused
from benchmarks.rivals.tool_call import caller_of, listed_tools, read_intent


def make(data: Path) -> Starlette:
    """The application."""
    ledger = Ledger(data)
    tools = {tool["name"]: Tool.model_validate(tool) for tool in listed_tools(data)}
    schemas = {name: tool.input_schema for name, tool in tools.items()}

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=list(tools.values()))

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        answer = read_intent(ledger, ctx.request.scope["caller"], params.arguments["id"])
        return CallToolResult(content=[TextContent(type="text", text=orjson.dumps(answer).decode())], structured_content=answer)

    server = Server("rival", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schemas.get)
    server.middleware.clear()
    manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    app = StreamableHTTPASGIApp(manager)

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            scope["caller"] = caller_of(ledger, Request(scope).headers.get("authorization"))
        except Refused as refusal:
            await Response(str(refusal), refusal.status)(scope, receive, send)
            return
        await app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(starlette: Starlette) -> AsyncGenerator[None]:
        keeper = asyncio.create_task(ledger.keep())
        async with manager.run():
            yield
        keeper.cancel()
        await keeper

    async def health(request: Request) -> Response:
        return Response(b"{}")

    class Gate:
        """An ASGI endpoint: Starlette wraps plain functions as request handlers."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await gate(scope, receive, send)

    return Starlette(routes=[Route("/health", health), Route("/mcp", Gate(), methods=["POST"])], lifespan=lifespan)
