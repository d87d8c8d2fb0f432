"""GET /metrics at an address of its own: nothing else is there, and nothing of the public door is."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from contextlib import asynccontextmanager

import anyio

from transports.metrics import TYPE, Metrics

REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 10.0
MOST_HEAD = 8192
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


@asynccontextmanager
async def metrics_door(metrics: Metrics, bound: socket.socket) -> AsyncGenerator[None]:
    """Open on a bound socket for the length of a block; who is still asking at its end gets no answer."""
    answer, asking = answering(metrics.text), set[asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asking.add(task := asyncio.create_task(answer(reader, writer)))
        task.add_done_callback(asking.discard)

    # A plain function: the task that asyncio would make for a coroutine reports its cancellation as an error.
    server = await asyncio.start_server(connected, sock=bound, limit=MOST_HEAD)
    try:
        yield
    finally:
        server.close()
        with anyio.CancelScope(shield=True):
            await end(asking)


async def end(asking: Collection[asyncio.Task[None]]) -> None:
    """Nobody waits for these."""
    tasks = list(asking)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def answering(read: Callable[[], Awaitable[bytes]]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]:
    """One request per connection, as scrapers make it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                status = judge(head)
                body = await read() if status == 200 else f"{REASONS[status]}: this address has GET /metrics\n".encode()
                writer.write(response(status, body if not head.startswith(b"HEAD ") else b"", len(body)))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # whoever asks so slowly, so much, or goes away gets no answer; the next scrape comes by itself
        finally:
            writer.close()

    return answer


def judge(head: bytes) -> int:
    """The status of a request."""
    method, _, rest = head.partition(b" ")
    path, _, protocol = rest.partition(b"\r\n")[0].partition(b" ")
    if not protocol.startswith(b"HTTP/1."):
        return 400
    if path.partition(b"?")[0] != b"/metrics":
        return 404
    return 200 if method in (b"GET", b"HEAD") else 405


def response(status: int, body: bytes, length: int) -> bytes:
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", f"content-type: {TYPE if status == 200 else 'text/plain; charset=utf-8'}"]
    lines += [f"content-length: {length}", "cache-control: no-store", "connection: close"]
    if status == 405:
        lines.append("allow: GET, HEAD")
    return "\r\n".join([*lines, "", ""]).encode() + body
