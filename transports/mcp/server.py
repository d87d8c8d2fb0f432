"""The MCP server itself: one lowlevel server for both protocol eras, over HTTP and over stdio.

Importing this costs more than a second, so only the first request to the door does it.
"""

from collections.abc import Mapping, Sequence

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext as McpContext
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types.methods import CacheableMethod
from starlette.requests import Request

from operations.deps import Deps
from registry.answer import FaultReport
from registry.pipeline import Pipeline
from transports.mcp.calls import ToolCalls
from transports.mcp.cards import APPS_EXTENSION, shows_cards
from transports.mcp.event_methods import EventMethods, offer_events
from transports.mcp.fast_path import FastPath
from transports.mcp.prompts import get_prompt, list_prompts
from transports.mcp.request_caller import RequestCaller
from transports.mcp.resources import Resources
from transports.mcp.settings import MCP_BODY_BYTES, MCP_SERVER_NAME, McpSettings
from transports.mcp.tools import refuse_cursor

MINUTE_MS = 60_000
CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(MINUTE_MS, "private"),
    "resources/list": CacheHint(MINUTE_MS, "private"),
    "resources/templates/list": CacheHint(MINUTE_MS, "private"),
    "resources/read": CacheHint(0, "private"),
    "prompts/list": CacheHint(60 * MINUTE_MS, "public"),
    "server/discover": CacheHint(60 * MINUTE_MS, "public"),
}


def server_instructions(toolsets: Sequence[str]) -> str:
    """How to choose tools, in three sentences."""
    return (
        "These tools issue and manage travel eSIMs; you see the toolsets connectivity and fleet and the operator tools, as far as "
        "your organisation's tier allows. "
        f"To see others, connect with ?toolsets=<names> or the header X-MCP-Toolsets, where names are of {', '.join(toolsets)}. "
        "Add ?read_only=true or X-MCP-Readonly: true to see only tools that change nothing."
    )


def make_mcp_server(calls: ToolCalls, pipeline: Pipeline[Deps], settings: McpSettings) -> Server:
    """The server with every handler, which runs tools by `calls`; the SDK checks no arguments, the pipeline does."""
    resources = Resources(pipeline.catalogue, calls)

    async def list_tools(ctx: McpContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        refuse_cursor(params)
        return calls.tools.tool_list(calls.who(ctx), cards=shows_cards(ctx))

    server = Server(
        MCP_SERVER_NAME,
        version=settings.version,
        title="Connectivity",
        instructions=server_instructions(pipeline.catalogue.names()),
        website_url=pipeline.site.docs_url,
        cache_hints=CACHE_HINTS,
        # No argument of ours travels in a header too, so none is compared; unsaid, every call would list all tools first to find out.
        get_tool_input_schema=lambda name: None,
        on_list_tools=list_tools,
        on_call_tool=calls.call_tool,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.extensions[APPS_EXTENSION] = {}
    seal_request_state(server, settings)
    if settings.events:
        offer_events(server, EventMethods(pipeline.catalogue, calls))
    return server


def seal_request_state(server: Server, settings: McpSettings) -> None:
    """Sets the server's middleware: no spans unless tracing is on, and request state that is sealed for its caller."""
    if not settings.tracing:
        server.middleware.clear()
    security = RequestStateSecurity(keys=settings.state_keys, ttl=settings.state_seconds)
    server.middleware.append(RequestStateBoundary(security, default_audience=MCP_SERVER_NAME))


class SdkUser(AuthenticatedUser):
    """The caller of a request, as the SDK knows one. Its token holds the principal only; the credential stays in the door."""

    def __init__(self, requester: RequestCaller) -> None:
        caller = requester.caller
        super().__init__(AccessToken(token="", client_id=caller.organisation or "-", subject=caller.principal, scopes=[]))
        self.requester = requester


def request_caller_of(ctx: McpContext) -> RequestCaller:
    """The requester of an HTTP request; without one there is no call, and never a local principal instead."""
    request: object = ctx.request
    user: object = request.scope.get("user") if isinstance(request, Request) else None
    if not isinstance(user, SdkUser):
        raise PermissionError("a request reached the MCP server around its gate")
    return user.requester


def make_mcp_http_server(pipeline: Pipeline[Deps], settings: McpSettings, report: FaultReport) -> "McpHttpServer":
    calls = ToolCalls(pipeline, request_caller_of, report, insists_on_elicitation=settings.insist_on_elicitation)
    server = make_mcp_server(calls, pipeline, settings)
    # The spans of tracing are the SDK's.
    return McpHttpServer(server, settings, edge=FastPath(server, calls) if settings.edge and not settings.tracing else None)


class McpHttpServer:
    """A server behind the gate, and the short way past it for plain calls; good for one run."""

    def __init__(self, server: Server, settings: McpSettings, *, stateless: bool = True, edge: FastPath | None = None) -> None:
        # SSE stays possible: plain JSON would lose progress and the news that a client has gone. Hosts and origins are checked by the door.
        self.manager = StreamableHTTPSessionManager(
            app=server,
            json_response=False,
            stateless=stateless,
            max_request_body_size=MCP_BODY_BYTES,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self.app = AuthContextMiddleware(StreamableHTTPASGIApp(self.manager))
        self.edge = edge

    @staticmethod
    def user(requester: RequestCaller) -> SdkUser:
        return SdkUser(requester)


async def run_stdio(pipeline: Pipeline[Deps], settings: McpSettings, report: FaultReport, requester: RequestCaller) -> None:
    """Serve one client of either protocol era until it closes its end. There is no credential here: the principal is given."""
    calls = ToolCalls(pipeline, lambda _: requester, report, insists_on_elicitation=settings.insist_on_elicitation)
    server = make_mcp_server(calls, pipeline, settings)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
