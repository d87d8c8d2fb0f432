"""httpx over the connections of aiohttp: the pool of httpx looks at each connection for each request, and is many times slower at 64.

A POST takes the connections, the TLS and the parser of aiohttp, but not its session: with it the service would need a third more CPU for a
call (among other things it writes the body in a task of its own). Other methods take the session: it repeats a call whose kept connection
was just closed, which no POST may be.
"""

import asyncio

import aiohttp  # slow to import, so this file is imported when the first call is made
import httpx
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

READ_AHEAD_BYTES = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""
POST_ORIGINS_LIMIT = 1024
USER_AGENT = b"connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own names its version."""


class AiohttpStream(httpx.AsyncByteStream):
    def __init__(self, body: aiohttp.StreamReader) -> None:
        self._body = body

    def __aiter__(self) -> "AiohttpStream":
        return self

    async def __anext__(self) -> bytes:
        try:
            part = await self._body.readany()
        except aiohttp.ClientError as error:
            raise httpx.TransportError("the answer broke off") from error
        if not part:
            raise StopAsyncIteration
        return part


class SessionStream(AiohttpStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(response.content)
        self._response = response

    async def aclose(self) -> None:
        """Keeps the connection when the answer was read to its end, else closes it."""
        try:
            self._response.release()
            await self._response.wait_for_close()
        except aiohttp.ClientError as error:
            raise httpx.TransportError("the answer broke off") from error


class PostStream(AiohttpStream):
    def __init__(self, body: aiohttp.StreamReader, connection: Connection) -> None:
        super().__init__(body)
        self._connection = connection

    async def aclose(self) -> None:
        """Keeps the connection when the answer was read to its end and the request had left by then, else closes it."""
        transport = self._connection.transport
        if transport is not None and transport.get_write_buffer_size():
            self._connection.close()
        else:
            self._connection.release()


class AiohttpTransport(httpx.AsyncBaseTransport):
    """No cookies, no proxies, no redirects, bodies as they come. The session closes the connector."""

    def __init__(self, connector: aiohttp.BaseConnector, *, connect_seconds: float) -> None:
        """`connect_seconds`: for one attempt to connect. Callers set the other time limits."""
        self._connector = connector
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=READ_AHEAD_BYTES,
            headers={"user-agent": USER_AGENT.decode()},
            skip_auto_headers=("Content-Type",),
            timeout=self._limits,
        )
        self._origins: dict[URL, aiohttp.ClientRequest] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and wait for the head of its answer. ValueError where a header would end its line."""
        url, address = request.url, str(request.url)
        try:
            if request.method == "POST" and request.content and url.scheme in ("http", "https") and not url.userinfo:
                return await self._post(request, URL(address))
            headers = [(name.decode(), value.decode()) for name, value in request.headers.raw]
            response = await self._session.request(
                request.method, address, headers=headers, data=request.content or None, allow_redirects=False
            )
        except aiohttp.ClientError as error:  # stays the cause: `failure_kind` reads it
            raise httpx.TransportError("no answer") from error
        return httpx.Response(response.status, headers=response.raw_headers, stream=SessionStream(response), request=request)

    async def aclose(self) -> None:
        await self._session.close()

    async def _post(self, request: httpx.Request, url: URL) -> httpx.Response:
        head = post_head(url.raw_path_qs, request.headers, close=self._connector.force_close)
        connection = await self._connector.connect(self._request_for(url), [], self._limits)
        try:
            message, body = await send_post(connection, head + request.content)
        except BaseException:
            connection.close()
            raise
        return httpx.Response(message.code, headers=message.raw_headers, stream=PostStream(body, connection), request=request)

    def _request_for(self, url: URL) -> aiohttp.ClientRequest:
        """What the pool is asked for a connection with; the same for all addresses of one server."""
        origin = url.origin()
        found = self._origins.get(origin)
        if found is None:
            if len(self._origins) >= POST_ORIGINS_LIMIT:
                self._origins.clear()
            found = self._origins[origin] = aiohttp.ClientRequest("POST", origin, loop=asyncio.get_running_loop())
        return found


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


def post_head(path: str, headers: httpx.Headers, *, close: bool) -> bytes:
    """The request line and the headers. As the session does, it refuses to let a value end its line."""
    given = {b"accept": b"*/*", b"user-agent": USER_AGENT, **{name.lower(): value for name, value in headers.raw}}
    if close:
        given[b"connection"] = b"close"
    lines = [f"POST {path} HTTP/1.1".encode(), *(b"%b: %b" % each for each in given.items()), b"", b""]
    head = b"\r\n".join(lines)
    if head.count(b"\r") != len(lines) - 1 or head.count(b"\n") != len(lines) - 1 or b"\0" in head:
        raise ValueError("Newline, carriage return, or null byte detected in headers. Potential header injection attack.")
    return head
