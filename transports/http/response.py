"""A Reply as ASGI messages: the constant header bytes are prebuilt."""

from asyncio import FIRST_COMPLETED, Task, create_task, ensure_future, gather, timeout, wait
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Protocol
from urllib.parse import quote

from registry.call import Reply
from registry.operation import EventStream, StreamedAnswer
from transports.http.asgi import Headers, Receive, Send
from transports.http.concurrency import LARGE_ANSWER_BYTES

JSON_MEDIA_TYPE = "application/json"
REQUEST_ID_HEADER = b"request-id"
PUBLIC_JSON: Headers = [(b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff")]
UNBUFFERED_HEADER = (b"x-accel-buffering", b"no")
"""To proxies that gather an answer before they hand it on: events are read as they are made."""
PRIVATE_JSON: Headers = [*PUBLIC_JSON, (b"cache-control", b"no-store")]
BODILESS_STATUSES = (204, 304)
STREAM_SECONDS = 600
"""A reader that takes longer than this for one answer holds a connection to the other side for nothing."""
SLOWEST_READER = 64 * 1024
"""Bytes a second of an answer whose size is known: one that is too long for that many seconds has longer."""
BODY_PIECE_BYTES = 256 * 1024
"""What of a whole answer is written at once where it is long."""


class BodyEncoder(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


def header_list(reply: Reply, request_id: str, private: bool) -> Headers:
    """All headers of an answer but Link. What is one caller's is never cached, unless the operation itself decides."""
    headers = list(PRIVATE_JSON if private else PUBLIC_JSON)
    if reply.media_type != JSON_MEDIA_TYPE:
        headers[0] = (b"content-type", reply.media_type.encode("latin-1"))
    if isinstance(reply.stream, EventStream):
        headers.append(UNBUFFERED_HEADER)
    if reply.status not in BODILESS_STATUSES and reply.stream is None:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    headers.append((REQUEST_ID_HEADER, request_id.encode()))
    for name, value in reply.headers.items():
        if not value.isprintable():
            raise ValueError(f"{name}: a header value holds a control character")
        lower = name.lower().encode("latin-1")
        if lower == b"cache-control" and private:
            headers.remove(PRIVATE_JSON[-1])
        headers.append((lower, value.encode("latin-1")))
    return headers


def next_link(method: str, raw_path: bytes, query: bytes, cursor: str, root: str = "") -> tuple[bytes, bytes]:
    """The same path and query with `starting_after` replaced (RFC 8288, relative). `root`: what stands before our paths at a proxy.

    A POST takes no query: there the cursor, which goes into the body, is an attribute of the link.
    """
    path = root + quote(raw_path, safe="/%:@!$&'()*+,;=~-._")
    if method == "POST":
        return b"link", f'<{path}>; rel="next"; starting_after="{quote(cursor, safe="/:,;=|~")}"'.encode()
    kept = [part for part in query.decode("latin-1").split("&") if part and part.partition("=")[0] != "starting_after"]
    kept.append(f"starting_after={quote(cursor, safe='')}")
    target = f"{path}?{'&'.join(quote(part, safe='%=:@!$()*+,;~-._/?') for part in kept)}"
    return b"link", f'<{target}>; rel="next"'.encode()


async def send_stream(
    receive: Receive,
    send: Send,
    status: int,
    headers: Headers,
    passed: StreamedAnswer,
    *,
    turn: Callable[[], Awaitable[None]] | None = None,
    encoder: BodyEncoder | None = None,
) -> None:
    """An answer in pieces, as they arrive. When the other side fails in the middle the connection is broken, never the answer ended.

    Sending to a client that has disconnected raises nothing, so the disconnect is watched for: no piece is read after it.
    `turn` is waited for, once, before there is more than 1 MB. `encoder` compresses the pieces.
    """
    gone, sent = create_task(until_disconnected(receive)), 0
    try:
        async with aclosing(passed.pieces) as pieces, timeout(max(STREAM_SECONDS, passed.size / SLOWEST_READER)):
            await send({"type": "http.response.start", "status": status, "headers": headers})
            async for piece in pieces:
                sent += len(piece)
                if turn is not None and sent > LARGE_ANSWER_BYTES:
                    await wait_unless_gone(gone, turn())
                    turn = None
                if gone.done():
                    return
                data = piece if encoder is None else encoder.compress(piece)
                if data:
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"" if encoder is None else encoder.flush()})
    finally:
        gone.cancel()


async def wait_unless_gone(gone: Task[None], waited: Awaitable[None]) -> None:
    """Wait for the one, unless the other is done before."""
    waiting = ensure_future(waited)
    try:
        await wait((gone, waiting), return_when=FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def send_events(receive: Receive, send: Send, status: int, headers: Headers, events: EventStream) -> None:
    """Sends `events` as they are made. When the client disconnects, the next event is not waited for."""
    gone, telling = create_task(until_disconnected(receive)), create_task(send_event_messages(send, status, headers, events))
    try:
        await wait((gone, telling), return_when=FIRST_COMPLETED, timeout=STREAM_SECONDS)
        if telling.done():
            telling.result()
    finally:
        for task in (gone, telling):
            task.cancel()
        await gather(gone, telling, return_exceptions=True)


async def send_event_messages(send: Send, status: int, headers: Headers, events: EventStream) -> None:
    async with aclosing(events.pieces) as pieces:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_reply(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """The two messages of a whole answer."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_long(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """A whole answer that is too long to be written at once: a piece waits until the connection has taken the ones before."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for start in range(0, len(body), BODY_PIECE_BYTES):
        await send({"type": "http.response.body", "body": body[start : start + BODY_PIECE_BYTES], "more_body": True})
    await send({"type": "http.response.body", "body": b""})
