"""Which URLs may be registered as a webhook receiver: https to a public name, or to one address in its one canonical form."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

import idna

from clients.webhooks.addresses import IpAddress, IpNetwork, PrivateReceivers, is_address_allowed, is_in_networks

LOCALHOST = "localhost"
LOOPBACK_ADDRESSES: tuple[IpAddress, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
LOCAL_SUFFIXES = ("localhost", "localdomain", "local", "internal", "home.arpa")
_HOST_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_HOST_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class BadReceiverHost(Exception):
    """The host cannot be used. `reason` teaches and shows only the host."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_receiver_host(host: str, exempt: Sequence[IpNetwork]) -> bool:
    """Refuse literals in denied networks and local names; True when the host is one the operator exempted."""
    if host.startswith("["):
        return _check_literal(_ipv6_literal(host), host, exempt)
    name = _ascii_name(host)
    if _HOST_NUMBER.fullmatch(name.rsplit(".", 1)[-1]):
        return _check_literal(_ipv4_literal(name), host, exempt)
    if name == LOCALHOST and exempt_loopbacks(exempt):
        return True
    _check_host_name(name)
    return False


def is_private_host(host: str, private: PrivateReceivers) -> bool:
    """Whether the operator opened this host: by its name, or as an address in a network that was opened."""
    name = canonical_host(host)
    return private.names(name) or private.reaches(name, None if private.names(name) else name)


def canonical_host(host: str) -> str:
    """One spelling for each host that may be registered: lower case, international labels as xn--, an IPv6 address in its short form."""
    try:
        return str(_ipv6_literal(host)) if host.startswith("[") else _ascii_name(host)
    except BadReceiverHost:
        return host.lower()


def is_loopback_host(host: str) -> bool:
    if host.startswith("["):
        return canonical_host(host) == "::1"
    return host.lower() == LOCALHOST or (host.startswith("127.") and _HOST_NUMBER.fullmatch(host.rsplit(".", 1)[-1]) is not None)


def exempt_loopbacks(exempt: Sequence[IpNetwork]) -> list[str]:
    """The loopback addresses that the operator exempted."""
    return [str(address) for address in LOOPBACK_ADDRESSES if is_in_networks(address, exempt)]


def _check_literal(address: IpAddress, host: str, exempt: Sequence[IpNetwork]) -> bool:
    if not is_address_allowed(address, exempt):
        raise BadReceiverHost(f"host {host!r} is not a public address. Give a host that can be reached from the internet.")
    return is_in_networks(address, exempt)


def _ipv6_literal(host: str) -> IPv6Address:
    try:
        if not host.endswith("]") or "%" in host:
            raise ValueError(host)
        return IPv6Address(host[1:-1])
    except ValueError:
        raise BadReceiverHost(f"host {host!r} is not an IPv6 address in brackets, such as [2001:db8::1].") from None


def _ipv4_literal(name: str) -> IPv4Address:
    """Only four decimal numbers: resolvers read 127.1, 2130706433, 0x7f000001 and 017700000001 as 127.0.0.1."""
    try:
        return IPv4Address(name)
    except ValueError:
        raise BadReceiverHost(
            f"host {name!r} ends in a number but is not a plain IPv4 address (four decimal numbers, no leading zeros)."
        ) from None


def _ascii_name(host: str) -> str:
    """The name as it goes into DNS: lower case, international labels as xn--."""
    if host.isascii() and "xn--" not in host.lower():
        return host.lower()
    try:
        encoded = idna.encode(host.lower()).decode("ascii")
        idna.decode(encoded)
    except UnicodeError:
        raise BadReceiverHost(f"host {host!r} is not a valid international domain name (IDNA 2008).") from None
    return encoded


def _check_host_name(name: str) -> None:
    if name.endswith("."):
        raise BadReceiverHost(f"host {name!r} ends with a dot. Write the name without it.")
    labels = name.split(".")
    if len(name) > 253 or not all(_HOST_LABEL.fullmatch(label) for label in labels):
        raise BadReceiverHost(f"host {name!r} is not a domain name: labels of 1-63 letters, digits and hyphens, 253 in all.")
    if len(labels) == 1 or any(name == suffix or name.endswith(f".{suffix}") for suffix in LOCAL_SUFFIXES):
        raise BadReceiverHost(f"host {name!r} is a local name. Give a full public name such as hooks.example.com.")


RECEIVER_URL_LIMIT = 2048
WEB_PORTS = (80, 443)
BOUNDED_HOSTS_LIMIT = 4096
FIRST_FREE_PORT = 1024
_URL_SHAPE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.ASCII)
_URL_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_UNSAFE_CHARACTERS = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"^`{|}\ud800-\udfff]")


class BadReceiverUrl(ValueError):
    """The URL cannot receive deliveries. `reason` never repeats path or query: they may hold secrets."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"url: {reason}")
        self.reason = reason


def check_receiver_url(url: str, exempt: Sequence[IpNetwork] = (), private: PrivateReceivers | None = None) -> None:
    """Accept an absolute https URL of a public host; plain http only for a host the operator exempted.

    `private`: what else is accepted, in the operator's own network. Choice: over TLS as everywhere; SERVICE_CA_FILE names the
    operator's own authority.
    """
    _check_url_text(url)
    shape = _URL_SHAPE.fullmatch(url)
    if shape is None or not shape["authority"]:
        raise BadReceiverUrl("not an absolute URL. Give one such as https://hooks.example.com/esim.")
    if not shape["rest"].isascii():
        raise BadReceiverUrl("the path or query has characters outside ASCII. Percent-encode them.")
    if "#" in shape["rest"]:
        raise BadReceiverUrl("a fragment (#...) is never sent to a server. Leave it out.")
    host, port = _split_authority(shape["authority"])
    try:
        local = False if private is not None and is_private_host(host, private) else check_receiver_host(host, exempt)
    except BadReceiverHost as error:
        raise BadReceiverUrl(error.reason) from None
    _check_url_scheme(shape["scheme"].lower(), local=local)
    _check_url_port(port, local=local)


def _check_url_text(url: str) -> None:
    if len(url) > RECEIVER_URL_LIMIT:
        raise BadReceiverUrl(f"{len(url)} characters long, the limit is {RECEIVER_URL_LIMIT}.")
    if _UNSAFE_CHARACTERS.search(url):
        raise BadReceiverUrl("has a space, control character, backslash or another character that must be percent-encoded.")


def _split_authority(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        raise BadReceiverUrl("has a user name or password before the host. Deliveries are signed; leave them out.")
    parts = _URL_AUTHORITY.fullmatch(authority)
    if parts is None or not parts["host"] or "%" in authority:
        raise BadReceiverUrl(f"{authority!r} is not a host with an optional port, such as hooks.example.com:8443.")
    return parts["host"], parts["port"]


def _check_url_scheme(scheme: str, *, local: bool) -> None:
    if scheme == "https" or (scheme == "http" and local):
        return
    raise BadReceiverUrl(f"scheme {scheme!r} is not accepted, deliveries go out over TLS. Use https://.")


def _check_url_port(port: str | None, *, local: bool) -> None:
    if port is None:
        return
    number = int(port)
    # Choice: low ports other than the web's own belong to other protocols (mail, file sharing), so they are refused.
    low = number < FIRST_FREE_PORT and number not in WEB_PORTS and not local
    if low or not 0 < number <= 65535:
        raise BadReceiverUrl(f"port {number} is not accepted. Use 443, 80 or a port from {FIRST_FREE_PORT} to 65535.")


@lru_cache(maxsize=BOUNDED_HOSTS_LIMIT)
def rate_limited_host(url: str) -> str | None:
    """The host that a delivery is counted against, in canonical form; None for this machine, which only an operator can open."""
    shape = _URL_SHAPE.fullmatch(url)
    authority = None if shape is None else _URL_AUTHORITY.fullmatch(shape["authority"])
    if authority is None or not authority["host"]:
        return None
    return None if is_loopback_host(authority["host"]) else canonical_host(authority["host"])
