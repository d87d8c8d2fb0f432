"""`python -m benchmarks.receivers PORT`: receivers of webhooks on every loopback address; they answer 200 at once and count."""

import asyncio
import json
import sys
from typing import cast

import uvloop

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
CLOSING = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Seen:
    """What came so far."""

    def __init__(self) -> None:
        self.posts = self.signed = self.open = self.most_open = 0
        self.last = b""

    def told(self) -> bytes:
        """As JSON."""
        shown = {"posts": self.posts, "signed": self.signed, "most_open": self.most_open, "last": self.last.decode()}
        return json.dumps(shown).encode()


class Receiver(asyncio.Protocol):
    """One connection; kept as long as the sender wants."""

    def __init__(self, seen: Seen) -> None:
        self._seen, self._held = seen, b""
        self._transport = asyncio.Transport()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._seen.open += 1
        self._seen.most_open = max(self._seen.most_open, self._seen.open)

    def connection_lost(self, exc: Exception | None) -> None:
        self._seen.open -= 1

    def data_received(self, data: bytes) -> None:
        held = self._held + data
        head, complete, body = held.partition(b"\r\n\r\n")
        lower = head.lower()
        length = lower.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not complete or len(body) < int(length or 0):
            self._held = held
            return
        self._held = b""
        if head.startswith(b"GET"):
            told = self._seen.told()
            self._seen.most_open = self._seen.open
            self._transport.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(told), told))
            self._transport.close()
            return
        self._count(lower, held)
        closing = b"\r\nconnection: close" in lower
        self._transport.write(CLOSING if closing else OK)
        if closing:
            self._transport.close()

    def _count(self, lower: bytes, held: bytes) -> None:
        self._seen.posts += 1
        if b"\r\nwebhook-signature: v1," in lower:
            self._seen.signed += 1
            self._seen.last = held


async def serve(port: int) -> None:
    seen = Seen()
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(seen), "0.0.0.0", port, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
