"""The one outbound HTTP seam: every call to an outside system leaves through an `Outbound`."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

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


@dataclass(frozen=True, slots=True)
class StreamReply:
    """The beginning of an answer; its bytes follow in `chunks`, which ends with OutboundFailed when they break off."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Outbound:
    """A lazily opened client of one outside system. No redirects, proxies, cookies or retries."""

    def __init__(
        self,
        limits: OutboundLimits | None = None,
        *,
        connector: Connector | None = None,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | Callable[[], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        """`connector` replaces the plain TCP one, `tls` the trusted authorities, `transport` the whole network, made on first use."""
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

    @asynccontextmanager
    async def stream(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"") -> AsyncGenerator[StreamReply]:
        """Send one request and hand on the answer as it comes: the time limit holds to the first byte, then between two chunks.

        Leaving it early gives the connection up. No scope stays open between two chunks, so any task may read and leave.
        """
        import aiohttp  # start-up budget
        import httpx

        response = await self._begin(method, url, headers, content)
        try:
            async with aclosing(_chunks(response, self.limits.total_seconds)) as chunks:
                yield StreamReply(response.status_code, _lower(response), chunks)
        finally:
            with anyio.move_on_after(1, shield=True), suppress(httpx.HTTPError, aiohttp.ClientError, OSError):
                await response.aclose()  # what fails now concerns an answer nobody reads any more

    async def _begin(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> httpx.Response:
        import aiohttp  # start-up budget
        import httpx

        try:
            with anyio.fail_after(self.limits.total_seconds):
                plain = {"accept-encoding": "identity", **headers}
                request = self.client().build_request(method, url, headers=plain, content=content)
                return await self.client().send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError, UnicodeError) as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler, as in `exchange`

    def _open(self) -> httpx.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy  # start-up budget, as the next one

        import httpx

        logging.getLogger("httpx").addFilter(_unlogged)
        limits = self.limits
        return httpx.AsyncClient(
            transport=self._outside(),
            timeout=httpx.Timeout(limits.total_seconds, connect=limits.connect_seconds),
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
            follow_redirects=False,
        )

    def _outside(self) -> httpx.AsyncBaseTransport:
        import httpx

        given = self._transport
        if given is None:
            return self._network()
        return given if isinstance(given, httpx.AsyncBaseTransport) else given()

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
    return Reply(response.status_code, _lower(response), bytes(body[:keep]), truncated=len(body) > keep)


async def _chunks(response: httpx.Response, idle_seconds: float) -> AsyncGenerator[bytes]:
    import aiohttp  # start-up budget
    import httpx

    kind = None
    raw = cast("AsyncGenerator[bytes]", response.aiter_raw())  # declared as a mere iterator
    async with aclosing(raw) as parts:
        while kind is None:
            try:
                with anyio.fail_after(idle_seconds):
                    chunk = await anext(parts, None)
            except (httpx.HTTPError, aiohttp.ClientError, OSError) as error:
                kind = failure_kind(error)
            else:
                if chunk is None:
                    return
                yield chunk
    raise OutboundFailed(kind)


def _lower(response: httpx.Response) -> Mapping[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _unlogged(_record: logging.LogRecord) -> bool:
    """The library logs every URL it calls, and some of ours hold a secret."""
    return False
