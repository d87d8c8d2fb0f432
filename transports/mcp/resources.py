"""Resources: what an agent may read without a tool call. Tenant data goes through the pipeline like every other call."""

import re
from typing import NamedTuple

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from registry.catalogue import AnyOperation, Catalogue
from registry.model import Input
from registry.narrowing import shows
from transports.mcp import reference
from transports.mcp.calls import Calls
from transports.mcp.result import shown
from transports.mcp.tools import is_tool, refuse_cursor
from transports.mcp.visitor import Context, Visitor, Who

NOT_FOUND_BEFORE_2026 = -32002
JSON, MARKDOWN = "application/json", "text/markdown"
ONE = re.compile(r"(connectivity://intents|reference://operations)/([A-Za-z0-9_]{1,64})", re.ASCII)


class Backed(NamedTuple):
    """A resource that is the answer of a read operation."""

    uri: str
    operation: str
    title: str
    description: str


PLANS = Backed("connectivity://plans", "list_connectivity_plans", "Plan catalogue", "The plans this organisation can issue eSIMs from.")
INTENT = Backed("connectivity://intents/{id}", "get_connectivity_intent", "Intent", "One eSIM order: its status, plan and eSIM.")
OPERATIONS = Resource(
    uri="reference://operations", name="operations", title="Operations", description="Every tool by toolset.", mime_type=MARKDOWN
)
OPERATION = ResourceTemplate(
    uri_template="reference://operations/{id}",
    name="operation",
    title="Operation",
    description="One tool in full: details, rules, input and examples.",
    mime_type=MARKDOWN,
)


class Resources:
    """Lists and reads resources; one whose operation the catalogue lacks, or the caller may not call, is left out."""

    def __init__(self, catalogue: Catalogue, calls: Calls, who: Who) -> None:
        self._catalogue, self._calls, self._who = catalogue, calls, who

    async def list(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """The handler of resources/list."""
        refuse_cursor(params)
        plans = Resource(uri=PLANS.uri, name="plans", title=PLANS.title, description=PLANS.description, mime_type=JSON)
        shows = self._backing(self._who(ctx), PLANS) is not None
        return ListResourcesResult(resources=[plans, OPERATIONS] if shows else [OPERATIONS])

    async def templates(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """The handler of resources/templates/list."""
        refuse_cursor(params)
        intent = ResourceTemplate(
            uri_template=INTENT.uri, name="intent", title=INTENT.title, description=INTENT.description, mime_type=JSON
        )
        shows = self._backing(self._who(ctx), INTENT) is not None
        return ListResourceTemplatesResult(resource_templates=[intent, OPERATION] if shows else [OPERATION])

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """The handler of resources/read."""
        uri, visitor = params.uri, self._who(ctx)
        if uri == OPERATIONS.uri:
            return contents(uri, MARKDOWN, reference.index(self._catalogue))
        if uri == PLANS.uri:
            return await self._answer(ctx, visitor, PLANS, uri, {})
        match = ONE.fullmatch(uri)
        if match is None:
            raise missing(ctx, uri)
        kind, id = match.groups()
        if kind == "connectivity://intents":
            return await self._answer(ctx, visitor, INTENT, uri, {"id": id})
        operation = self._catalogue.operations.get(id)
        if operation is None or not is_tool(operation):
            raise missing(ctx, uri)
        return contents(uri, MARKDOWN, reference.page(operation))

    def _backing(self, visitor: Visitor, backed: Backed) -> AnyOperation | None:
        operation, caller = self._catalogue.operations.get(backed.operation), visitor.caller
        inside = self._catalogue.inside(caller.restrictions.toolsets or ())
        shown = operation is not None and caller.has(operation.scope) and shows(operation, caller, inside)
        return operation if shown else None

    async def _answer(self, ctx: Context, visitor: Visitor, backed: Backed, uri: str, values: dict[str, object]) -> ReadResourceResult:
        operation = self._catalogue.operations.get(backed.operation)
        if operation is None:
            raise missing(ctx, uri)
        call = self._calls.call(visitor, operation, whole_list(operation.params, values), ctx.session.report_progress)
        reply = await self._calls.run(visitor, call)
        if reply.status == 404:
            raise missing(ctx, uri)
        body = shown(reply, None)
        if reply.refusal is not None:
            code = INTERNAL_ERROR if reply.status >= 500 else INVALID_PARAMS
            raise MCPError(code, reply.refusal.message, {"uri": uri, "body": body})
        return contents(uri, JSON, orjson.dumps(body).decode())


def whole_list(model: type[Input], values: dict[str, object]) -> dict[str, object]:
    """A resource is read in one piece, so a list is asked for its largest page."""
    return {**values, "limit": 100} if "limit" in model.model_fields else values


def contents(uri: str, mime_type: str, text: str) -> ReadResourceResult:
    """One text."""
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)])


def missing(ctx: Context, uri: str) -> MCPError:
    """The one answer for what is not there and what is another organisation's. Its code is that of the protocol version (SEP-2164)."""
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND_BEFORE_2026
    return MCPError(code, "Resource not found", {"uri": uri})
