"""The short way of a plain tools/call: the SDK's own checks, then the pipeline, without the SDK's machinery between them.

What is unusual in any way goes the long way through the SDK, which sees the same request. Both must answer alike, which
tests/mcp/test_edge.py asks of every kind of request. SERVICE_MCP_EDGE=false sends everything the long way.
"""

from collections.abc import Awaitable, Mapping
from typing import cast

import orjson
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request
from mcp_types import DEFAULT_NEGOTIATED_VERSION, SERVER_INFO_META_KEY, JSONRPCRequest
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from pydantic import ValidationError
from starlette.requests import Request

from transports.http.asgi import HttpScope
from transports.mcp.calls import ToolCalls
from transports.mcp.request_caller import RequestCaller

PROTOCOLS = (*HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION)
CALL_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
PLAIN_CALL_FIELDS = frozenset({"name", "arguments", "_meta"})
"""Neither an answer to a question of ours nor the state that goes with it."""
FAST_PATH_BYTES, LARGEST_CALL_ID = 1 << 16, 1 << 53


class FastPath:
    """Takes what is plain, and leaves the rest."""

    def __init__(self, server: Server, calls: ToolCalls) -> None:
        self._calls = calls
        self._stamp = {SERVER_INFO_META_KEY: server.server_info_stamp}

    def take(self, scope: HttpScope, message: object, requester: RequestCaller) -> Awaitable[bytes] | None:
        """Makes the call and tells the answer's body when it is awaited; None where the SDK has to look at the message.

        The caller is known, and nothing in the body has two readings.
        """
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        era = headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
        if era not in PROTOCOLS or len(headers) != len(scope["headers"]) or not has_small_body(headers):
            return None
        request = plain_tool_call(message)
        if request is None or not passes_sdk_checks(request, era, headers) or not is_plain_json(scope, headers):
            return None
        params = request.params or {}
        try:
            operation = self._calls.tools.find(requester, params["name"])
        except MCPError:  # the SDK says it
            return None
        # A confirmation may be a question to the client, and a call that asks somebody outside may need a stream to stay open.
        if operation.confirmable or operation.provided:
            return None
        arguments = cast("dict[str, object]", params.get("arguments") or {})
        return self._answer(era, request.id, self._calls.plain(requester, operation, arguments))

    async def _answer(self, era: str, id: int | str, pending: Awaitable[dict[str, object]]) -> bytes:
        result = await pending
        if era == LATEST_MODERN_VERSION:
            result["_meta"] = {**cast("dict[str, object]", result.get("_meta") or {}), **self._stamp}
        else:
            del result["resultType"]
        said = {name: value for name, value in result.items() if value is not None}
        return orjson.dumps({"jsonrpc": "2.0", "id": id, "result": said})


def is_plain_json(scope: HttpScope, headers: Mapping[str, str]) -> bool:
    """The SDK's checks of the content type and of what the client accepts."""
    accepts = check_accept_headers(Request(cast("dict[str, object]", scope)))
    return headers.get("content-type") == "application/json" and accepts == (True, True)


def has_small_body(headers: Mapping[str, str]) -> bool:
    """A body whose length was told and is modest."""
    length = headers.get("content-length", "")
    return length.isdecimal() and len(length) < 6 and int(length) <= FAST_PATH_BYTES


def plain_tool_call(message: object) -> JSONRPCRequest | None:
    """The request, if it is a tool call by a client that wants no progress."""
    if not isinstance(message, dict) or message.keys() != CALL_MEMBERS:
        return None
    try:
        request = JSONRPCRequest.model_validate(message)
    except ValidationError:
        return None
    params = request.params
    if request.method != "tools/call" or params is None or not params.keys() <= PLAIN_CALL_FIELDS:
        return None
    meta: object = params.get("_meta", {})
    plain = isinstance(meta, dict) and "progressToken" not in meta and (isinstance(request.id, str) or abs(request.id) < LARGEST_CALL_ID)
    return request if plain else None


def passes_sdk_checks(request: JSONRPCRequest, era: str, headers: Mapping[str, str]) -> bool:
    if era == LATEST_MODERN_VERSION:
        body = {"method": request.method, "params": request.params}
        routed = isinstance(classify_inbound_request(body, headers=headers), InboundModernRoute)
        if not routed or any(name.startswith("mcp-param-") for name in headers):
            return False
    try:
        validate_client_request(request.method, era, request.params)
    except ValidationError:
        return False
    return True
