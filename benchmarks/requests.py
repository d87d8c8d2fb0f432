"""The measured requests, as bytes."""

import itertools
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
BODY = b'{"plan":"test_eu_1gb","metadata":{"order":"1042"}}'


def head(method: str, path: str, **headers: str) -> bytes:
    """The head of a request, without its last empty line."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n"


def read(key: str, intents: Sequence[str]) -> Callable[[], bytes]:
    """GET an intent, another one each time."""
    made = itertools.cycle([head("GET", f"/v1/connectivity/intents/{id}", Authorization=f"Bearer {key}") + b"\r\n" for id in intents])
    return lambda: next(made)


def subscriber(key: str, iccids: Sequence[str]) -> Callable[[], bytes]:
    """GET a line, another one each time."""
    made = itertools.cycle([head("GET", f"/v1/subscribers/{iccid}", Authorization=f"Bearer {key}") + b"\r\n" for iccid in iccids])
    return lambda: next(made)


def once(key: str, path: str) -> bytes:
    """GET something big on a connection that is closed behind it."""
    return head("GET", path, Authorization=f"Bearer {key}", Connection="close") + b"\r\n"


def ocs(method: str, params: object) -> bytes:
    """A call to the charging system itself."""
    body = json.dumps({method: params}).encode()
    return head("POST", "/v1?token=measured", Content_Type="application/json", Content_Length=str(len(body))) + b"\r\n" + body


def create(key: str) -> Callable[[], bytes]:
    """POST an intent, each time with an idempotency key of its own."""
    plain = {"Authorization": f"Bearer {key}", "Content_Type": "application/json", "Content_Length": str(len(BODY))}
    before = head("POST", "/v1/connectivity/intents", **plain) + b"Idempotency-Key: " + os.urandom(8).hex().encode() + b"-"
    number = itertools.count()
    return lambda: before + b"%d\r\n\r\n" % next(number) + BODY


def without_key(path: str) -> Callable[[], bytes]:
    """GET a route without a credential: routing and a 401, the same work wherever the route stands."""
    request = head("GET", path) + b"\r\n"
    return lambda: request


def message(key: str, era: str, method: str, params: dict[str, Any]) -> bytes:
    """One MCP request without a session."""
    extra: dict[str, str] = {}
    if era == MODERN:
        prefix = "io.modelcontextprotocol/"
        client = {"name": "benchmarks", "version": "1"}
        meta = {f"{prefix}protocolVersion": era, f"{prefix}clientInfo": client, f"{prefix}clientCapabilities": {}}
        params = {**params, "_meta": meta}
        extra = {"Mcp_Method": method} | ({"Mcp_Name": params["name"]} if "name" in params else {})
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {
        "Authorization": f"Bearer {key}",
        "Content_Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP_Protocol_Version": era,
        "Content_Length": str(len(body)),
    }
    return head("POST", "/mcp", **headers, **extra) + b"\r\n" + body


def tools_list(key: str, era: str) -> bytes:
    """tools/list."""
    return message(key, era, "tools/list", {})


def tool_call(key: str, era: str, intents: Sequence[str]) -> Callable[[], bytes]:
    """tools/call of get_connectivity_intent, for another intent each time."""
    name = "get_connectivity_intent"
    made = itertools.cycle([message(key, era, "tools/call", {"name": name, "arguments": {"id": id}}) for id in intents])
    return lambda: next(made)
