"""A receiver on loopback that counts connections and answers raw bytes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

HookAnswer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class HookReceiver:
    def __init__(self, answer: HookAnswer) -> None:
        self.answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0
        self.idle = anyio.Event()

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head + await reader.readexactly(_length(head)))
            await self.answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client hung up, which several tests want
        finally:
            writer.close()
            self.idle.set()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


@asynccontextmanager
async def receiver(answer: HookAnswer, tls: ssl.SSLContext | None = None) -> AsyncGenerator[HookReceiver]:
    """Listen on a free loopback port for the length of a test."""
    made = HookReceiver(answer)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


def status_answer(line: str, *headers: str, body: bytes = b"") -> HookAnswer:
    """Answer one status line with headers and a body."""

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = "\r\n".join([f"HTTP/1.1 {line}", *headers, f"content-length: {len(body)}", "", ""])
        writer.write(head.encode() + body)
        await writer.drain()

    return answer


async def silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Never answer; ends when the client hangs up."""
    await reader.read()


async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the head, then nothing more."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    await silence(reader, writer)
