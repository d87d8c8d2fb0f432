"""Whose request it is behind proxies: the last address in X-Forwarded-For that no trusted proxy has."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import cast

from transports.http.asgi import App, HttpScope, Receive, Scope, Send

Network = IPv4Network | IPv6Network
HEADER = b"x-forwarded-for"


class Forwarded:
    """Sets the client of each request; without trusted proxies it is whoever connected, and the header counts for nothing."""

    def __init__(self, app: App, trusted: Sequence[Network]) -> None:
        self._app, self._trusted = app, tuple(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if self._trusted and scope["type"] == "http":
            request = cast(HttpScope, scope)
            peer = (request.get("client") or ("", 0))[0]
            if trusts(peer, self._trusted):
                scope = {**scope, "client": (origin(peer, request, self._trusted), 0)}
        await self._app(scope, receive, send)


def origin(peer: str, request: HttpScope, trusted: Sequence[Network]) -> str:
    """From the right: what a trusted proxy wrote is believed, and what it was told is not."""
    told = b",".join(value for name, value in request["headers"] if name == HEADER).decode("latin-1")
    for address in (part.strip() for part in reversed(told.split(","))):
        if not is_address(address):
            return peer
        peer = address
        if not trusts(address, trusted):
            return address
    return peer


def is_address(text: str) -> bool:
    """A bare IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def trusts(address: str, trusted: Sequence[Network]) -> bool:
    """Whether an address is one of our proxies'."""
    if not is_address(address):
        return False
    found = ip_address(address)
    return any(found in network for network in trusted if found.version == network.version)
