"""The one outbound HTTP seam: every call to an outside system leaves through an `Outbound`.

A request that gets no answer is told as one short class (`FailureKind`), never as text of the other side. The certificate authorities
that outside systems are checked against are made here, too.
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
from functools import cache
from typing import TYPE_CHECKING, Literal, Protocol

import anyio

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
    """Class of a failed request; the cause decides, since the transport reports any failed connect as a timeout."""
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


class BackendResponse(Protocol):
    """The beginning of an answer. Whoever got it closes it; closing early gives the connection up."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name; what came several times is joined by commas."""
        ...

    async def read(self) -> bytes:
        """The raw bytes that came next; none at the end."""
        ...

    async def aclose(self) -> None:
        """Done with it."""
        ...


class HttpBackend(Protocol):
    """Sends requests. Follows no redirect, keeps no cookie, repeats nothing, asks no proxy."""

    failures: tuple[type[Exception], ...]
    """What `send`, `read` and `aclose` raise when the other side or the network fails."""

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> BackendResponse:
        """Send a request and wait for the head of its answer."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


def trusted_authorities(ca_file: Path | None = None) -> ssl.SSLContext:
    """Public authorities, and the operator's own: `ca_file` is a PEM file of theirs (SERVICE_CA_FILE); None: what the environment names.

    Choice: SSL_CERT_FILE takes the place of the public ones, as OpenSSL has it; SERVICE_CA_FILE is trusted beside them, so that the
    service's own network and the internet are reached alike.
    """
    named = str(ca_file) if ca_file is not None else os.environ.get("SERVICE_CA_FILE", "")
    return _load_authorities(os.environ.get("SSL_CERT_FILE", ""), named)


@cache
def _load_authorities(instead: str, beside: str) -> ssl.SSLContext:
    """Reading them takes 25 ms, so all that call outside share them."""
    import httpx  # brings the bundle of public authorities, the same on every machine

    context = ssl.create_default_context(cafile=instead) if instead else httpx.create_ssl_context(trust_env=False)
    if beside:
        context.load_verify_locations(cafile=beside)
    return context


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


class Outbound:
    """A lazily opened client of one outside system. No redirects, proxies, cookies or retries."""

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
        self._transport = transport
        self._backend: HttpBackend | None = None

    async def aclose(self) -> None:
        """Close all connections; the next call opens anew."""
        backend, self._backend = self._backend, None
        if backend is not None:
            await backend.aclose()

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> HttpReply:
        """Send one request and read at most `keep` raw bytes of the answer, within the total time limit and that of the active request."""
        backend = self._open()
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):  # a third of the cost of a cancel scope, once per call
                response = await backend.send(method, url, _with_identity_encoding(headers), content)
                try:
                    return await _read_reply(response, keep)
                finally:
                    await response.aclose()
        except backend.failures as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler: the cause may name an address or a secret URL

    @asynccontextmanager
    async def stream(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"") -> AsyncGenerator[HttpStream]:
        """Send one request and hand on the answer as it comes: the time limit holds to the first byte, then between two chunks.

        Leaving it early gives the connection up. No scope stays open between two chunks, so any task may read and leave.
        """
        backend = self._open()
        response = await self._begin(backend, method, url, headers, content)
        try:
            async with aclosing(_reply_chunks(backend, response, self.limits.total_seconds)) as chunks:
                yield HttpStream(response.status, response.headers, chunks)
        finally:
            with anyio.move_on_after(1, shield=True), suppress(*backend.failures):
                await response.aclose()  # what fails now concerns an answer nobody reads any more

    async def _begin(self, backend: HttpBackend, method: str, url: str, headers: Mapping[str, str], content: bytes) -> BackendResponse:
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):
                return await backend.send(method, url, _with_identity_encoding(headers), content)
        except backend.failures as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler, as in `exchange`

    def _open(self) -> HttpBackend:
        """Open on first use; the same way afterwards."""
        if self._backend is None:
            self._backend = self._network_backend() if self._transport is None else self._in_process_backend(self._transport)
        return self._backend

    def _in_process_backend(self, given: httpx.AsyncBaseTransport | Callable[[], httpx.AsyncBaseTransport]) -> HttpBackend:
        import httpx  # start-up budget, as the next one

        from clients.in_process import InProcessBackend

        transport = given if isinstance(given, httpx.AsyncBaseTransport) else given()
        return InProcessBackend(transport, idle_seconds=self.limits.total_seconds)

    def _network_backend(self) -> HttpBackend:
        from clients.aiohttp_backend import AiohttpBackend  # start-up budget

        limits = self.limits
        connector = self._make_connector(limits, self._tls or trusted_authorities(self._ca_file))
        return AiohttpBackend(connector, connect_seconds=limits.connect_seconds)


def _tcp_connector(limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.BaseConnector:
    from clients.aiohttp_backend import tcp_connector  # start-up budget

    return tcp_connector(limits.connections, limits.keepalive_seconds, tls)


def _with_identity_encoding(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {"accept-encoding": "identity", **headers}


async def _read_reply(response: BackendResponse, keep: int) -> HttpReply:
    parts: list[bytes] = []
    size = 0
    while size <= keep and (part := await response.read()):
        parts.append(part)
        size += len(part)
    body = b"".join(parts)
    return HttpReply(response.status, response.headers, body if size <= keep else body[:keep], truncated=size > keep)


async def _reply_chunks(backend: HttpBackend, response: BackendResponse, idle_seconds: float) -> AsyncGenerator[bytes]:
    kind = None
    while kind is None:
        try:
            async with timeout(idle_seconds):
                chunk = await response.read()
        except backend.failures as error:
            kind = failure_kind(error)
        else:
            if not chunk:
                return
            yield chunk
    raise OutboundFailed(kind)
