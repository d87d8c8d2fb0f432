"""Keep-alive connections to one server: as many as there are calls under way."""

import asyncio
import ssl
from collections.abc import Mapping

from benchmarks.load import Answer, Wire, connect, dechunked

LONGEST = 60.0
RESTED = 8.0
"""Seconds: a connection that nobody used for so long may be about to be closed by the server, so another one is made."""
GONE, LATE = Answer(0, b"", b"the connection was closed"), Answer(0, b"", b"no answer in time")


class Wires:
    """Each call has a connection to itself while it waits. `tls`: the server has a certificate for localhost."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.port, self.closed_on_us, self._tls = port, 0, tls
        self._idle: list[tuple[float, Wire]] = []
        self._waiting: dict[Wire, asyncio.Future[Answer]] = {}

    async def ask(self, request: bytes) -> Answer:
        """The answer; status 0 where there was none. Where the server closed a connection just when it was used again, once more."""
        wire = self._rested(asyncio.get_running_loop().time())
        if wire is not None:
            answer = await self._exchange(wire, request)
            if answer is not GONE:
                return answer
            self.closed_on_us += 1
        return await self._exchange(await connect(self.port, self._answered, self._tls), request)

    async def _exchange(self, wire: Wire, request: bytes) -> Answer:
        loop = asyncio.get_running_loop()
        waiting = self._waiting[wire] = loop.create_future()
        wire.send(request)
        try:
            answer = await asyncio.wait_for(waiting, LONGEST)
        except TimeoutError:
            answer = LATE
        finally:
            self._waiting.pop(wire, None)
        if wire.closed or answer.status == 0:
            close(wire)
        else:
            self._idle.append((loop.time(), wire))
        return answer

    def aclose(self) -> None:
        for _, wire in self._idle:
            close(wire)
        self._idle.clear()

    def _rested(self, now: float) -> Wire | None:
        while self._idle:
            since, wire = self._idle.pop()
            if not wire.closed and now - since < RESTED:
                return wire
            close(wire)
        return None

    def _answered(self, wire: Wire, status: int, head: bytes, body: bytes) -> None:
        waiting = self._waiting.get(wire)
        if waiting is not None and not waiting.done():
            waiting.set_result(Answer(status, head, dechunked(body) if b"transfer-encoding: chunked" in head else body) if status else GONE)


def close(wire: Wire) -> None:
    if wire.transport is not None:
        wire.transport.abort()


def wire_request(method: str, path: str, secret: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {secret}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body is None:
        return ("\r\n".join(lines) + "\r\n\r\n").encode()
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
