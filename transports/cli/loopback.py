"""Where the browser comes back to after a login: an address of this machine, for one answer (RFC 8252 section 7.3)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

PATH = "/callback"
LARGEST = 16 * 1024
PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Connectivity reseller</title>"
    "<meta name=viewport content='width=device-width'><p style='font:1.1em system-ui;margin:3em'>"
)
TAKEN = "Go back to the terminal; this page can be closed."
FOREIGN = "This is not the answer to the login that the terminal waits for."
HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n"
)
Answer = dict[str, str]


class Listener:
    """Waits on a free port for the answer that carries the state of this login; whatever else comes by changes nothing."""

    def __init__(self, state: str) -> None:
        self.redirect_uri = ""
        self._state = state
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float) -> Answer | None:
        """The parameters of the redirect, or nothing in the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._answer
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection. Browsers open some that they never use, so each waits for itself."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text, answer = self._read(head.decode("latin-1").partition("\r\n")[0].split(" "))
                body = f"{PAGE}{text}".encode() if text else b""
                writer.write(f"HTTP/1.1 {status}\r\n{HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
                if answer is not None and not self._answer.done():
                    self._answer.set_result(answer)
        finally:
            writer.close()

    def _read(self, request: list[str]) -> tuple[str, str, Answer | None]:
        """Status, page and answer for a request line."""
        parts = urlsplit(request[1] if len(request) == 3 and request[0] == "GET" else "")
        if parts.path != PATH:
            return "404 Not Found", "", None
        answer = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if answer.get("state") != self._state:
            return "400 Bad Request", FOREIGN, None
        return "200 OK", TAKEN, answer


@asynccontextmanager
async def listening(state: str) -> AsyncGenerator[Listener]:
    """A listener for the length of a block."""
    listener = Listener(state)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, limit=LARGEST)
    listener.redirect_uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield listener
    finally:
        server.close()
