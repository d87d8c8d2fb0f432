"""One example call as a user would paste it: curl and MCP."""

import re
import shlex
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import orjson

from registry.catalogue import AnyOperation
from registry.operation import Auth
from transports.openapi.inputs import path_names
from transports.openapi.refusals import has_body

CREDENTIALS: Mapping[Auth, str] = {
    Auth.BEARER: "<API_KEY>",
    Auth.SESSION: "<SESSION_TOKEN>",
    Auth.INTERNAL: "<INTERNAL_API_KEY>",
    Auth.STOREFRONT: "<STOREFRONT_API_KEY>",
    Auth.STOREFRONT_OPEN: "<STOREFRONT_API_KEY>",
    Auth.BRIDGE: "<INTERNAL_API_KEY>",
}
UNIQUE = "<UNIQUE_KEY>"
PLAIN_ARRAY = re.compile(r"\[\n +[^\[\]{}\n,]*(,\n +[^\[\]{}\n,]*)*\n *\]")
BREAK = re.compile(r"\n *")


def pretty(value: object) -> str:
    """JSON for people; an array of plain values stays on one line."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return PLAIN_ARRAY.sub(lambda found: BREAK.sub("", found.group()).replace(",", ", "), text)


def curl(operation: AnyOperation, values: Mapping[str, object], base_url: str) -> str:
    """The call over HTTP."""
    named = path_names(operation)
    path = operation.path
    for name in named:
        path = path.replace("{" + name + "}", quote(word(values.get(name, f"<{name}>")), safe="<>"))
    rest = {name: value for name, value in values.items() if name not in named}
    if rest and not has_body(operation):
        path += "?" + urlencode({name: word(value) for name, value in rest.items()}, safe=",:")
        rest = {}
    method = "" if operation.method == "GET" else f"-X {operation.method} "
    parts = [f"curl {method}{shlex.quote(base_url + path)}"]
    parts += [f"-H {quoted(header)}" for header in headers(operation, bool(rest))]
    if rest:
        parts.append(f"-d {quoted(orjson.dumps(rest).decode())}")
    return " \\\n  ".join(parts)


def quoted(value: str) -> str:
    """In single quotes, whatever it holds."""
    return "'" + value.replace("'", "'\\''") + "'"


def word(value: object) -> str:
    """A value as path and query spell it."""
    if isinstance(value, (list, tuple)):
        return ",".join(word(one) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON
    return str(value).lower() if isinstance(value, bool) else str(value)


def headers(operation: AnyOperation, body: bool) -> list[str]:
    """What the call must carry."""
    credential = CREDENTIALS.get(operation.auth)
    found = [] if credential is None else [f"Authorization: Bearer {credential}"]
    if operation.once is not None and operation.once.required:
        found.append(f"{operation.once.header}: {UNIQUE}")
    if body:
        found.append("Content-Type: application/json")
    return found


def tool_call(operation: AnyOperation, values: Mapping[str, object]) -> str | None:
    """The call over MCP, or None when it is not a tool."""
    if not operation.tool:
        return None
    arguments = dict(values)
    if operation.once is not None and operation.once.required:
        arguments["idempotency_key"] = UNIQUE
    return pretty({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": operation.id, "arguments": arguments}})
