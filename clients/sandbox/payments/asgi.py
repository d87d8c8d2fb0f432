"""ASGI as the simulated processor reads and writes it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TypeAlias, cast

Scope: TypeAlias = MutableMapping[str, object]
Message: TypeAlias = MutableMapping[str, object]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]
LONGEST_FORM = 64 * 1024
LONGEST_BODY = 1 << 20


async def read_body(receive: Receive, longest: int) -> bytes | None:
    """All of the body; None when it is too long, and nothing of one that broke off."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        body += cast(bytes, message.get("body", b""))
        more = bool(message.get("more_body", False))
        if len(body) > longest:
            return None
    return bytes(body)


async def reply(send: Send, status: int, headers: Headers, body: bytes, *, head_only: bool = False) -> None:
    """A whole answer."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": b"" if head_only else body})
