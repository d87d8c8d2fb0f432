"""The one outbound HTTP seam: every call to an outside system leaves through an `Outbound`.

A request that gets no answer is named by one short class (`FailureKind`), never by text of the other side. The certificate authorities
that outside systems are checked against are loaded here, too.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

import anyio
import anyio.to_thread

from registry.clock import seconds_left

if TYPE_CHECKING:  # httpx and aiohttp cost 0.35 s each: imported when the first call is made
    from pathlib import Path

    import aiohttp
    import httpx

    ConnectorFactory = Callable[["OutboundLimits", ssl.SSLContext], aiohttp.BaseConnector]


FailureKind = Literal["timeout", "tls", "blocked", "refused", "dns", "network", "protocol"]
NEVER_SENT: frozenset[FailureKind] = frozenset({"refused", "dns", "blocked"})
"""These happen before a byte is sent."""


class AddressBlocked(OSError):
    """An address that must not be reached; an OSError, because only that type passes the connector unharmed."""


class OutboundFailed(Exception):
    """No complete answer arrived. Carries the class only: addresses and foreign text stay out of logs."""

    def __init__(self, kind: FailureKind) -> None:
        super().__init__(f"The outside system gave no usable answer ({kind}).")
        self.kind: FailureKind = kind


def failure_kind(error: BaseException) -> FailureKind:
    """The class of a failed request, by `error` and its causes: a transport wraps the error of the network."""
    causes = list(_error_causes(error))
    for types, kind in _FAILURE_KINDS:
        if any(isinstance(cause, types) for cause in causes):
            return kind
    return _failure_kind_by_name(causes)


def _error_causes(error: BaseException) -> Iterator[BaseException]:
    """Walk the error, its causes and what aiohttp wraps as `os_error`, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        wrapped: object = getattr(cause, "os_error", None)
        waiting += [cause.__cause__, cause.__context__, wrapped if isinstance(wrapped, BaseException) else None]


def _failure_kind_by_name(causes: list[BaseException]) -> FailureKind:
    """Fall back to the names of the library's types, so that this file needs no import of them."""
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if names & {"ClientSSLError", "ClientConnectorCertificateError"}:
        return "tls"
    if "ClientConnectorDNSError" in names:
        return "dns"
    if names & {"ClientConnectionError", "ClientPayloadError", "NetworkError"}:
        return "network"
    if names & {"TimeoutException", "ServerTimeoutError"}:
        return "timeout"
    return "protocol"


# The order matters: a certificate error is an OSError too, and a blocked address hides inside a connect timeout.
_FAILURE_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], FailureKind], ...] = (
    (AddressBlocked, "blocked"),
    ((ssl.SSLError, ssl.CertificateError), "tls"),
    (socket.gaierror, "dns"),
    (ConnectionRefusedError, "refused"),
    ((TimeoutError, asyncio.TimeoutError), "timeout"),
    (ConnectionError, "network"),
)


def load_httpx():  # noqa: ANN201  # the type checker infers the module
    """The library, imported with the first call: start-up budget."""
    import httpx

    return httpx


def trusted_authorities(ca_file: Path | None = None) -> ssl.SSLContext:
    """Trust of the public certificate authorities and of those in the PEM file `ca_file`; None: the file that SERVICE_CA_FILE names.

    Choice: SSL_CERT_FILE takes the place of the public ones, as OpenSSL has it; SERVICE_CA_FILE is trusted beside them, so that the
    service's own network and the internet are reached alike.
    """
    named = str(ca_file) if ca_file is not None else os.environ.get("SERVICE_CA_FILE", "")
    return _load_authorities(os.environ.get("SSL_CERT_FILE", ""), named)


@cache
def _load_authorities(instead: str, beside: str) -> ssl.SSLContext:
    """Loading them takes 25 ms, so all clients share them."""
    # httpx brings the bundle of public authorities, the same on every machine
    context = ssl.create_default_context(cafile=instead) if instead else load_httpx().create_ssl_context(trust_env=False)
    if beside:
        context.load_verify_locations(cafile=beside)
    return context


MEBIBYTE = 1 << 20
READ_AHEAD_BYTES = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""
USER_AGENT = "connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own names its version."""


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
class HttpReply:
    """An answer as it came: status, lower-case headers, raw bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    """The other side had more to say than was asked for; the rest was not read."""


@dataclass(frozen=True, slots=True)
class HttpStream:
    """The beginning of an answer; its bytes follow in `chunks`, which ends with OutboundFailed when they break off."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


URLS_LIMIT = 256


@lru_cache(maxsize=URLS_LIMIT)
def read_url(url: str) -> httpx.URL:
    """The parts of `url`; httpx.InvalidURL where it is none. Reading takes as long as a third of a call, and a system has few addresses."""
    return load_httpx().URL(url)


class Outbound:
    """A lazily opened client of one outside system: a transport of httpx, asked directly, for its client would add cookies and proxies.

    No redirects, proxies, cookies or retries.
    """

    def __init__(
        self,
        limits: OutboundLimits | None = None,
        *,
        connector: ConnectorFactory | None = None,
        tls: ssl.SSLContext | None = None,
        ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | Callable[[], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        """`connector` replaces the plain TCP one, `tls` the trusted authorities, `transport` the whole network, made on first use.

        `ca_file`: authorities that are trusted beside the public ones.
        """
        self.limits = limits or OutboundLimits()
        self._make_connector = connector or _tcp_connector
        self._tls, self._ca_file = tls, ca_file
        self._given = transport
        self._transport: httpx.AsyncBaseTransport | None = None
        self._extensions: dict[str, object] = {}
        self._failures: tuple[type[Exception], ...] = ()
        """What a transport raises when the other side or the network fails, or when the address is none."""

    async def aclose(self) -> None:
        """Close all connections; the next call opens anew."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> HttpReply:
        """Send one request, wait for the answer and read at most `keep` raw bytes of it; OutboundFailed where none arrives.

        All of it within the total time limit and that of the active request.
        """
        transport = self._transport or await self._opened()
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):  # a third of the cost of a cancel scope, once per call
                response = await transport.handle_async_request(self._request(method, url, headers, content))
                parts = aiter(cast("httpx.AsyncByteStream", response.stream))
                try:
                    return await _read_reply(response, parts, keep)
                finally:
                    await _close_reply(response, parts)
        except self._failures as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler: the cause may name an address or a secret URL

    @asynccontextmanager
    async def stream(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"") -> AsyncGenerator[HttpStream]:
        """Send one request and hand on the answer as it comes: the time limit holds to the first byte, then between two chunks.

        Leaving it early gives the connection up. No scope stays open between two chunks, so any task may read and leave.
        """
        response = await self._begin(method, url, headers, content)
        parts = aiter(cast("httpx.AsyncByteStream", response.stream))
        try:
            async with aclosing(self._chunks(parts)) as chunks:
                yield HttpStream(response.status_code, response.headers, chunks)
        finally:
            with anyio.move_on_after(1, shield=True), suppress(*self._failures):
                await _close_reply(response, parts)  # a failure now does not matter: the answer is no longer read

    async def _begin(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> httpx.Response:
        transport = self._transport or await self._opened()
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):
                return await transport.handle_async_request(self._request(method, url, headers, content))
        except self._failures as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler, as in `exchange`

    async def _chunks(self, parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        kind = None
        while kind is None:
            try:
                async with timeout(self.limits.total_seconds):
                    chunk = await anext(parts, None)
            except self._failures as error:
                kind = failure_kind(error)
            else:
                if chunk is None:
                    return
                if chunk:
                    yield chunk
        raise OutboundFailed(kind)

    def _request(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> httpx.Request:
        library = load_httpx()
        sent = library.Headers({"accept-encoding": "identity", **headers}, encoding="utf-8")
        return library.Request(method, read_url(url), headers=sent, content=content, extensions=self._extensions)

    async def _opened(self) -> httpx.AsyncBaseTransport:
        """Opens it; what it is made of is imported in a thread, since that takes longer than a hundred calls.

        Whoever gives a transport has imported its library.
        """
        if self._given is None:
            await anyio.to_thread.run_sync(load_network, self._ca_file)
        return self._transport or self._open()

    def _open(self) -> httpx.AsyncBaseTransport:
        library, given = load_httpx(), self._given
        self._failures = (library.HTTPError, library.InvalidURL, OSError, UnicodeError)
        limits = library.Timeout(self.limits.total_seconds, connect=self.limits.connect_seconds)
        self._extensions = {"timeout": limits.as_dict()}
        transport = self._network() if given is None else given() if callable(given) else given
        self._transport = transport
        return transport

    def _network(self) -> httpx.AsyncBaseTransport:
        """Over the connections of aiohttp: the pool of httpx looks at each connection for each call, and is many times slower at 64.

        No cookies, no proxies, no redirects, bodies as they come. A POST is sent once: aiohttp repeats only calls of idempotent methods,
        whose kept connection was just closed (RFC 9110 section 9.2.2).
        """
        import aiohttp  # start-up budget
        from httpx_aiohttp import AiohttpTransport

        tls = self._tls or trusted_authorities(self._ca_file)
        self._failures += (aiohttp.ClientError,)
        session = aiohttp.ClientSession(
            connector=self._make_connector(self.limits, tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            read_bufsize=READ_AHEAD_BYTES,
            headers={"user-agent": USER_AGENT},
            skip_auto_headers=("Content-Type",),
        )
        return AiohttpTransport(verify=tls, trust_env=False, client=session)


def load_network(ca_file: Path | None) -> None:
    """Imports what connections are made with, and reads the authorities that they are checked against: two seconds of a small machine."""
    import_module("httpx_aiohttp")
    trusted_authorities(ca_file)


def _tcp_connector(limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.BaseConnector:
    """Plain TCP connections; without a time to keep them they are closed after use."""
    import aiohttp  # start-up budget

    if limits.keepalive_seconds is None:
        return aiohttp.TCPConnector(limit=limits.connections, ssl=tls, force_close=True)
    return aiohttp.TCPConnector(limit=limits.connections, ssl=tls, keepalive_timeout=limits.keepalive_seconds)


async def _read_reply(response: httpx.Response, parts: AsyncIterator[bytes], keep: int) -> HttpReply:
    read: list[bytes] = []
    size = 0
    async for part in parts:
        read.append(part)
        size += len(part)
        if size > keep:
            break
    body = b"".join(read)
    return HttpReply(response.status_code, response.headers, body if size <= keep else body[:keep], truncated=size > keep)


async def _close_reply(response: httpx.Response, parts: AsyncIterator[bytes]) -> None:
    if isinstance(parts, AsyncGenerator):
        await cast("AsyncGenerator[bytes]", parts).aclose()
    await cast("httpx.AsyncByteStream", response.stream).aclose()
