"""What a connection writes, and in how many system calls: the same bytes as uvicorn's own protocol, fewer writes."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from registry.clock import SystemClock
from registry.ids import SystemIds
from transports.http.asgi import STATE_SEND_WHOLE, Receive, Scope, Send, SendWhole
from transports.http.connections import Connections, Deadlines
from transports.http.protocol import COPY_LIMIT_BYTES, DeadlineProtocol, HeadJoiningTransport

GET = b"GET /%s HTTP/1.1\r\nHost: h\r\n\r\n"
LARGE = b"x" * (COPY_LIMIT_BYTES + 1)


class Wire(asyncio.Transport):
    """A transport that keeps what is written, each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed and not self.ended
        if data:
            self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def write_eof(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nobody reads here."""

    resume_reading = pause_reading


def start(status: int, *headers: tuple[bytes, bytes]) -> dict[str, object]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, *, more: bool = False) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def length(data: bytes) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % len(data)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer of each kind, by path."""
    kind = str(scope["path"])[1:]
    if kind == "early":
        raise LookupError("before the answer")
    if kind == "body":
        await receive()
    if kind.startswith("whole"):
        await whole(scope, send, LARGE if kind == "whole-large" else b'{"ok":true}')
    elif kind == "empty":
        await send(start(204))
        await send(body(b""))
    elif kind in ("stream", "slow", "broken"):
        await send(start(200))
        for piece in (b"one", b"two"):
            if kind == "slow":
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await send(body(piece, more=True))
        if kind == "broken":
            raise LookupError("in the middle")
        await send(body(b""))
    else:
        data = LARGE if kind == "large" else b'{"ok":true}'
        await send(start(200, length(data + b"!" if kind == "short" else data)))
        await send(body(data))


async def whole(scope: Scope, send: Send, data: bytes) -> None:
    """An answer in one step where the protocol takes it so, as the door does."""
    shown = b"" if scope["method"] == "HEAD" else data
    at_once = cast(SendWhole | None, cast(dict[str, object], scope.get("state", {})).get(STATE_SEND_WHOLE))
    if at_once is not None:
        await at_once(200, [length(data)], shown)
    else:
        await send(start(200, length(data)))
        await send(body(shown))


Make = Callable[[uvicorn.Config, ServerState], HttpToolsProtocol]


def plain(config: uvicorn.Config, state: ServerState) -> HttpToolsProtocol:
    return HttpToolsProtocol(config, state, {})


def joining(config: uvicorn.Config, state: ServerState) -> HttpToolsProtocol:
    ids, connections = SystemIds(SystemClock()), Connections(512, 64)
    return DeadlineProtocol(
        config, state, {}, deadlines=Deadlines(), ids=ids, refused=lambda request_id, refusal: None, connections=connections
    )


async def exchanged(make: Make, *requests: bytes) -> Wire:
    """What comes of requests that arrive one packet after the other, each when the one before is answered."""
    wire, state = Wire(), ServerState()
    state.default_headers = [(b"date", b"Sun, 22 Nov 2026 12:00:00 GMT")]
    config = uvicorn.Config(app, http="httptools", ws="none", interface="asgi3", log_config=None, access_log=False)
    protocol = make(config, state)
    protocol.connection_made(wire)
    for request in requests:
        if wire.closed:
            break
        protocol.data_received(request)
        for _ in range(30):
            await asyncio.sleep(0)
    assert not state.tasks
    protocol.connection_lost(None)
    return wire


CLOSE = b"GET /small HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
OLD = b"GET /small HTTP/1.0\r\n\r\n"
HEAD = b"HEAD /small HTTP/1.1\r\nHost: h\r\n\r\n"
EXPECT = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
SMALL = GET % b"small"
EXCHANGES: dict[str, tuple[tuple[bytes, ...], int]] = {
    "small": ((SMALL,), 1),
    "kept alive": ((SMALL, GET % b"empty", SMALL), 3),
    "pipelined": ((SMALL + HEAD + GET % b"empty" + SMALL,), 4),
    "head": ((HEAD, SMALL), 2),
    "no body": ((GET % b"empty",), 1),
    "closed": ((CLOSE, SMALL), 1),
    "http/1.0": ((OLD,), 1),
    "continue": ((EXPECT, b"{}"), 2),
    "large": ((GET % b"large", SMALL), 3),
    "stream": ((GET % b"stream", SMALL), 4),
    "slow stream": ((GET % b"slow", SMALL), 5),
    "whole": ((GET % b"whole", SMALL, GET % b"whole"), 3),
    "whole, pipelined": ((GET % b"whole" + GET % b"whole-large" + GET % b"whole",), 4),
    "whole, head": ((HEAD.replace(b"small", b"whole"), SMALL), 2),
    "whole, closed": ((CLOSE.replace(b"small", b"whole"), SMALL), 1),
    "whole, http/1.0": ((OLD.replace(b"small", b"whole"),), 1),
    "fails in the middle": ((GET % b"broken", SMALL), 2),
    "fails before": ((GET % b"early", SMALL), 1),
    "shorter than promised": ((GET % b"short", SMALL), 1),
    "fails while another waits": ((GET % b"broken" + SMALL,), 2),
}


@pytest.mark.parametrize(("requests", "writes"), EXCHANGES.values(), ids=EXCHANGES)
async def test_the_bytes_are_those_of_uvicorn_in_fewer_writes(requests: tuple[bytes, ...], writes: int) -> None:
    ours, theirs = await exchanged(joining, *requests), await exchanged(plain, *requests)
    assert b"".join(ours.writes) == b"".join(theirs.writes)
    assert (len(ours.writes), ours.closed) == (writes, theirs.closed)
    assert len(ours.writes) <= len(theirs.writes)


async def test_a_refusal_of_ours_is_written_before_the_end() -> None:
    wire = await exchanged(joining, b"GET /sm all HTTP/1.1\r\n\r\n")
    assert (len(wire.writes), wire.ended) == (1, True)
    assert wire.writes[0].startswith(b"HTTP/1.1 400 ")


async def test_a_head_is_sent_in_the_turn_of_the_loop_that_wrote_it() -> None:
    wire = Wire()
    joined = HeadJoiningTransport(wire, asyncio.get_running_loop())
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert (wire.writes, joined.get_write_buffer_size()) == ([], 19)
    await asyncio.sleep(0)
    assert (wire.writes, joined.get_write_buffer_size()) == ([b"HTTP/1.1 200 OK\r\n\r\n"], 0)
    joined.write(b"body")
    assert wire.writes[1:] == [b"body"]


@pytest.mark.parametrize("end", [HeadJoiningTransport.abort, lambda joined: None], ids=["by us", "by the client"])
async def test_a_connection_that_is_cut_sends_no_head_any_more(end: Callable[[HeadJoiningTransport], None]) -> None:
    wire = Wire()
    joined = HeadJoiningTransport(wire, asyncio.get_running_loop())
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    end(joined)
    wire.closed = True
    await asyncio.sleep(0)
    assert (wire.writes, wire.closed) == ([], True)
