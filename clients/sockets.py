"""The network: pooled connections of aiohttp's. httpx in front of them would double the work of a call (design/performance.md 5)."""

import ssl
from collections.abc import Mapping

import aiohttp  # slow to import, so this file is imported when the first call is made

USER_AGENT = "connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own tells its version."""
READ_AHEAD = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""


class ArrivedBySocket:
    """aiohttp's answer as ours."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        found: dict[str, str] = {}
        for name, value in self._response.headers.items():
            lower = name.lower()
            found[lower] = f"{found[lower]}, {value}" if lower in found else value
        return found

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

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> ArrivedBySocket:
        """Send a request and wait for the head of its answer."""
        response = await self._session.request(method, url, headers=headers, data=content or None, allow_redirects=False)
        return ArrivedBySocket(response)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


def connector(connections: int, keepalive_seconds: float | None, tls: ssl.SSLContext) -> aiohttp.TCPConnector:
    """Plain TCP connections; without a time to keep them they are closed after use."""
    if keepalive_seconds is None:
        return aiohttp.TCPConnector(limit=connections, ssl=tls, force_close=True)
    return aiohttp.TCPConnector(limit=connections, ssl=tls, keepalive_timeout=keepalive_seconds)
