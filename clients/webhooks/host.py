"""The host of a webhook URL: a public name, or one address written in its one canonical form."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from clients.webhooks.addresses import Address, Network, allowed, exempted
from clients.webhooks.private_receivers import PrivateReceivers

LOOPBACK_NAME = "localhost"
LOOPBACKS: tuple[Address, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
LOCAL_SUFFIXES = ("localhost", "localdomain", "local", "internal", "home.arpa")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class BadHost(Exception):
    """The host cannot be used. `reason` teaches and shows only the host."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_host(host: str, exempt: Sequence[Network]) -> bool:
    """Refuse literals in denied networks and local names; True when the host is one the operator exempted."""
    if host.startswith("["):
        return _check_address(_ipv6(host), host, exempt)
    name = _ascii(host)
    if _NUMBER.fullmatch(name.rsplit(".", 1)[-1]):
        return _check_address(_ipv4(name), host, exempt)
    if name == LOOPBACK_NAME and loopbacks(exempt):
        return True
    _check_name(name)
    return False


def is_private(host: str, private: PrivateReceivers) -> bool:
    """Whether the operator opened this host: by its name, or as an address in a network that was opened."""
    name = canonical_host(host)
    return private.names(name) or private.reaches(name, None if private.names(name) else name)


def canonical_host(host: str) -> str:
    """One spelling for each host that may be registered: lower case, international labels as xn--, an IPv6 address in its short form."""
    try:
        return str(_ipv6(host)) if host.startswith("[") else _ascii(host)
    except BadHost:
        return host.lower()


def is_loopback(host: str) -> bool:
    """Whether it is this machine."""
    if host.startswith("["):
        return canonical_host(host) == "::1"
    return host.lower() == LOOPBACK_NAME or (host.startswith("127.") and _NUMBER.fullmatch(host.rsplit(".", 1)[-1]) is not None)


def loopbacks(exempt: Sequence[Network]) -> list[str]:
    """The loopback addresses that the operator exempted."""
    return [str(address) for address in LOOPBACKS if exempted(address, exempt)]


def _check_address(address: Address, host: str, exempt: Sequence[Network]) -> bool:
    if not allowed(address, exempt):
        raise BadHost(f"host {host!r} is not a public address. Give a host that can be reached from the internet.")
    return exempted(address, exempt)


def _ipv6(host: str) -> IPv6Address:
    try:
        if not host.endswith("]") or "%" in host:
            raise ValueError(host)
        return IPv6Address(host[1:-1])
    except ValueError:
        raise BadHost(f"host {host!r} is not an IPv6 address in brackets, such as [2001:db8::1].") from None


def _ipv4(name: str) -> IPv4Address:
    """Only four decimal numbers: resolvers read 127.1, 2130706433, 0x7f000001 and 017700000001 as 127.0.0.1."""
    try:
        return IPv4Address(name)
    except ValueError:
        raise BadHost(f"host {name!r} ends in a number but is not a plain IPv4 address (four decimal numbers, no leading zeros).") from None


def _ascii(host: str) -> str:
    """The name as it goes into DNS: lower case, international labels as xn--."""
    if host.isascii() and "xn--" not in host.lower():
        return host.lower()
    import idna  # its tables are only needed for international names

    try:
        encoded = idna.encode(host.lower()).decode("ascii")
        idna.decode(encoded)
    except UnicodeError:
        raise BadHost(f"host {host!r} is not a valid international domain name (IDNA 2008).") from None
    return encoded


def _check_name(name: str) -> None:
    if name.endswith("."):
        raise BadHost(f"host {name!r} ends with a dot. Write the name without it.")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadHost(f"host {name!r} is not a domain name: labels of 1-63 letters, digits and hyphens, 253 in all.")
    if len(labels) == 1 or any(name == suffix or name.endswith(f".{suffix}") for suffix in LOCAL_SUFFIXES):
        raise BadHost(f"host {name!r} is a local name. Give a full public name such as hooks.example.com.")
