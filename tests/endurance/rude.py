"""Clients without manners, over sockets: one byte a second, no reading, hanging up, garbage; and how the server rid itself of them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
BODY = (
    b"POST /v1/connectivity/intents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer %s\r\nIdempotency-Key: rude\r\nContent-Length: 5000\r\n\r\n{"
)
CHUNKED = BODY.replace(b"Content-Length: 5000", b"Transfer-Encoding: chunked").removesuffix(b"{") + b"1\r\n{\r\n"
GARBAGE = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03nonsense\r\n\r\n"
PIPELINED = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50


class Dribbled(NamedTuple):
    """One of them: after how long it was closed, and what it was told."""

    seconds: float
    heard: bytes


async def dribble(port: int, start: bytes, drip: Callable[[int], bytes], every: float, most: float) -> Dribbled:
    """Send a start, and a little now and then, until the server closes or patience ends."""
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began, heard, count = loop.time(), b"", 0
    with suppress(ConnectionError):
        writer.write(start)
        while loop.time() - began < most:
            try:
                piece = await asyncio.wait_for(reader.read(65_536), every)
            except TimeoutError:
                writer.write(drip(count))
                count += 1
                continue
            if not piece:
                break
            heard += piece
    taken = loop.time() - began
    writer.transport.abort()
    return Dribbled(taken, heard)


async def crowd_of_dribblers(port: int, secret: str, each: int, headers: float, body: float, every: float = 1.0) -> list[str]:
    """So many of each kind at once; which of them were held longer than they may be."""
    slack, key = 2.0 + 2.0 * every, secret.encode()  # the first second or two may go by before all of them are let in
    heads = [dribble(port, HEAD, lambda count: b"x", every, headers * 3) for _ in range(each)]
    bodies = [dribble(port, BODY % key, lambda count: b" ", every, body * 3) for _ in range(each // 2)]
    chunks = [dribble(port, CHUNKED % key, lambda count: b"1\r\n \r\n", every, body * 3) for _ in range(each - each // 2)]
    found = await asyncio.gather(*heads, *bodies, *chunks)
    late = [f"a head that dribbled was held for {one.seconds:.1f} s" for one in found[:each] if one.seconds > headers + slack]
    late += [f"a body that dribbled was held for {one.seconds:.1f} s" for one in found[each:] if one.seconds > body + slack]
    return late + [f"a dribbler was told {one.heard[:40]!r}" for one in found if not one.heard.startswith(b"HTTP/1.1 408 ")]


async def hang_up(port: int, sent: bytes, *, read: int = 0, half: bool = False) -> bytes:
    """Send something, read so much of the answer, and hang up; `half`: say before that nothing more will be sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = b""
    with suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError):
        writer.write(sent)
        if half:
            writer.write_eof()
        if read:
            heard = await asyncio.wait_for(reader.read(read), 10)
    writer.transport.abort()
    return heard


def visits(secret: str) -> list[tuple[bytes, int, bool]]:
    """What is sent, how much of the answer is read, and whether the connection is half closed before."""
    key = f"Authorization: Bearer {secret}\r\n".encode()
    kind = b"Content-Type: application/json\r\nIdempotency-Key: left\r\n"
    listing = b"GET /v1/connectivity/intents?limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\n" + key + b"\r\n"
    plan = b'{"plan":"test_eu_1gb"}'
    creating = b"POST /v1/connectivity/intents HTTP/1.1\r\nHost: 127.0.0.1\r\n" + key + kind
    creating += b"Content-Length: %d\r\n\r\n" % len(plan) + plan
    return [
        (listing, 0, False),
        (listing, 100, False),
        (listing, 65_536, True),
        (creating, 0, False),
        (GARBAGE, 1000, False),
        (PIPELINED, 200, False),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(3000)) + b"\r\n", 1000, False),
        (b"GET /" + b"x" * 60_000, 1000, False),
        (HEAD, 0, True),
        (BODY % secret.encode(), 0, True),
    ]
