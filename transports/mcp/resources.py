"""Resources: what an agent may read without a tool call. Those with data of an organisation are read through the pipeline."""

import re

import orjson
from mcp.server.context import ServerRequestContext as McpContext
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
from registry.operation import Card, Scope
from registry.restrictions import is_shown_to
from registry.schema import output_schema
from transports.mcp.calls import FREE_TEXT_META_KEY, ToolCalls, free_text_of, readable_body
from transports.mcp.cards import card_contents, card_resource, card_uri, shows_cards, used_cards
from transports.mcp.request_caller import RequestCaller
from transports.mcp.tools import is_tool, refuse_cursor


def operations_index(catalogue: Catalogue) -> str:
    """Every tool by toolset, one line each."""
    lines = ["# Operations", "", "Read reference://operations/{id} for one of them.", ""]
    for toolset in catalogue.toolsets:
        tools = [operation for operation in toolset.operations() if is_tool(operation)]
        if tools:
            lines += [f"## {toolset.name}", "", toolset.summary, ""]
            lines += [f"- `{operation.id}`: {operation.summary}" for operation in tools]
            lines.append("")
    return "\n".join(lines)


def operation_page(operation: AnyOperation) -> str:
    """One operation: what it does, what it asks of its caller, its input and its examples."""
    lines = [
        f"# {operation.title}",
        "",
        f"`{operation.id}`, over HTTP `{operation.method} {operation.path}`",
        "",
        operation.description,
        "",
    ]
    lines += [f"- {rule}" for rule in operation_rules(operation)]
    lines += ["", "| Input | Meaning |", "|---|---|"]
    for name, field in operation.params.model_fields.items():
        needed = "" if not field.is_required() else " (required)"
        lines.append(f"| `{field.alias or name}`{needed} | {field.description or ''} |")
    for example in operation.examples:
        lines += ["", f"## {example.title}", "", "```json", orjson.dumps(dict(example.input)).decode(), "```"]
    return "\n".join(lines) + "\n"


def operation_rules(operation: AnyOperation) -> list[str]:
    """What cannot be read from the schema."""
    found = ["Changes nothing." if operation.read_only else "Changes something."]
    if operation.scope & Scope.ADMIN:
        found.append("Needs the tier enterprise and the role admin.")
    elif operation.scope & Scope.WRITE:
        found.append("Needs the tier pro or enterprise.")
    if operation.confirm:
        found.append("Asks for a confirmation first; it is valid for two minutes and for the same arguments.")
    if operation.replaces is not None:
        found.append(f"A call that would replace {operation.replaces} needs the role admin, and asks for a confirmation first.")
    if operation.confirms_some:
        found.append("Some calls ask for a confirmation first.")
    if operation.once is not None:
        found.append("Needs an idempotency_key." if operation.once.required else "Takes an idempotency_key.")
    if operation.upstream:
        found.append("Reaches the upstream charging system; the organisation must be connected.")
    if operation.processor:
        found.append("Reaches the payment processor, in the organisation's own account there.")
    return found


NOT_FOUND_BEFORE_2026 = -32002
RESOURCE_JSON, RESOURCE_MARKDOWN = "application/json", "text/markdown"
RESOURCE_URI = re.compile(r"(connectivity://intents|reference://operations)/([A-Za-z0-9_]{1,64})", re.ASCII)


PLANS_OPERATION, INTENT_OPERATION = "list_connectivity_plans", "get_connectivity_intent"
"""Read operations whose answers are resources."""
PLANS_RESOURCE = Resource(
    uri="connectivity://plans",
    name="plans",
    title="Plan catalogue",
    description="The plans this organisation can issue eSIMs from.",
    mime_type=RESOURCE_JSON,
)
INTENT_RESOURCE = ResourceTemplate(
    uri_template="connectivity://intents/{id}",
    name="intent",
    title="Intent",
    description="One eSIM order: its status, plan and eSIM.",
    mime_type=RESOURCE_JSON,
)
OPERATIONS_RESOURCE = Resource(
    uri="reference://operations", name="operations", title="Operations", description="Every tool by toolset.", mime_type=RESOURCE_MARKDOWN
)
OPERATION_RESOURCE = ResourceTemplate(
    uri_template="reference://operations/{id}",
    name="operation",
    title="Operation",
    description="One tool in full: details, rules, input and examples.",
    mime_type=RESOURCE_MARKDOWN,
)


class Resources:
    """Lists and reads resources; one whose operation the catalogue lacks, or the caller may not call, is left out."""

    def __init__(self, catalogue: Catalogue, calls: ToolCalls) -> None:
        self._catalogue, self._calls = catalogue, calls
        self._cards: dict[str, Card] = {card_uri(card): card for card in used_cards(filter(is_tool, catalogue.operations.values()))}

    async def list(self, ctx: McpContext, params: PaginatedRequestParams | None) -> ListResourcesResult:
        refuse_cursor(params)
        shows = self._backing(self._calls.who(ctx), PLANS_OPERATION) is not None
        data = [PLANS_RESOURCE, OPERATIONS_RESOURCE] if shows else [OPERATIONS_RESOURCE]
        return ListResourcesResult(resources=[*data, *map(card_resource, self._cards.values())] if shows_cards(ctx) else data)

    async def templates(self, ctx: McpContext, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        refuse_cursor(params)
        shows = self._backing(self._calls.who(ctx), INTENT_OPERATION) is not None
        return ListResourceTemplatesResult(resource_templates=[INTENT_RESOURCE, OPERATION_RESOURCE] if shows else [OPERATION_RESOURCE])

    async def read(self, ctx: McpContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri, requester = params.uri, self._calls.who(ctx)
        if uri == OPERATIONS_RESOURCE.uri:
            return text_resource(uri, RESOURCE_MARKDOWN, operations_index(self._catalogue))
        if uri == PLANS_RESOURCE.uri:
            return await self._answer(ctx, requester, PLANS_OPERATION, uri, {})
        if uri in self._cards:
            return card_contents(self._cards[uri])
        match = RESOURCE_URI.fullmatch(uri)
        if match is None:
            raise resource_not_found(ctx, uri)
        kind, id = match.groups()
        if kind == "connectivity://intents":
            return await self._answer(ctx, requester, INTENT_OPERATION, uri, {"id": id})
        operation = self._catalogue.operations.get(id)
        if operation is None or not is_tool(operation):
            raise resource_not_found(ctx, uri)
        return text_resource(uri, RESOURCE_MARKDOWN, operation_page(operation))

    def _backing(self, requester: RequestCaller, backing: str) -> AnyOperation | None:
        operation, caller = self._catalogue.operations.get(backing), requester.caller
        inside = self._catalogue.operations_in(caller.restrictions.toolsets or ())
        shown = operation is not None and caller.has(operation.scope) and is_shown_to(operation, caller, inside)
        return operation if shown else None

    async def _answer(
        self, ctx: McpContext, requester: RequestCaller, backing: str, uri: str, values: dict[str, object]
    ) -> ReadResourceResult:
        operation = self._catalogue.operations.get(backing)
        if operation is None:
            raise resource_not_found(ctx, uri)
        call = self._calls.call(
            requester,
            operation,
            # A resource is read in one piece, so a list is asked for its largest page.
            {**values, "limit": 100} if "limit" in operation.params.model_fields else values,
            ctx.session.report_progress,
        )
        reply = await self._calls.run(requester, call)
        if reply.status == 404:
            raise resource_not_found(ctx, uri)
        body = readable_body(reply, None)
        if reply.refusal is not None:
            code = INTERNAL_ERROR if reply.status >= 500 else INVALID_PARAMS
            raise MCPError(code, reply.refusal.message, {"uri": uri, "body": body})
        found = free_text_of(reply, output_schema(operation.result))
        return text_resource(uri, RESOURCE_JSON, orjson.dumps(body).decode(), {FREE_TEXT_META_KEY: list(found)} if found else None)


def text_resource(uri: str, mime_type: str, text: str, meta: dict[str, object] | None = None) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text, _meta=meta)])


def resource_not_found(ctx: McpContext, uri: str) -> MCPError:
    """The error for resources that do not exist or are another organisation's. Its code depends on the protocol version (SEP-2164)."""
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND_BEFORE_2026
    return MCPError(code, "Resource not found", {"uri": uri})
