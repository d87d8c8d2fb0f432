"""The load generator: keep-alive HTTP/1.1 connections, one request at a time on each, bounded by time and count."""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import uvloop

Make = Callable[[], bytes]
MOST_REQUESTS = 200_000
GRACE = 20.0  # seconds the last answers may take after the time is up


class Answer(NamedTuple):
    """One answer."""

    status: int
    headers: bytes
    body: bytes


class Load(NamedTuple):
    """What one run of the generator saw."""

    requests: int
    errors: int
    unanswered: int
    seconds: float
    latencies: list[float]
    own_cpu: float


class Wire(asyncio.Protocol):
    """One connection; hands every whole answer to `answered`, which may send the next request."""

    def __init__(self, answered: Callable[["Wire", int, bytes, bytes], None]) -> None:
        self._answered = answered
        self._buffer = b""
        self.transport: asyncio.Transport | None = None
        self.sent = 0.0
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # pyright: ignore[reportAttributeAccessIssue]  # uvloop's transports derive from nothing of asyncio's

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._answered(self, 0, b"", b"")

    def send(self, request: bytes) -> None:
        """Write a request and start its clock."""
        assert self.transport is not None
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = buffer[:end].lower()
        at = head.find(b"content-length:")
        if at >= 0:
            stop = head.find(b"\r\n", at)
            whole = end + 4 + int(head[at + 15 : stop if stop >= 0 else end])
            if len(buffer) < whole:
                return
        elif b"transfer-encoding: chunked" in head and not buffer.endswith(b"0\r\n\r\n"):
            return
        self._buffer = b""
        self._answered(self, int(buffer[9:12]), head, buffer[end + 4 :])


async def connect(port: int, answered: Callable[[Wire, int, bytes, bytes], None], tls: ssl.SSLContext | None = None) -> Wire:
    """A connection to a contestant; `tls`: to whoever has a certificate for localhost."""
    name = None if tls is None else "localhost"
    made = asyncio.get_running_loop().create_connection(lambda: Wire(answered), "127.0.0.1", port, ssl=tls, server_hostname=name)
    _, wire = await made
    return wire


async def ask(port: int, request: bytes, *, within: float = 60.0) -> Answer:
    """One request on a connection of its own."""
    done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def answered(wire: Wire, status: int, head: bytes, body: bytes) -> None:
        if not done.done():
            done.set_result(Answer(status, head, dechunked(body) if b"transfer-encoding: chunked" in head else body))

    wire = await connect(port, answered)
    wire.send(request)
    try:
        return await asyncio.wait_for(done, within)
    finally:
        if wire.transport is not None:
            wire.transport.close()


def dechunked(body: bytes) -> bytes:
    """The body of a chunked answer."""
    parts: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :] if length else b""
    return b"".join(parts)


async def drive(port: int, make: Make, *, connections: int, seconds: float, expect: int, most: int = MOST_REQUESTS) -> Load:
    """Keep `connections` requests under way for a time; every connection waits for its answer before it asks again."""
    latencies: list[float] = []
    counts = {"sent": 0, "wrong": 0, "idle": 0}
    finished = asyncio.Event()
    clock = time.perf_counter
    ends = clock() + seconds

    def rest() -> None:
        counts["idle"] += 1
        if counts["idle"] == connections:
            finished.set()

    def answered(wire: Wire, status: int, head: bytes, body: bytes) -> None:
        if wire.sent == 0.0:
            return
        now = clock()
        if status == expect:
            latencies.append(now - wire.sent)
        else:
            counts["wrong"] += 1
        wire.sent = 0.0
        if now >= ends or counts["sent"] >= most or wire.closed:
            rest()
            return
        counts["sent"] += 1
        wire.send(make())

    wires = [await connect(port, answered) for _ in range(connections)]
    cpu, begun = time.process_time(), clock()
    ends = begun + seconds
    for wire in wires:
        counts["sent"] += 1
        wire.send(make())
    with suppress(TimeoutError):  # what never came is counted as unanswered
        await asyncio.wait_for(finished.wait(), seconds + GRACE)
    taken, own = clock() - begun, time.process_time() - cpu
    for wire in wires:
        wire.sent = 0.0
        if wire.transport is not None:
            wire.transport.abort()
    return Load(len(latencies), counts["wrong"], connections - counts["idle"], taken, latencies, own)


def run_drive(port: int, make: Make, *, connections: int, seconds: float, expect: int) -> Load:
    """`drive` on a loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(drive(port, make, connections=connections, seconds=seconds, expect=expect))


def run_ask(port: int, request: bytes) -> Answer:
    """`ask` on a loop of its own."""
    return asyncio.run(ask(port, request))
