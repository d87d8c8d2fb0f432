"""The methods of the draft MCP Events: events/list, events/poll, events/subscribe and events/unsubscribe.

The draft is the design sketch of the repository modelcontextprotocol/experimental-ext-triggers-events (docs, design-sketch-proposal), dated
2026-02-19, as of the commit 6104601d8768982d864f26f399d3576320f8bc0a. Each method is one call of an operation that stands beside the
catalogue, so that it is authenticated, throttled, charged and audited as a tool call is. No short way leads to the methods: the SDK hands
them on, in both eras.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

from mcp.server.context import CallNext, HandlerResult
from mcp.server.context import ServerRequestContext as McpContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, RequestParams
from pydantic import ConfigDict

from registry.catalogue import Catalogue
from registry.errors import Refusal
from storage.webhook_endpoints import MOST_ENDPOINTS
from transports.mcp.calls import ToolCalls, readable_body

EVENTS_CAPABILITY = "events"
NOT_FOUND, FORBIDDEN, EXHAUSTED, UNSUPPORTED, CALLBACK_FAILED = -32011, -32012, -32013, -32014, -32015
WEBHOOK_MODE = "webhook"


class EventParams(RequestParams):
    """Whatever was sent: the operation says what is wrong with it. Choice: what no method knows is passed over, as MCP does it."""

    model_config = ConfigDict(extra="allow")


class ErrorKind(NamedTuple):
    """A code of the draft, and what its `data` says."""

    code: int
    data: Mapping[str, object]


REFUSAL_KINDS: Mapping[str, ErrorKind] = {
    "event_not_found": ErrorKind(NOT_FOUND, {"kind": "event"}),
    "subscription_not_found": ErrorKind(NOT_FOUND, {"kind": "subscription"}),
    "webhook_endpoint_limit": ErrorKind(EXHAUSTED, {"limit": "subscriptions", "max": MOST_ENDPOINTS}),
    "quota_exceeded": ErrorKind(EXHAUSTED, {"limit": "calls"}),
    "rate_limited": ErrorKind(EXHAUSTED, {"limit": "rate"}),
    "delivery_mode": ErrorKind(UNSUPPORTED, {"feature": "deliveryMode", "value": WEBHOOK_MODE}),
    "callback_endpoint": ErrorKind(CALLBACK_FAILED, {}),
}
STATUS_KINDS: Mapping[int, ErrorKind] = {
    402: ErrorKind(FORBIDDEN, {}),
    403: ErrorKind(FORBIDDEN, {}),
    404: ErrorKind(NOT_FOUND, {}),
    409: ErrorKind(FORBIDDEN, {}),
    429: ErrorKind(EXHAUSTED, {}),
    501: ErrorKind(UNSUPPORTED, {}),
}


def kind_of(refusal: Refusal) -> ErrorKind:
    """The code that a refusal has in the draft."""
    found = REFUSAL_KINDS.get(refusal.error_code) or STATUS_KINDS.get(refusal.status)
    return found or ErrorKind(INTERNAL_ERROR if refusal.status >= 500 else INVALID_PARAMS, {})


POLL_FIELDS = {
    "name": "name",
    "arguments": "arguments",
    "cursor": "cursor",
    "maxAgeMs": "max_age_ms",
    "maxEvents": "max_events",
}
SUBSCRIPTION_FIELDS = {
    "name": "name",
    "arguments": "arguments",
    "cursor": "cursor",
    "maxAgeMs": "max_age_ms",
    "ttlMs": "ttl_ms",
}
DELIVERY_FIELDS = {"delivery.url": "url", "delivery.secret": "secret"}
WIRE_NAMES = {ours: wire for wire, ours in (POLL_FIELDS | SUBSCRIPTION_FIELDS | DELIVERY_FIELDS).items()}


def event_error(refusal: Refusal, request_id: str) -> MCPError:
    """A refusal as an error of the draft, in the names that were sent. Its `data` has our code, too, for whoever knows that one."""
    kind, message, param = kind_of(refusal), refusal.message, refusal.param
    data: dict[str, object] = {**kind.data, **refusal.fields(), "code": refusal.error_code, "requestId": request_id}
    if param is not None:
        wire = WIRE_NAMES.get(param, param)
        data["param"] = wire
        message = f"{wire}:{message.removeprefix(f'{param}:')}" if message.startswith(f"{param}:") else message
    if refusal.hint is not None:
        data["hint"] = refusal.hint
    return MCPError(kind.code, message, data)


def sent_fields(sent: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """What was sent of the fields that a method has, in the names of its operation."""
    return {ours: sent[wire] for wire, ours in names.items() if wire in sent}


def sent_delivery(sent: Mapping[str, object], fields: tuple[str, ...]) -> dict[str, object]:
    """The fields of `delivery`. Raises MCPError for one that is no webhook."""
    delivery = sent.get("delivery")
    if not isinstance(delivery, dict):
        raise MCPError(INVALID_PARAMS, "delivery: must be an object with a url", {"param": "delivery"})
    given = cast("dict[str, object]", delivery)
    mode = given.get("mode", WEBHOOK_MODE)
    if mode != WEBHOOK_MODE:
        text = f"delivery.mode: events are sent to webhooks, or polled; got {str(mode)[:40]!r}"
        raise MCPError(UNSUPPORTED, text, {"feature": "deliveryMode", "value": mode})
    return {name: given[name] for name in fields if name in given}


class EventMethods:
    """The four methods, each the call of an operation."""

    def __init__(self, catalogue: Catalogue, calls: ToolCalls) -> None:
        self._operations, self._calls = catalogue.beside, calls

    async def list(self, ctx: McpContext, params: EventParams) -> HandlerResult:
        if (params.model_extra or {}).get("cursor"):
            raise MCPError(INVALID_PARAMS, "cursor: this list has one page; ask for it without a cursor")
        return await self._answer(ctx, "list_mcp_events", {})

    async def poll(self, ctx: McpContext, params: EventParams) -> HandlerResult:
        return await self._answer(ctx, "poll_mcp_events", sent_fields(params.model_extra or {}, POLL_FIELDS))

    async def subscribe(self, ctx: McpContext, params: EventParams) -> HandlerResult:
        sent = params.model_extra or {}
        given = sent_fields(sent, SUBSCRIPTION_FIELDS) | sent_delivery(sent, ("url", "secret"))
        return await self._answer(ctx, "subscribe_mcp_events", given)

    async def unsubscribe(self, ctx: McpContext, params: EventParams) -> HandlerResult:
        sent = params.model_extra or {}
        given = sent_fields(sent, {"name": "name", "arguments": "arguments"}) | sent_delivery(sent, ("url",))
        return await self._answer(ctx, "unsubscribe_mcp_events", given)

    async def _answer(self, ctx: McpContext, operation: str, arguments: dict[str, object]) -> HandlerResult:
        requester = self._calls.who(ctx)
        call = self._calls.call(requester, self._operations[operation], arguments)
        reply = await self._calls.run(requester, call)
        if reply.refusal is not None:
            raise event_error(reply.refusal, call.request_id)
        return cast("dict[str, object]", readable_body(reply, None))


async def announce_events(ctx: McpContext, call_next: CallNext) -> HandlerResult:
    """Names the capability where capabilities are named: the SDK's own types have no word for it."""
    result = await call_next(ctx)
    if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
        return result
    capabilities = cast("dict[str, object]", result.get("capabilities") or {})
    return {**result, "capabilities": {**capabilities, EVENTS_CAPABILITY: {}}}


def offer_events(server: Server, methods: EventMethods) -> None:
    """Give a server the methods and the capability."""
    server.middleware.append(announce_events)
    server.add_request_handler("events/list", EventParams, methods.list)
    server.add_request_handler("events/poll", EventParams, methods.poll)
    server.add_request_handler("events/subscribe", EventParams, methods.subscribe)
    server.add_request_handler("events/unsubscribe", EventParams, methods.unsubscribe)
