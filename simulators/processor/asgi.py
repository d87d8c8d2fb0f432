"""ASGI as the simulated processor reads and writes it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TypeAlias, cast

AsgiScope: TypeAlias = MutableMapping[str, object]
AsgiMessage: TypeAlias = MutableMapping[str, object]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiHeaders: TypeAlias = list[tuple[bytes, bytes]]
FORM_BODY_LIMIT = 64 * 1024
PROCESSOR_BODY_LIMIT = 1 << 20


async def read_processor_body(receive: AsgiReceive, longest: int) -> bytes | None:
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


async def send_processor_answer(send: AsgiSend, status: int, headers: AsgiHeaders, body: bytes, *, head_only: bool = False) -> None:
    """A whole answer."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": b"" if head_only else body})
