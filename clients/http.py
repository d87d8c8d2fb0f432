"""The one outbound HTTP seam: every call to an outside system leaves through an `Outbound`.

A request that gets no answer is named by one short class (`FailureKind`), never by text of the other side. The certificate authorities
that outside systems are checked against are loaded here, too.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # httpx and aiohttp cost 0.35 s each: imported when the first call is made
    from pathlib import Path

    import aiohttp
    import httpx

    from clients.httpx_requests import HttpxRequests

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
    """A lazily opened client of one outside system: httpx over aiohttp's connections. No redirects, proxies, cookies or retries."""

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
        self._make_connector = connector
        self._tls, self._ca_file = tls, ca_file
        self._transport = transport
        self._requests: HttpxRequests | None = None

    async def aclose(self) -> None:
        """Close all connections; the next call opens anew."""
        requests, self._requests = self._requests, None
        if requests is not None:
            await requests.aclose()

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> HttpReply:
        """Send one request, wait for the answer and read at most `keep` raw bytes of it; OutboundFailed where none arrives.

        All of it within the total time limit and that of the active request.
        """
        return await (self._requests or self._open()).exchange(method, url, headers, content, keep)

    def stream(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"") -> AbstractAsyncContextManager[HttpStream]:
        """Send one request and hand on the answer as it comes: the time limit holds to the first byte, then between two chunks.

        Leaving it early gives the connection up. No scope stays open between two chunks, so any task may read and leave.
        """
        return (self._requests or self._open()).stream(method, url, headers, content)

    def _open(self) -> HttpxRequests:
        import httpx  # start-up budget, as the next one

        from clients.httpx_requests import HttpxRequests

        given = self._transport
        transport = given if isinstance(given, httpx.AsyncBaseTransport) else self._network() if given is None else given()
        self._requests = HttpxRequests(transport, self.limits.total_seconds)
        return self._requests

    def _network(self) -> httpx.AsyncBaseTransport:
        from clients.aiohttp_transport import AiohttpTransport, tcp_connector  # start-up budget

        limits, tls = self.limits, self._tls or trusted_authorities(self._ca_file)
        connector = (self._make_connector or tcp_connector)(limits, tls)
        return AiohttpTransport(connector, connect_seconds=limits.connect_seconds)
