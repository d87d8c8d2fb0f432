"""Calls of a server elsewhere, over HTTP."""

import re
from collections.abc import Mapping
from typing import cast, get_args
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import orjson

from clients.failure import OutboundFailed
from clients.http import Outbound, OutboundLimits
from registry.answer import EVENTS_SECONDS
from registry.binding import Binding
from registry.call import Reply
from registry.catalogue import AnyOperation
from registry.clock import SystemClock
from registry.spelling import spellings
from transports.cli.event_stream import MEDIA_TYPE
from transports.cli.failure import Failure, Unreachable
from transports.cli.stored_login import stored_token

PATIENCE = 150.0
"""Seconds: the server reads whole fleets for 100 of them, and lists their lines before."""
LARGEST_ANSWER = 64 * 1024 * 1024
NEXT = re.compile(r'<([^<>]*)>; rel="next"(?:; starting_after="([^"]*)")?')


async def call_remotely(
    url: str,
    key: str | None,
    operation: AnyOperation,
    arguments: Mapping[str, object],
    *,
    idempotency_key: str | None,
    confirm_token: str | None,
) -> Reply:
    """One call, over a connection of its own."""
    outbound = Outbound(OutboundLimits(total_seconds=patience_of(operation)))
    try:
        return await exchange(outbound, url, key, operation, arguments, idempotency_key=idempotency_key, confirm_token=confirm_token)
    finally:
        await outbound.aclose()


def patience_of(operation: AnyOperation) -> float:
    """How long its whole answer may take: whoever makes events ends them, within what every door gives them."""
    return EVENTS_SECONDS if MEDIA_TYPE in get_args(operation.result) else PATIENCE


async def exchange(
    outbound: Outbound,
    url: str,
    key: str | None,
    operation: AnyOperation,
    arguments: Mapping[str, object],
    *,
    idempotency_key: str | None,
    confirm_token: str | None,
) -> Reply:
    """The same call as curl would make it."""
    binding = Binding(operation)
    rest = dict(arguments)
    path = operation.path
    for name in binding.path_names:
        path = path.replace("{" + name + "}", quote(text_of(taken(operation, rest, name)), safe=""))
    headers = {"accept": "application/json"}
    key = key or (None if operation.public else await stored_token(url, SystemClock()))
    if key:
        headers["authorization"] = f"Bearer {key}"
    if idempotency_key:
        headers[operation.once.header if operation.once else "Idempotency-Key"] = idempotency_key
    if confirm_token:
        headers["x-confirm-token"] = confirm_token
    content = b""
    if binding.has_body:
        headers["content-type"], content = "application/json", orjson.dumps(rest)
    elif rest:
        path += "?" + urlencode({name: text_of(value) for name, value in rest.items() if value is not None})
    try:
        reply = await outbound.exchange(operation.method, url.rstrip("/") + path, headers=headers, content=content, keep=LARGEST_ANSWER)
    except OutboundFailed as error:
        raise Unreachable(f"--url: {url} does not answer ({error.kind}); is the server running there?", exit_code=3) from None
    return Reply(
        reply.status,
        reply.body,
        media_type=reply.headers.get("content-type", ""),
        headers=dict(reply.headers),
        next_cursor=cursor_of(reply.headers.get("link", "")),
    )


def taken(operation: AnyOperation, values: dict[str, object], name: str) -> object:
    """The value that the path needs, taken out of the input under whichever of its names it was given."""
    known = spellings(operation.params)
    written = next((word for word in values if known.get(word) == known[name]), None)
    value = values.pop(written) if written is not None else None
    if value is None or value == "":
        raise Failure(f"{name}: missing; it is part of the address {operation.path}")
    return value


def cursor_of(link: str) -> str | None:
    """Where the next page begins, from the Link header of an answer that has more."""
    found = NEXT.search(link)
    if found is None:
        return None
    return unquote(found[2]) if found[2] else parse_qs(urlsplit(found[1]).query).get("starting_after", [None])[0]


def text_of(value: object) -> str:
    """A value as a query parameter."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(item) for item in cast("list[object]", value))
    return str(value)
