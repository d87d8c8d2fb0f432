"""Connections that can only be made to vetted addresses. A name is refused whole when one of its addresses must not be reached."""

import socket
import ssl
from collections.abc import Sequence
from functools import lru_cache, partial

import aiohttp  # 0.4 s of start-up: this file is imported on the first delivery only
from aiohttp.abc import AbstractResolver, ResolveResult

from clients.http import AddressBlocked, OutboundLimits
from clients.webhooks.addresses import IpNetwork, NameLookup, PrivateReceivers, is_address_allowed
from clients.webhooks.receiver_url import LOCALHOST, canonical_host, exempt_loopbacks


class VettingResolver(AbstractResolver):
    """One lookup per connection, every answer checked, only checked numeric addresses handed on."""

    def __init__(self, exempt: Sequence[IpNetwork], lookup: NameLookup, private: PrivateReceivers | None = None) -> None:
        """`private`: what is opened in the operator's own network; None: nothing."""
        self._exempt = exempt
        self._lookup = lookup
        self._private = private

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """The addresses of `host`; AddressBlocked unless every one is allowed. `family` is ignored: a denied address refuses the name."""
        addresses = await self._addresses(host)
        name, private = canonical_host(host), self._private
        inside = [] if private is None else [each for each in addresses if private.reaches(each, name)]
        outside = [each for each in addresses if each not in inside]
        if outside or not inside:
            require_allowed_addresses(outside, self._exempt)
        return [_resolve_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""

    async def _addresses(self, host: str) -> Sequence[str]:
        local = exempt_loopbacks(self._exempt)
        if host == LOCALHOST and local:
            return local  # RFC 6761: never asked of DNS, and ::1 must not refuse it when only 127.0.0.0/8 is exempt
        return await self._lookup(host)


def _resolve_result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


VETTED_ADDRESSES_LIMIT = 4096
SocketAddress = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


def vetted_connector(
    limits: OutboundLimits,
    tls: ssl.SSLContext,
    exempt: Sequence[IpNetwork],
    resolver: AbstractResolver,
    private: PrivateReceivers | None = None,
) -> aiohttp.TCPConnector:
    """No cached answer and no kept connection outlives a change in DNS."""
    return aiohttp.TCPConnector(
        resolver=resolver,
        use_dns_cache=False,
        force_close=True,
        limit=limits.connections,
        ssl=tls,
        socket_factory=VettingSockets(exempt, private),
    )


class VettingSockets:
    """Makes the socket of each attempt after a last look at its address: literals never meet the resolver."""

    def __init__(self, exempt: Sequence[IpNetwork], private: PrivateReceivers | None = None) -> None:
        self._private = private
        # Which addresses may be reached does not change: what is remembered is the judgement of an address, never the address of a name.
        self._allowed = lru_cache(maxsize=VETTED_ADDRESSES_LIMIT)(partial(is_address_allowed, exempt=tuple(exempt)))

    def __call__(self, address_info: SocketAddress) -> socket.socket:
        """A socket for the address; AddressBlocked where it is denied."""
        family, kind, protocol, _, address = address_info
        scoped = len(address) == 4 and address[3] != 0
        numeric = str(address[0])
        if scoped or not (self._allowed(numeric) or (self._private is not None and self._private.reaches(numeric, None))):
            raise AddressBlocked("The address must not be reached.")
        return socket.socket(family, kind, protocol)


def require_allowed_addresses(addresses: Sequence[str], exempt: Sequence[IpNetwork] = ()) -> None:
    """Raise AddressBlocked unless there are addresses and every one is allowed."""
    if not addresses:
        raise AddressBlocked("The name has no address.")
    if not all(is_address_allowed(address, exempt) for address in addresses):
        raise AddressBlocked("The name leads to an address that must not be reached.")
