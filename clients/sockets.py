"""The network: pooled connections of aiohttp's. httpx in front of them would double the work of a call (design/performance.md 5)."""

import ssl
from collections.abc import Mapping

import aiohttp  # slow to import, so this file is imported when the first call is made

from clients.posts import READ_AHEAD, ArrivedByPost, Posts, joined, plain

USER_AGENT = "connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own tells its version."""


class ArrivedBySocket:
    """aiohttp's answer as ours."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        return joined(self._response.headers)

    async def read(self) -> bytes:
        """What came next."""
        return await self._response.content.readany()

    async def aclose(self) -> None:
        """The connection is kept when the answer was read to its end, else closed."""
        self._response.release()
        await self._response.wait_for_close()


class Sockets:
    """One session: no cookies, no proxies, no redirects, bodies as they come."""

    failures: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError, UnicodeError)

    def __init__(self, connector: aiohttp.BaseConnector, *, connect_seconds: float) -> None:
        """Whoever waits sets the other time limits."""
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=READ_AHEAD,
            headers={"user-agent": USER_AGENT},
            skip_auto_headers=("Content-Type",),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        )

        self._posts = Posts(connector, connect_seconds=connect_seconds)

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> ArrivedBySocket | ArrivedByPost:
        """Send a request and wait for the head of its answer."""
        if method == "POST" and content and (address := plain(url)) is not None:
            return await self._posts.send(address, {"user-agent": USER_AGENT, **lowered(headers)}, content)
        response = await self._session.request(method, url, headers=headers, data=content or None, allow_redirects=False)
        return ArrivedBySocket(response)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Names are the same however they are spelled."""
    return {name.lower(): value for name, value in headers.items()}


def connector(connections: int, keepalive_seconds: float | None, tls: ssl.SSLContext) -> aiohttp.TCPConnector:
    """Plain TCP connections; without a time to keep them they are closed after use."""
    if keepalive_seconds is None:
        return aiohttp.TCPConnector(limit=connections, ssl=tls, force_close=True)
    return aiohttp.TCPConnector(limit=connections, ssl=tls, keepalive_timeout=keepalive_seconds)
