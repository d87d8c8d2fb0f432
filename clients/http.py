"""The one outbound HTTP seam: every call to an outside system leaves through an `Outbound`."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from clients.authorities import authorities
from clients.failure import OutboundFailed, failure_kind
from registry.active_request import seconds_left

if TYPE_CHECKING:  # httpx and aiohttp cost 0.35 s each: imported when the first call is made
    import ssl
    from pathlib import Path

    import aiohttp
    import httpx

    from clients.road import Arrived, Road

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
        ca_file: Path | None = None,
        transport: httpx.AsyncBaseTransport | Callable[[], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        """`connector` replaces the plain TCP one, `tls` the trusted authorities, `transport` the whole network, made on first use.

        `ca_file`: authorities that are trusted beside the public ones.
        """
        self.limits = limits or OutboundLimits()
        self._make_connector = connector or _plain_connector
        self._tls, self._ca_file = tls, ca_file
        self._transport = transport
        self._road: Road | None = None

    async def aclose(self) -> None:
        """Close all connections; the next call opens anew."""
        road, self._road = self._road, None
        if road is not None:
            await road.aclose()

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> Reply:
        """Send one request and read at most `keep` raw bytes of the answer, within the total time limit and that of the active request."""
        road = self._open()
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):  # a third of the cost of a cancel scope, once per call
                arrived = await road.send(method, url, _plain(headers), content)
                try:
                    return await _read(arrived, keep)
                finally:
                    await arrived.aclose()
        except road.failures as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler: the cause may name an address or a secret URL

    @asynccontextmanager
    async def stream(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"") -> AsyncGenerator[StreamReply]:
        """Send one request and hand on the answer as it comes: the time limit holds to the first byte, then between two chunks.

        Leaving it early gives the connection up. No scope stays open between two chunks, so any task may read and leave.
        """
        road = self._open()
        arrived = await self._begin(road, method, url, headers, content)
        try:
            async with aclosing(_chunks(road, arrived, self.limits.total_seconds)) as chunks:
                yield StreamReply(arrived.status, arrived.headers, chunks)
        finally:
            with anyio.move_on_after(1, shield=True), suppress(*road.failures):
                await arrived.aclose()  # what fails now concerns an answer nobody reads any more

    async def _begin(self, road: Road, method: str, url: str, headers: Mapping[str, str], content: bytes) -> Arrived:
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):
                return await road.send(method, url, _plain(headers), content)
        except road.failures as error:
            kind = failure_kind(error)
        raise OutboundFailed(kind)  # outside the handler, as in `exchange`

    def _open(self) -> Road:
        """Open on first use; the same way afterwards."""
        if self._road is None:
            self._road = self._network() if self._transport is None else self._inside(self._transport)
        return self._road

    def _inside(self, given: httpx.AsyncBaseTransport | Callable[[], httpx.AsyncBaseTransport]) -> Road:
        import httpx  # start-up budget, as the next one

        from clients.in_process import InProcess

        transport = given if isinstance(given, httpx.AsyncBaseTransport) else given()
        return InProcess(transport, idle_seconds=self.limits.total_seconds)

    def _network(self) -> Road:
        from clients.sockets import Sockets  # start-up budget

        limits = self.limits
        connector = self._make_connector(limits, self._tls or authorities(self._ca_file))
        return Sockets(connector, connect_seconds=limits.connect_seconds)


def _plain_connector(limits: OutboundLimits, tls: ssl.SSLContext) -> aiohttp.BaseConnector:
    from clients.sockets import connector  # start-up budget

    return connector(limits.connections, limits.keepalive_seconds, tls)


def _plain(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {"accept-encoding": "identity", **headers}


async def _read(arrived: Arrived, keep: int) -> Reply:
    parts: list[bytes] = []
    size = 0
    while size <= keep and (part := await arrived.read()):
        parts.append(part)
        size += len(part)
    body = b"".join(parts)
    return Reply(arrived.status, arrived.headers, body if size <= keep else body[:keep], truncated=size > keep)


async def _chunks(road: Road, arrived: Arrived, idle_seconds: float) -> AsyncGenerator[bytes]:
    kind = None
    while kind is None:
        try:
            async with timeout(idle_seconds):
                chunk = await arrived.read()
        except road.failures as error:
            kind = failure_kind(error)
        else:
            if not chunk:
                return
            yield chunk
    raise OutboundFailed(kind)
