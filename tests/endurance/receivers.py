"""Receivers of webhooks with manners of their own: prompt, slow, failing now and then, hanging up; all note what they took."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Literal
from zlib import crc32

from standardwebhooks import Webhook

Manner = Literal["prompt", "slow", "failing", "hanging up"]
MANNERS: tuple[Manner, ...] = ("prompt", "slow", "failing", "hanging up")
SLOW = 1.0
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
FAILED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


class CountingReceiver:
    """One endpoint. `taken` counts what was answered with 204, `refused` what was not, by event."""

    def __init__(self, manner: Manner) -> None:
        self.manner: Manner = manner
        self.secret = ""
        self.taken, self.refused, self.bodies = Counter[str](), Counter[str](), dict[str, int]()
        self.broken: list[str] = []

    def take(self, headers: dict[str, str], body: bytes) -> Literal["take", "refuse", "hang up"]:
        """What becomes of a post; one that fails at first is taken later."""
        event = headers["webhook-id"]
        signed = Webhook(self.secret).sign(event, datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC), body.decode())
        if signed not in headers["webhook-signature"].split(" "):
            self.broken.append(f"{event}: its signature is wrong")
        if self.bodies.setdefault(event, crc32(body)) != crc32(body):
            self.broken.append(f"{event}: another body the second time")
        if self.manner in ("failing", "hanging up") and self.refused[event] < crc32(event.encode()) % 3:
            self.refused[event] += 1
            return "refuse" if self.manner == "failing" else "hang up"
        self.taken[event] += 1
        return "take"


class CountingReceivers:
    """All of an engine, behind one port: the path says which."""

    def __init__(self) -> None:
        self.all: list[CountingReceiver] = []
        self.port = 0
        self._here = asyncio.Event()
        self._here.set()

    def add(self, manner: Manner) -> tuple[CountingReceiver, str]:
        self.all.append(CountingReceiver(manner))
        return self.all[-1], f"http://127.0.0.1:{self.port}/{len(self.all) - 1}"

    def behave(self) -> None:
        for receiver in self.all:
            receiver.manner = "prompt"

    def hang(self) -> None:
        """From now on a post is taken and not answered, until `go_on`, or until its sender gives up."""
        self._here.clear()

    def go_on(self) -> None:
        self._here.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until its sender closes it."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                """The next post comes on the same connection."""
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        await self._here.wait()
        receiver = self.all[int(first.split(" ")[1].strip("/"))]
        if receiver.manner == "slow":
            await asyncio.sleep(SLOW)
        decided = receiver.take(headers, body)
        if decided == "hang up":
            writer.write(NO_CONTENT[:12])
            return False
        writer.write(NO_CONTENT if decided == "take" else FAILED)
        await writer.drain()
        return True


@asynccontextmanager
async def counting_receivers() -> AsyncGenerator[CountingReceivers]:
    made = CountingReceivers()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = int(server.sockets[0].getsockname()[1])
    try:
        yield made
    finally:
        server.close()
