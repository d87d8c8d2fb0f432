"""Whose request it is behind proxies: the client's address and network, and the ids by which proxies know the request."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, cast

from registry.redaction import redact
from transports.http.asgi import STATE_CORRELATION, App, Headers, HttpScope, Receive, Scope, Send

ClientNetwork = IPv4Network | IPv6Network
LOOPBACK_NETWORKS: tuple[ClientNetwork, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@lru_cache(4096)
def network_of(address: str) -> str:
    """The IPv4 address, or the IPv6 network of 64 bits, that a client's address is in; a text that is no address is itself."""
    found = parse_address(address)
    if found is None:
        return address
    return str(ip_network((found, 64), strict=False)) if isinstance(found, IPv6Address) else str(found)


def is_within(address: str, networks: Sequence[ClientNetwork]) -> bool:
    found = parse_address(address)
    return found is not None and is_trusted(found, networks)


FORWARDED_FOR = b"x-forwarded-for"


class ForwardedClients:
    """Sets the client's address of each request, and the ids that a trusted proxy gave it. Without trusted proxies it is not installed, and
    these headers are ignored."""

    def __init__(self, app: App, trusted: Sequence[ClientNetwork]) -> None:
        self._app, self._trusted = app, tuple(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = cast(HttpScope, scope)
            peer = parse_address((request.get("client") or ("", 0))[0])
            if peer is not None and is_trusted(peer, self._trusted):
                # The server keeps this very state: what it and the door tell each other is in it.
                request.setdefault("state", {})[STATE_CORRELATION] = correlation_of(request["headers"])
                scope = {**scope, "client": (str(client_behind(peer, request, self._trusted)), 0)}
        await self._app(scope, receive, send)


def client_behind(peer: IPv4Address | IPv6Address, request: HttpScope, trusted: Sequence[ClientNetwork]) -> IPv4Address | IPv6Address:
    """The client's address by X-Forwarded-For, read from the right: an entry counts only where a trusted proxy wrote it."""
    told = b",".join(value for name, value in request["headers"] if name == FORWARDED_FOR).decode("latin-1")
    for part in reversed(told.split(",")):
        address = parse_address(part)
        if address is None:
            return peer
        peer = address
        if not is_trusted(address, trusted):
            return address
    return peer


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """An IP address, with or without the port that some proxies write behind it; an IPv4-mapped IPv6 address is the IPv4 address."""
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


def is_trusted(address: IPv4Address | IPv6Address, trusted: Sequence[ClientNetwork]) -> bool:
    return any(address in network for network in trusted if address.version == network.version)


OUTSIDE_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=;@-]{1,128}")
TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
TRACE_VERSION = "00"
LONGEST_CORRELATION = 512


class Correlation(NamedTuple):
    """What stands in a request's line of the log beside our own id; empty where nothing was told."""

    client_request_id: str = ""
    trace: str = ""


NO_CORRELATION = Correlation()


def correlation_of(headers: Headers) -> Correlation:
    """What the headers tell. A header that was sent twice, or does not follow its grammar, tells nothing; no request is refused for it.

    Choice: an id that looks like a secret is left out, since a proxy may hand on whatever its client sent.
    """
    request_id = single_header(headers, b"x-request-id")
    if not OUTSIDE_REQUEST_ID.fullmatch(request_id) or redact(request_id) != request_id:
        request_id = ""
    trace = TRACEPARENT.fullmatch(single_header(headers, b"traceparent"))
    known = trace is not None and (trace[3] is None or trace[1] != TRACE_VERSION)  # later versions may say more behind it
    return Correlation(request_id, trace[2] if trace is not None and known else "")


def single_header(headers: Headers, name: bytes) -> str:
    """A header that was sent once and is not too long; else nothing."""
    found = [value for each, value in headers if each == name]
    return found[0].strip(b" \t").decode("latin-1") if len(found) == 1 and len(found[0]) <= LONGEST_CORRELATION else ""
