"""The body of an MCP request, looked at before the SDK reads it: of a name that stands twice it would take the last."""

import json
from contextlib import suppress
from typing import cast

from registry.errors import BodyTooLarge
from registry.guard import unique
from transports.http.asgi import BodyMessage, Message, Receive
from transports.mcp.settings import BODY_BYTES


async def checked(receive: Receive) -> Receive:
    """A receive that gives the same body again, once nothing in it can be read in two ways."""
    messages: list[Message] = []
    pieces: list[bytes] = []
    while True:
        message = await receive()
        messages.append(message)
        body = cast(BodyMessage, message)
        pieces.append(body.get("body", b""))
        if sum(map(len, pieces)) > BODY_BYTES:
            raise BodyTooLarge(f"The body is larger than {BODY_BYTES} bytes", hint="Send less at once")
        if body["type"] == "http.disconnect" or not body.get("more_body", False):
            break
    refuse_doubles(b"".join(pieces))
    waiting = iter(messages)

    async def again() -> Message:
        return next(waiting, None) or await receive()

    return again


def refuse_doubles(raw: bytes) -> None:
    """A name twice in one object is refused; what is no JSON, or too deep, is the SDK's to answer."""
    with suppress(ValueError, RecursionError):
        json.loads(raw, object_pairs_hook=unique)
