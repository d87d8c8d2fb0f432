"""Whose request it is behind proxies: the last address in X-Forwarded-For that no trusted proxy has, and by which names they know it."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import cast

from transports.http.asgi import App, HttpScope, Receive, Scope, Send
from transports.http.connection import CORRELATION
from transports.http.correlation import correlation_of

Network = IPv4Network | IPv6Network
HEADER = b"x-forwarded-for"


class Forwarded:
    """Sets the client of each request, and what a proxy calls it. Without trusted proxies none of this stands in front: the headers count
    for nothing."""

    def __init__(self, app: App, trusted: Sequence[Network]) -> None:
        self._app, self._trusted = app, tuple(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            request = cast(HttpScope, scope)
            peer = address_in((request.get("client") or ("", 0))[0])
            if peer is not None and trusts(peer, self._trusted):
                # The server keeps this very state: what it and the door tell each other is in it.
                request.setdefault("state", {})[CORRELATION] = correlation_of(request["headers"])
                scope = {**scope, "client": (str(origin(peer, request, self._trusted)), 0)}
        await self._app(scope, receive, send)


def origin(peer: IPv4Address | IPv6Address, request: HttpScope, trusted: Sequence[Network]) -> IPv4Address | IPv6Address:
    """From the right: what a trusted proxy wrote is believed, and what it was told is not."""
    told = b",".join(value for name, value in request["headers"] if name == HEADER).decode("latin-1")
    for part in reversed(told.split(",")):
        address = address_in(part)
        if address is None:
            return peer
        peer = address
        if not trusts(address, trusted):
            return address
    return peer


def address_in(text: str) -> IPv4Address | IPv6Address | None:
    """An IP address, with or without the port that some proxies write behind it; an IPv4 address in IPv6 clothes is the IPv4 address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])  # a scope is of the machine that wrote it
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def trusts(address: IPv4Address | IPv6Address, trusted: Sequence[Network]) -> bool:
    """Whether an address is one of our proxies'."""
    return any(address in network for network in trusted if address.version == network.version)
