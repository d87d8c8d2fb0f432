"""Connections that can only be made to vetted addresses."""

# Imported on the first delivery only (aiohttp costs 0.4 s of start-up).
import socket
import ssl
from collections.abc import Sequence

import aiohttp
from aiohttp.abc import AbstractResolver

from clients.failure import Blocked
from clients.http import OutboundLimits
from clients.webhooks.addresses import Network, allowed

SocketAddress = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


def vetted_connector(
    limits: OutboundLimits, tls: ssl.SSLContext, exempt: Sequence[Network], resolver: AbstractResolver
) -> aiohttp.TCPConnector:
    """No cached answer and no kept connection outlives a change in DNS."""
    return aiohttp.TCPConnector(
        resolver=resolver,
        use_dns_cache=False,
        force_close=True,
        limit=limits.connections,
        ssl=tls,
        socket_factory=VettingSockets(exempt),
    )


class VettingSockets:
    """Makes the socket of each attempt after a last look at its address: literals never meet the resolver."""

    def __init__(self, exempt: Sequence[Network]) -> None:
        self._exempt = exempt

    def __call__(self, address_info: SocketAddress) -> socket.socket:
        """Raise `Blocked` instead of opening a socket towards a denied address."""
        family, kind, protocol, _, address = address_info
        scoped = len(address) == 4 and address[3] != 0
        if scoped or not allowed(str(address[0]), self._exempt):
            raise Blocked("The address must not be reached.")
        return socket.socket(family, kind, protocol)
