"""Receivers in the operator's own network: what the operator named, for organisations that the operator named, and nothing else."""

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from clients.webhooks.addresses import Address, Network

RANGES: tuple[Network, ...] = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("100.64.0.0/10"),
    IPv6Network("fc00::/7"),
)
"""What may be named. Loopback, link-local and every other special range are in none of them."""
METADATA: frozenset[Address] = frozenset(map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200")))
"""Metadata services of clouds that lie in these ranges; 169.254.169.254 does not."""
HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.ASCII)


def is_own_address(address: Address) -> bool:
    """Whether this machine has the address: only then may a socket be bound to it. Nothing is sent."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class PrivateReceivers:
    """The networks and the host names that the operator opened; `is_own` says whether an address is this machine's."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    is_own: Callable[[Address], bool] = is_own_address

    def __bool__(self) -> bool:
        return bool(self.networks or self.hosts)

    def names(self, host: str) -> bool:
        """Whether the operator named this host; `host` as canonical_host spells it."""
        return host in self.hosts

    def reaches(self, address: str | Address, host: str | None) -> bool:
        """Whether a connection to `host` may be made to this private address.

        A named host may lie anywhere in the private ranges, every other host in a named network alone. None: the host is not known,
        because the address was vetted with it before.
        """
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and (found.ipv4_mapped is not None or found.scope_id is not None):
            return False
        opened = RANGES if self.hosts and (host is None or self.names(host)) else self.networks
        return lies_in(found, opened) and lies_in(found, RANGES) and found not in METADATA and not self.is_own(found)


NO_PRIVATE_RECEIVERS = PrivateReceivers()


def lies_in(address: Address, networks: Sequence[Network]) -> bool:
    """Whether one of the networks holds the address."""
    return any(address.version == network.version and address in network for network in networks)


def parse_private_receivers(entries: Sequence[str]) -> PrivateReceivers:
    """Networks such as 10.20.0.0/16 and host names such as hooks.corp.internal; ValueError says which entry is neither, and the rule."""
    networks: list[Network] = []
    hosts: set[str] = set()
    for number, entry in enumerate(entries, 1):
        network = network_of(entry, number)
        if network is not None:
            networks.append(network)
        elif is_host(entry):
            hosts.add(entry.lower().rstrip("."))
        else:
            raise ValueError(f"entry {number} is no network such as 10.20.0.0/16 and no host name such as hooks.corp.internal")
    return PrivateReceivers(tuple(networks), frozenset(hosts))


def network_of(entry: str, number: int) -> Network | None:
    """A network inside the private ranges; None for what is written as no network."""
    try:
        network = ip_network(entry)
    except ValueError:
        return None
    inside = (network.subnet_of(known) for known in RANGES if isinstance(network, IPv4Network) and isinstance(known, IPv4Network))
    inside_6 = (network.subnet_of(known) for known in RANGES if isinstance(network, IPv6Network) and isinstance(known, IPv6Network))
    if not (any(inside) or any(inside_6)):
        raise ValueError(f"entry {number}, {network}, must lie in {', '.join(map(str, RANGES))}; nothing else is opened to webhooks")
    return network


def is_host(entry: str) -> bool:
    """A name that is not this machine's and no address in another spelling."""
    name = entry.lower().rstrip(".")
    last = name.rsplit(".", 1)[-1]
    return (
        HOST.fullmatch(name) is not None and last not in ("localhost", "localdomain") and re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last) is None
    )
