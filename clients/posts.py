"""POSTs over aiohttp's pool, its TLS and its parser, without what its session makes for every call.

The session takes 75 us of CPU for a small call and writes a body in a task of its own, this 30. Other methods take the session: it
repeats a call whose kept connection was just closed, which no POST may be.
"""

import asyncio
from collections.abc import Mapping

import aiohttp  # slow to import, so this file is imported when the first call is made
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

READ_AHEAD = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""
MOST_PLACES = 1024
SCHEMES = frozenset({"http", "https"})


class ArrivedByPost:
    """An answer whose head has been read."""

    def __init__(self, connection: Connection, message: RawResponseMessage, body: aiohttp.StreamReader) -> None:
        self._connection, self._message, self._body = connection, message, body
        self.status = message.code

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        return joined(self._message.headers)

    async def read(self) -> bytes:
        """What came next."""
        return await self._body.readany()

    async def aclose(self) -> None:
        """The connection is kept when the answer was read to its end and the request had left by then, else closed."""
        transport = self._connection.transport
        if transport is not None and transport.get_write_buffer_size():
            self._connection.close()
        else:
            self._connection.release()


class Posts:
    """Sends what has a body, once."""

    def __init__(self, connector: aiohttp.BaseConnector, *, connect_seconds: float) -> None:
        """The connector is the session's: both share its connections, and the session closes it."""
        self._connector = connector
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._places: dict[URL, aiohttp.ClientRequest] = {}

    async def send(self, url: URL, headers: Mapping[str, str], content: bytes) -> ArrivedByPost:
        """Send a request and wait for the head of its answer."""
        place = self._place(url)
        request = head(place, url.raw_path_qs, headers, len(content), close=self._connector.force_close) + content
        connection = await self._connector.connect(place, [], self._limits)
        try:
            message, body = await asked(connection, request)
        except BaseException:
            connection.close()
            raise
        return ArrivedByPost(connection, message, body)

    def _place(self, url: URL) -> aiohttp.ClientRequest:
        """What the pool is asked for a connection with; the same for all addresses of one server."""
        origin = url.origin()
        found = self._places.get(origin)
        if found is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            found = self._places[origin] = aiohttp.ClientRequest("POST", origin, loop=asyncio.get_running_loop())
        return found


def plain(url: str) -> URL | None:
    """An address that a POST can go to as it is; the session knows what to do or say about any other."""
    try:
        found = URL(url)
    except ValueError:
        return None
    return found if found.scheme in SCHEMES and found.raw_host and found.raw_authority.find("@") < 0 else None


async def asked(connection: Connection, request: bytes) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """Write the request, which waits in memory where the other side is slow; its answer may come before it was taken."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection was closed before anything was sent")
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=READ_AHEAD)
    transport.write(request)
    try:
        message, body = await protocol.read()
        while message.code < 200 and message.code != 101:  # such as 103 Early Hints: the answer is still to come
            message, body = await protocol.read()
    except HttpProcessingError:
        raise aiohttp.ClientError("the answer is not HTTP") from None
    return message, body


def head(place: aiohttp.ClientRequest, path: str, headers: Mapping[str, str], length: int, *, close: bool) -> bytes:
    """The request line and the headers. As the session does, it refuses to let a value end its line."""
    given = {"host": place.headers["Host"], "accept": "*/*", **headers, "content-length": str(length)}
    if close:
        given["connection"] = "close"
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    text = "\r\n".join(lines)
    if text.count("\r") != len(lines) - 1 or text.count("\n") != len(lines) - 1 or "\0" in text:
        raise ValueError("Newline, carriage return, or null byte detected in headers. Potential header injection attack.")
    return text.encode()


def joined(headers: Mapping[str, str]) -> Mapping[str, str]:
    """By lower-case name; what came several times is joined by commas."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        found[lower] = f"{found[lower]}, {value}" if lower in found else value
    return found
