"""The MCP server itself: one lowlevel server for both protocol eras, over HTTP and over stdio.

Importing this costs more than a second, so only the first request to the door does it.
"""

from collections.abc import Mapping

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types.methods import CacheableMethod

from operations.deps import Deps
from registry.answer import Report
from registry.caller import Caller
from registry.catalogue import Catalogue
from registry.pipeline import Pipeline
from transports.mcp.calls import Calls
from transports.mcp.edge import Edge
from transports.mcp.prompts import get_prompt, list_prompts
from transports.mcp.resources import Resources
from transports.mcp.selection import Chosen
from transports.mcp.settings import BODY_BYTES, NAME, McpSettings
from transports.mcp.tools import Tools, refuse_cursor
from transports.mcp.user import Member, visitor_of
from transports.mcp.visitor import Admit, Context, Tell, Visitor, Who

MINUTE = 60_000
HINTS: Mapping[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(MINUTE, "private"),
    "resources/list": CacheHint(MINUTE, "private"),
    "resources/templates/list": CacheHint(MINUTE, "private"),
    "resources/read": CacheHint(0, "private"),
    "prompts/list": CacheHint(60 * MINUTE, "public"),
    "server/discover": CacheHint(60 * MINUTE, "public"),
}


def instructions(catalogue: Catalogue) -> str:
    """How to choose tools, in three sentences."""
    return (
        "These tools issue and manage travel eSIMs; you see the toolset connectivity and the operator tools, as far as your "
        "organisation's tier allows. "
        f"To see others, connect with ?toolsets=<names> or the header X-MCP-Toolsets, where names are of {', '.join(catalogue.names())}. "
        "Add ?read_only=true or X-MCP-Readonly: true to see only tools that change nothing."
    )


def make_server(catalogue: Catalogue, pipeline: Pipeline[Deps], who: Who, settings: McpSettings, report: Report) -> Server:
    """The server with every handler; the SDK checks no arguments, the pipeline does."""
    tools = Tools(catalogue)
    calls = Calls(pipeline, tools, who, settings, report)
    resources = Resources(catalogue, calls, who)

    async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        refuse_cursor(params)
        return tools.tool_list(who(ctx))

    server = Server(
        NAME,
        version=settings.version,
        title="Connectivity",
        instructions=instructions(catalogue),
        website_url=pipeline.site.docs_url,
        cache_hints=HINTS,
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
    seal(server, settings)
    return server


def seal(server: Server, settings: McpSettings) -> None:
    """The server's middleware: no spans unless tracing is on, and request state that nobody can read, change or borrow."""
    if not settings.tracing:
        server.middleware.clear()
    security = RequestStateSecurity(keys=settings.state_keys, ttl=settings.state_seconds)
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))


def make_manager(server: Server, settings: McpSettings, *, stateless: bool) -> StreamableHTTPSessionManager:
    """The HTTP transport. SSE stays possible: plain JSON would lose progress and the news that a client has gone."""
    return StreamableHTTPSessionManager(
        app=server, json_response=False, stateless=stateless, max_request_body_size=BODY_BYTES, security_settings=security_of(settings)
    )


def security_of(settings: McpSettings) -> TransportSecuritySettings:
    """Hosts and origins. A deployment that serves any host has its origins checked by the gate; the SDK knows no such setting."""
    return TransportSecuritySettings(
        enable_dns_rebinding_protection="*" not in settings.allowed_hosts,
        allowed_hosts=[form for host in settings.allowed_hosts for form in forms(host)],
        allowed_origins=list(settings.allowed_origins),
    )


def http_server(catalogue: Catalogue, pipeline: Pipeline[Deps], settings: McpSettings, report: Report) -> "HttpServer":
    """The service's own server over HTTP."""
    server = make_server(catalogue, pipeline, visitor_of, settings, report)
    if not settings.edge or settings.tracing:  # the spans are the SDK's
        return HttpServer(server, settings)
    tools = Tools(catalogue)
    calls = Calls(pipeline, tools, visitor_of, settings, report)
    return HttpServer(server, settings, edge=Edge(server, calls, tools, security_of(settings)))


def forms(host: str) -> tuple[str, str]:
    """How a host stands in a Host header: alone, and with any port; an IPv6 address in brackets (RFC 9110 section 7.2)."""
    name = f"[{host}]" if host.count(":") > 1 else host
    return name, f"{name}:*"


class HttpServer:
    """A server behind the gate, and the short way past it for plain calls; good for one run."""

    def __init__(self, server: Server, settings: McpSettings, *, stateless: bool = True, edge: Edge | None = None) -> None:
        self.manager = make_manager(server, settings, stateless=stateless)
        self.app = AuthContextMiddleware(StreamableHTTPASGIApp(self.manager))
        self.edge = edge

    @staticmethod
    def visitor(caller: Caller, chosen: Chosen, client: str, request_id: str, tell: Tell, admit: Admit) -> Visitor:
        """Whom the gate let in."""
        return Visitor(caller, chosen, client, request_id, tell, admit)

    @staticmethod
    def user(visitor: Visitor) -> Member:
        """The same, as the SDK finds him in the scope."""
        return Member(visitor)
