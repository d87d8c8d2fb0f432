"""The network: pooled connections of aiohttp's. httpx in front of them would double the work of a call.

POSTs go over aiohttp's pool, its TLS and its parser, without what its session makes for every call: the session takes 75 us of CPU for a
small call and writes a body in a task of its own, this 30. Other methods take the session: it repeats a call whose kept connection was
just closed, which no POST may be.
"""

import asyncio
import ssl
from collections.abc import Mapping

import aiohttp  # slow to import, so this file is imported when the first call is made
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

READ_AHEAD_BYTES = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""
POST_ORIGINS_LIMIT = 1024
POST_SCHEMES = frozenset({"http", "https"})


class PostResponse:
    """An answer whose head has been read."""

    def __init__(self, connection: Connection, message: RawResponseMessage, body: aiohttp.StreamReader) -> None:
        self._connection, self._message, self._body = connection, message, body
        self.status = message.code

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        return join_headers(self._message.headers)

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


class PostConnections:
    """Sends what has a body, once."""

    def __init__(self, connector: aiohttp.BaseConnector, *, connect_seconds: float) -> None:
        """The connector is the session's: both share its connections, and the session closes it."""
        self._connector = connector
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._requests: dict[URL, aiohttp.ClientRequest] = {}

    async def send(self, url: URL, headers: Mapping[str, str], content: bytes) -> PostResponse:
        """Send a request and wait for the head of its answer."""
        request_template = self._request_for(url)
        request = post_head(request_template, url.raw_path_qs, headers, len(content), close=self._connector.force_close) + content
        connection = await self._connector.connect(request_template, [], self._limits)
        try:
            message, body = await send_post(connection, request)
        except BaseException:
            connection.close()
            raise
        return PostResponse(connection, message, body)

    def _request_for(self, url: URL) -> aiohttp.ClientRequest:
        """What the pool is asked for a connection with; the same for all addresses of one server."""
        origin = url.origin()
        found = self._requests.get(origin)
        if found is None:
            if len(self._requests) >= POST_ORIGINS_LIMIT:
                self._requests.clear()
            found = self._requests[origin] = aiohttp.ClientRequest("POST", origin, loop=asyncio.get_running_loop())
        return found


def plain_post_url(url: str) -> URL | None:
    """An address that a POST can go to as it is; the session knows what to do or say about any other."""
    try:
        found = URL(url)
    except ValueError:
        return None
    return found if found.scheme in POST_SCHEMES and found.raw_host and found.raw_authority.find("@") < 0 else None


async def send_post(connection: Connection, request: bytes) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """Write the request, which waits in memory where the other side is slow; its answer may come before it was taken."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection was closed before anything was sent")
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=READ_AHEAD_BYTES)
    transport.write(request)
    try:
        message, body = await protocol.read()
        while message.code < 200 and message.code != 101:  # such as 103 Early Hints: the answer is still to come
            message, body = await protocol.read()
    except HttpProcessingError:
        raise aiohttp.ClientError("the answer is not HTTP") from None
    return message, body


def post_head(request_template: aiohttp.ClientRequest, path: str, headers: Mapping[str, str], length: int, *, close: bool) -> bytes:
    """The request line and the headers. As the session does, it refuses to let a value end its line."""
    given = {"host": request_template.headers["Host"], "accept": "*/*", **headers, "content-length": str(length)}
    if close:
        given["connection"] = "close"
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    text = "\r\n".join(lines)
    if text.count("\r") != len(lines) - 1 or text.count("\n") != len(lines) - 1 or "\0" in text:
        raise ValueError("Newline, carriage return, or null byte detected in headers. Potential header injection attack.")
    return text.encode()


def join_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """By lower-case name; what came several times is joined by commas."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        found[lower] = f"{found[lower]}, {value}" if lower in found else value
    return found


USER_AGENT = "connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own tells its version."""


class AiohttpResponse:
    """aiohttp's answer as ours."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        return join_headers(self._response.headers)

    async def read(self) -> bytes:
        """What came next."""
        return await self._response.content.readany()

    async def aclose(self) -> None:
        """The connection is kept when the answer was read to its end, else closed."""
        self._response.release()
        await self._response.wait_for_close()


class AiohttpBackend:
    """One session: no cookies, no proxies, no redirects, bodies as they come."""

    failures: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError, UnicodeError)

    def __init__(self, connector: aiohttp.BaseConnector, *, connect_seconds: float) -> None:
        """Whoever waits sets the other time limits."""
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=READ_AHEAD_BYTES,
            headers={"user-agent": USER_AGENT},
            skip_auto_headers=("Content-Type",),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        )

        self._posts = PostConnections(connector, connect_seconds=connect_seconds)

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> AiohttpResponse | PostResponse:
        """Send a request and wait for the head of its answer."""
        if method == "POST" and content and (address := plain_post_url(url)) is not None:
            return await self._posts.send(address, {"user-agent": USER_AGENT, **lower_header_names(headers)}, content)
        response = await self._session.request(method, url, headers=headers, data=content or None, allow_redirects=False)
        return AiohttpResponse(response)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


def lower_header_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Names are the same however they are spelled."""
    return {name.lower(): value for name, value in headers.items()}


def tcp_connector(connections: int, keepalive_seconds: float | None, tls: ssl.SSLContext) -> aiohttp.TCPConnector:
    """Plain TCP connections; without a time to keep them they are closed after use."""
    if keepalive_seconds is None:
        return aiohttp.TCPConnector(limit=connections, ssl=tls, force_close=True)
    return aiohttp.TCPConnector(limit=connections, ssl=tls, keepalive_timeout=keepalive_seconds)
