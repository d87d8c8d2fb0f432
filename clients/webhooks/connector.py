"""Connections that can only be made to vetted addresses."""

# Imported on the first delivery only (aiohttp costs 0.4 s of start-up).
import socket
import ssl
from collections.abc import Sequence
from functools import lru_cache, partial

import aiohttp
from aiohttp.abc import AbstractResolver

from clients.failure import Blocked
from clients.http import OutboundLimits
from clients.webhooks.addresses import Network, allowed
from clients.webhooks.private_receivers import PrivateReceivers

ADDRESSES_REMEMBERED = 4096
SocketAddress = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


def vetted_connector(
    limits: OutboundLimits,
    tls: ssl.SSLContext,
    exempt: Sequence[Network],
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

    def __init__(self, exempt: Sequence[Network], private: PrivateReceivers | None = None) -> None:
        self._private = private
        # Which addresses may be reached does not change: what is remembered is the judgement of an address, never the address of a name.
        self._allowed = lru_cache(maxsize=ADDRESSES_REMEMBERED)(partial(allowed, exempt=tuple(exempt)))

    def __call__(self, address_info: SocketAddress) -> socket.socket:
        """Raise `Blocked` instead of opening a socket towards a denied address."""
        family, kind, protocol, _, address = address_info
        scoped = len(address) == 4 and address[3] != 0
        numeric = str(address[0])
        if scoped or not (self._allowed(numeric) or (self._private is not None and self._private.reaches(numeric, None))):
            raise Blocked("The address must not be reached.")
        return socket.socket(family, kind, protocol)
