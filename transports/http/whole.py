"""A whole answer as one write to the connection: nearly every answer is one, and ASGI's two messages cost more than making it."""

import http
from collections.abc import Iterable
from weakref import ref

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from transports.http.asgi import Headers
from transports.http.joined import Joined

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in http.HTTPStatus}
CLOSE = (b"connection", b"close")


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of an answer."""
    return b"\r\n".join([STATUS_LINES[status], *[b"%b: %b" % header for header in headers], b"", b""])


async def answer(of: "ref[RequestResponseCycle]", transport: Joined, status: int, headers: Headers, body: bytes) -> None:
    """What `send` would do with the start and the only piece of an answer, in one step. The headers are ours and say the length.

    What uvicorn sends with every answer (RFC 9110 6.6.1: Date) stands before them. The request holds this, and so does not keep itself
    alive: it is gone with its answer, and leaves nothing to the collector.
    """
    cycle = of()
    if cycle is None:
        return
    if cycle.flow.write_paused and not cycle.disconnected:
        await cycle.flow.drain()
    if cycle.disconnected:
        return
    cycle.response_started, cycle.waiting_for_100_continue = True, False
    if CLOSE in headers:
        cycle.keep_alive = False
    elif not cycle.keep_alive:
        headers = [*headers, CLOSE]
    transport.write_whole(head_of(status, cycle.default_headers + headers), body)
    cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
