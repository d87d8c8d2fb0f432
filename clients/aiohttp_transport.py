"""httpx over the connections of aiohttp: the pool of httpx looks at each connection for each request, and is many times slower at 64."""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp  # slow to import, so this file is imported when the first call is made
import httpx

from clients.http import OutboundLimits

READ_AHEAD_BYTES = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""
WHOLE_BODY_BYTES = 1 << 20
"""The library writes a body of at most this size in one piece, and warns of a larger one."""
USER_AGENT = "connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own tells its version."""
LINE_END = re.compile("[\r\n\0]")


@contextmanager
def errors_as_httpx() -> Iterator[None]:
    """Raises httpx's error in place of aiohttp's, which stays its cause: `failure_kind` reads that."""
    try:
        yield
    except aiohttp.ClientError as error:
        raise httpx.TransportError("the request failed") from error


class AiohttpStream(httpx.AsyncByteStream):
    """The body of an answer as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> "AiohttpStream":
        return self

    async def __anext__(self) -> bytes:
        with errors_as_httpx():
            part = await self._response.content.readany()
        if not part:
            raise StopAsyncIteration
        return part

    async def aclose(self) -> None:
        """Keeps the connection when the answer was read to its end, else closes it."""
        with errors_as_httpx():
            self._response.release()
            await self._response.wait_for_close()


class AiohttpTransport(httpx.AsyncBaseTransport):
    """One session: no cookies, no proxies, no redirects, bodies as they come. It repeats no POST."""

    def __init__(self, connector: aiohttp.BaseConnector, *, connect_seconds: float) -> None:
        """`connect_seconds`: for a connection with TLS, the name lookup included. Callers set the other time limits."""
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

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and wait for the head of its answer. ValueError where a header would end its line."""
        headers = {name.decode(): value.decode() for name, value in request.headers.raw}
        if any(map(LINE_END.search, headers.values())):
            raise ValueError("Newline, carriage return, or null byte detected in headers. Potential header injection attack.")
        content = request.content
        data = request.stream if len(content) > WHOLE_BODY_BYTES else content or None
        with errors_as_httpx():
            response = await self._session.request(request.method, str(request.url), headers=headers, data=data, allow_redirects=False)
        return httpx.Response(response.status, headers=response.raw_headers, stream=AiohttpStream(response), request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


def tcp_connector(limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.TCPConnector:
    """Plain TCP connections; without a time to keep them they are closed after use."""
    if limits.keepalive_seconds is None:
        return aiohttp.TCPConnector(limit=limits.connections, ssl=tls, force_close=True)
    return aiohttp.TCPConnector(limit=limits.connections, ssl=tls, keepalive_timeout=limits.keepalive_seconds)
