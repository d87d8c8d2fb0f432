"""The body of an MCP request, looked at before the SDK reads it: of a name that stands twice it would take the last."""

import json
from contextlib import suppress
from typing import cast

import orjson

from registry.errors import BodyTooLarge
from registry.guard import unique
from transports.http.asgi import BodyMessage, HttpScope, Message, Receive
from transports.http.body import broken_off
from transports.mcp.settings import BODY_BYTES

DECODER = json.JSONDecoder(object_pairs_hook=unique)


async def checked(scope: HttpScope, receive: Receive) -> tuple[object, Receive]:
    """What the body says, and a receive that gives it again, once nothing in it can be read in two ways.

    A body that broke off is refused, even where its beginning reads like a whole one (RFC 9112 section 8).
    """
    messages: list[Message] = []
    pieces: list[bytes] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] == "http.disconnect":
            raise broken_off(scope)
        body = cast(BodyMessage, message)
        pieces.append(body.get("body", b""))
        if sum(map(len, pieces)) > BODY_BYTES:
            raise BodyTooLarge(f"The body is larger than {BODY_BYTES} bytes", hint="Send less at once")
        if not body.get("more_body", False):
            break
    waiting = iter(messages)

    async def again() -> Message:
        return next(waiting, None) or await receive()

    return read(b"".join(pieces)), again


def read(raw: bytes) -> object:
    """The JSON, in which a name twice in one object is refused; nothing of what only some readers take, which is the SDK's to answer."""
    with suppress(ValueError, RecursionError):
        value: object = DECODER.decode(raw.decode(json.detect_encoding(raw), "surrogatepass"))  # the SDK takes each encoding, too
        orjson.loads(raw)  # the strictest: no half characters, no numbers that are none
        return value
    return None
