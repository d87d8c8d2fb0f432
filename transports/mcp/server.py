"""The MCP server itself: one lowlevel server for both protocol eras, over HTTP and over stdio.

Importing this costs more than a second, so only the first request to the door does it.
"""

from collections.abc import Mapping

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types.methods import CacheableMethod

from operations.deps import Deps
from registry.answer import FaultReport
from registry.caller import Caller
from registry.catalogue import Catalogue
from registry.pipeline import Pipeline
from transports.mcp.calls import ToolCalls
from transports.mcp.fast_path import FastPath
from transports.mcp.prompts import get_prompt, list_prompts
from transports.mcp.request_caller import CallerOf, CallListener, McpContext, ReplyAdmission, RequestCaller, SdkUser, request_caller_of
from transports.mcp.resources import Resources
from transports.mcp.selection import RequestedTools
from transports.mcp.settings import MCP_BODY_BYTES, MCP_SERVER_NAME, McpSettings
from transports.mcp.tools import Tools, refuse_cursor

MINUTE_MS = 60_000
CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(MINUTE_MS, "private"),
    "resources/list": CacheHint(MINUTE_MS, "private"),
    "resources/templates/list": CacheHint(MINUTE_MS, "private"),
    "resources/read": CacheHint(0, "private"),
    "prompts/list": CacheHint(60 * MINUTE_MS, "public"),
    "server/discover": CacheHint(60 * MINUTE_MS, "public"),
}


def server_instructions(catalogue: Catalogue) -> str:
    """How to choose tools, in three sentences."""
    return (
        "These tools issue and manage travel eSIMs; you see the toolset connectivity and the operator tools, as far as your "
        "organisation's tier allows. "
        f"To see others, connect with ?toolsets=<names> or the header X-MCP-Toolsets, where names are of {', '.join(catalogue.names())}. "
        "Add ?read_only=true or X-MCP-Readonly: true to see only tools that change nothing."
    )


def make_mcp_server(catalogue: Catalogue, pipeline: Pipeline[Deps], who: CallerOf, settings: McpSettings, report: FaultReport) -> Server:
    """The server with every handler; the SDK checks no arguments, the pipeline does."""
    tools = Tools(catalogue)
    calls = ToolCalls(pipeline, tools, who, settings, report)
    resources = Resources(catalogue, calls, who)

    async def list_tools(ctx: McpContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        refuse_cursor(params)
        return tools.tool_list(who(ctx))

    server = Server(
        MCP_SERVER_NAME,
        version=settings.version,
        title="Connectivity",
        instructions=server_instructions(catalogue),
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
    seal_request_state(server, settings)
    return server


def seal_request_state(server: Server, settings: McpSettings) -> None:
    """The server's middleware: no spans unless tracing is on, and request state that nobody can read, change or borrow."""
    if not settings.tracing:
        server.middleware.clear()
    security = RequestStateSecurity(keys=settings.state_keys, ttl=settings.state_seconds)
    server.middleware.append(RequestStateBoundary(security, default_audience=MCP_SERVER_NAME))


def make_session_manager(server: Server, settings: McpSettings, *, stateless: bool) -> StreamableHTTPSessionManager:
    """The HTTP transport. SSE stays possible: plain JSON would lose progress and the news that a client has gone."""
    return StreamableHTTPSessionManager(
        app=server,
        json_response=False,
        stateless=stateless,
        max_request_body_size=MCP_BODY_BYTES,
        security_settings=transport_security(settings),
    )


def transport_security(settings: McpSettings) -> TransportSecuritySettings:
    """Hosts and origins. A deployment that serves any host has its origins checked by the gate; the SDK knows no such setting."""
    return TransportSecuritySettings(
        enable_dns_rebinding_protection="*" not in settings.allowed_hosts,
        allowed_hosts=[form for host in settings.allowed_hosts for form in host_forms(host)],
        allowed_origins=list(settings.allowed_origins),
    )


def make_mcp_http_server(catalogue: Catalogue, pipeline: Pipeline[Deps], settings: McpSettings, report: FaultReport) -> "McpHttpServer":
    """The service's own server over HTTP."""
    server = make_mcp_server(catalogue, pipeline, request_caller_of, settings, report)
    if not settings.edge or settings.tracing:  # the spans are the SDK's
        return McpHttpServer(server, settings)
    tools = Tools(catalogue)
    calls = ToolCalls(pipeline, tools, request_caller_of, settings, report)
    return McpHttpServer(server, settings, edge=FastPath(server, calls, tools, transport_security(settings)))


def host_forms(host: str) -> tuple[str, str]:
    """How a host stands in a Host header: alone, and with any port; an IPv6 address in brackets (RFC 9110 section 7.2)."""
    name = f"[{host}]" if host.count(":") > 1 else host
    return name, f"{name}:*"


class McpHttpServer:
    """A server behind the gate, and the short way past it for plain calls; good for one run."""

    def __init__(self, server: Server, settings: McpSettings, *, stateless: bool = True, edge: FastPath | None = None) -> None:
        self.manager = make_session_manager(server, settings, stateless=stateless)
        self.app = AuthContextMiddleware(StreamableHTTPASGIApp(self.manager))
        self.edge = edge

    @staticmethod
    def requester(
        caller: Caller, chosen: RequestedTools, client: str, request_id: str, tell: CallListener, admit: ReplyAdmission
    ) -> RequestCaller:
        """Whom the gate let in."""
        return RequestCaller(caller, chosen, client, request_id, tell, admit)

    @staticmethod
    def user(requester: RequestCaller) -> SdkUser:
        """The same, as the SDK finds him in the scope."""
        return SdkUser(requester)


async def run_stdio(
    catalogue: Catalogue, pipeline: Pipeline[Deps], settings: McpSettings, report: FaultReport, *, caller: Caller, chosen: RequestedTools
) -> None:
    """Serve one client of either protocol era until it closes its end. There is no credential here: the principal is given."""
    requester = RequestCaller(caller, chosen)
    server = make_mcp_server(catalogue, pipeline, lambda _: requester, settings, report)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
