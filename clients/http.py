"""The one outbound HTTP seam: every call to an outside system leaves through an `Outbound`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from clients.failure import OutboundFailed, failure_kind

if TYPE_CHECKING:  # httpx and aiohttp cost 0.35 s each: imported when the first call is made
    import ssl

    import aiohttp
    import httpx

    Connector = Callable[["OutboundLimits", ssl.SSLContext], aiohttp.BaseConnector]

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class OutboundLimits:
    """What one outside system may take: connections, and seconds of waiting."""

    connections: int = 100
    keepalive_seconds: float | None = 15.0
    """How long an idle connection is kept; None closes each one after use."""
    connect_seconds: float = 5.0
    total_seconds: float = 15.0
    """From the first name lookup to the last byte that is read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came: status, lower-case headers, raw bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    """The other side had more to say than was asked for; the rest was not read."""


class Outbound:
    """A lazily opened client of one outside system. No redirects, proxies, cookies or retries."""

    def __init__(
        self,
        limits: OutboundLimits | None = None,
        *,
        connector: Connector | None = None,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`connector` replaces the plain TCP one, `tls` the trusted authorities, `transport` the whole network."""
        self.limits = limits or OutboundLimits()
        self._make_connector = connector or _plain_connector
        self._tls = tls
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    def client(self) -> httpx.AsyncClient:
        """Open on first use; the same client afterwards."""
        if self._client is None:
            self._client = self._open()
        return self._client

    async def aclose(self) -> None:
        """Close all connections; the next call opens anew."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> Reply:
        """Send one request and read at most `keep` raw bytes of the answer, within the total time limit."""
        import aiohttp  # start-up budget
        import httpx

        plain = {"accept-encoding": "identity", **headers}
        try:
            with anyio.fail_after(self.limits.total_seconds):
                async with self.client().stream(method, url, headers=plain, content=content) as response:
                    return await _read(response, keep)
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError, UnicodeError) as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler: the cause may name an address or a secret URL

    def _open(self) -> httpx.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy  # start-up budget, as the next one

        import httpx

        limits = self.limits
        return httpx.AsyncClient(
            transport=self._transport or self._network(),
            timeout=httpx.Timeout(limits.total_seconds, connect=limits.connect_seconds),
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
            follow_redirects=False,
        )

    def _network(self) -> httpx.AsyncBaseTransport:
        import aiohttp  # start-up budget
        import httpx
        from httpx_aiohttp import AiohttpTransport

        tls = self._tls or httpx.create_ssl_context(trust_env=False)

        def session() -> aiohttp.ClientSession:
            connector = self._make_connector(self.limits, tls)
            return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)

        # The transport builds a context of its own unless it is given one; the connector is what uses it.
        return AiohttpTransport(client=session, verify=tls, trust_env=False)


def _plain_connector(limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.BaseConnector:
    import aiohttp  # start-up budget

    if limits.keepalive_seconds is None:
        return aiohttp.TCPConnector(limit=limits.connections, ssl=tls, force_close=True)
    return aiohttp.TCPConnector(limit=limits.connections, ssl=tls, keepalive_timeout=limits.keepalive_seconds)


async def _read(response: httpx.Response, keep: int) -> Reply:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > keep:
            break
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, bytes(body[:keep]), truncated=len(body) > keep)
