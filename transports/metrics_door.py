"""GET /metrics at an address of its own, with the probes of a process beside it; nothing of the public door is there."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeAlias

import anyio

from transports.metrics import TYPE, Metrics
from transports.readiness import HEALTH_PATH, READY_PATH, Readiness

REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 10.0
MOST_HEAD = 8192
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What is at a path now."""

    status: int
    media_type: str
    body: bytes


Paths: TypeAlias = Mapping[bytes, Callable[[], Awaitable[Answer]]]


@asynccontextmanager
async def metrics_door(metrics: Metrics, readiness: Readiness, bound: socket.socket) -> AsyncGenerator[None]:
    """Open on a bound socket for the length of a block; who is still asking at its end gets no answer."""
    answer, asking = answering(paths_of(metrics, readiness)), set[asyncio.Task[None]]()

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


def paths_of(metrics: Metrics, readiness: Readiness) -> Paths:
    """Everything that is to be had here."""

    async def metrics_text() -> Answer:
        return Answer(200, TYPE, await metrics.text())

    async def health() -> Answer:
        status, body = readiness.health()
        return Answer(status, JSON, body)

    async def ready() -> Answer:
        status, body = readiness.answer()
        return Answer(status, JSON, body)

    return {b"/metrics": metrics_text, HEALTH_PATH.encode(): health, READY_PATH.encode(): ready}


def answering(paths: Paths) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]:
    """One request per connection, as scrapers make it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                path, status = judge(head, paths)
                found = await paths[path]() if status == 200 else refusal(status, paths)
                writer.write(response(found, without_body=head.startswith(b"HEAD ")))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # whoever asks so slowly, so much, or goes away gets no answer; the next scrape comes by itself
        finally:
            writer.close()

    return answer


def judge(head: bytes, paths: Paths) -> tuple[bytes, int]:
    """The path of a request, and the status that it gets at once; 200: what is there decides."""
    method, _, rest = head.partition(b" ")
    target, _, protocol = rest.partition(b"\r\n")[0].partition(b" ")
    path = target.partition(b"?")[0]
    if not protocol.startswith(b"HTTP/1."):
        return path, 400
    if path not in paths:
        return path, 404
    return path, 200 if method in (b"GET", b"HEAD") else 405


def refusal(status: int, paths: Paths) -> Answer:
    """What is here, for whoever asked for something else."""
    known = b", ".join(paths).decode()
    return Answer(status, TEXT, f"{REASONS[status]}: this address has GET {known}\n".encode())


def response(answer: Answer, *, without_body: bool) -> bytes:
    """The bytes of an answer."""
    status, media_type, body = answer
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", f"content-type: {media_type}"]
    lines += [f"content-length: {len(body)}", "cache-control: no-store", "connection: close"]
    if status == 405:
        lines.append("allow: GET, HEAD")
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if without_body else body)
