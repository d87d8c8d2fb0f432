"""Which addresses a stranger's URL may reach, and which receivers in its own network the operator has opened."""

import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network
NameLookup = Callable[[str], Awaitable[Sequence[str]]]
"""All addresses of a name, as text; OSError when there is none."""

# An explicit list: `is_global` of Python 3.11 is true for multicast, NAT64, 6to4, 192.0.0.8, fec0::1 and more.
DENIED_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, cloud metadata
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "198.51.100.0/24",
        "203.0.113.0/24",
        "192.31.196.0/24",  # AS112, AMT
        "192.175.48.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relay
        "198.18.0.0/15",  # benchmarking
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
GLOBAL_IPV6 = IPv6Network("2000::/3")
DENIED_IN_GLOBAL_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo, ORCHID
        "2001:db8::/32",  # documentation
        "3fff::/20",
        "2002::/16",  # 6to4 carries any IPv4 address
        "2620:4f:8000::/48",  # AS112
    )
)


def is_address_allowed(address: str | IpAddress, exempt: Sequence[IpNetwork] = ()) -> bool:
    """Whether a connection to this address may be made. Anything that is no canonical address is refused."""
    found = _parse_address(address)
    if found is None or _carries_another_address(found):
        return False
    if is_in_networks(found, exempt):
        return True
    if isinstance(found, IPv4Address):
        return not any(found in network for network in DENIED_IPV4)
    return found in GLOBAL_IPV6 and not any(found in network for network in DENIED_IN_GLOBAL_IPV6)


def _parse_address(address: str | IpAddress) -> IpAddress | None:
    try:
        return ip_address(address)
    except ValueError:
        return None


def _carries_another_address(address: IpAddress) -> bool:
    """A mapped IPv4 address or a scope id would dodge the lists, so no exemption reaches it either."""
    return isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None)


PRIVATE_RANGES: tuple[IpNetwork, ...] = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("100.64.0.0/10"),
    IPv6Network("fc00::/7"),
)
"""What may be named. Loopback, link-local and every other special range are in none of them."""
METADATA_ADDRESSES: frozenset[IpAddress] = frozenset(map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200")))
"""Metadata services of clouds that lie in these ranges; 169.254.169.254 does not."""
PRIVATE_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.ASCII)


def is_own_address(address: IpAddress) -> bool:
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

    networks: tuple[IpNetwork, ...] = ()
    hosts: frozenset[str] = frozenset()
    is_own: Callable[[IpAddress], bool] = is_own_address

    def __bool__(self) -> bool:
        return bool(self.networks or self.hosts)

    def names(self, host: str) -> bool:
        """Whether the operator named this host; `host` as canonical_host spells it."""
        return host in self.hosts

    def reaches(self, address: str | IpAddress, host: str | None) -> bool:
        """Whether a connection to `host` may be made to this private address.

        A named host may lie anywhere in the private ranges, every other host in a named network alone. None: the host is not known,
        because the address was vetted with it before.
        """
        found = _parse_address(address)
        if found is None or _carries_another_address(found):
            return False
        opened = PRIVATE_RANGES if self.hosts and (host is None or self.names(host)) else self.networks
        return (
            is_in_networks(found, opened)
            and is_in_networks(found, PRIVATE_RANGES)
            and found not in METADATA_ADDRESSES
            and not self.is_own(found)
        )


NO_PRIVATE_RECEIVERS = PrivateReceivers()


def is_in_networks(address: IpAddress, networks: Sequence[IpNetwork]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def parse_private_receivers(entries: Sequence[str]) -> PrivateReceivers:
    """Networks such as 10.20.0.0/16 and host names such as hooks.corp.internal; ValueError says which entry is neither, and the rule."""
    networks: list[IpNetwork] = []
    hosts: set[str] = set()
    for number, entry in enumerate(entries, 1):
        network = parse_private_network(entry, number)
        if network is not None:
            networks.append(network)
        elif is_private_host_name(entry):
            hosts.add(entry.lower().rstrip("."))
        else:
            raise ValueError(f"entry {number} is no network such as 10.20.0.0/16 and no host name such as hooks.corp.internal")
    return PrivateReceivers(tuple(networks), frozenset(hosts))


def parse_private_network(entry: str, number: int) -> IpNetwork | None:
    """A network inside the private ranges; None for what is written as no network."""
    try:
        network = ip_network(entry)
    except ValueError:
        return None
    inside = (network.subnet_of(known) for known in PRIVATE_RANGES if isinstance(network, IPv4Network) and isinstance(known, IPv4Network))
    inside_6 = (network.subnet_of(known) for known in PRIVATE_RANGES if isinstance(network, IPv6Network) and isinstance(known, IPv6Network))
    if not (any(inside) or any(inside_6)):
        raise ValueError(
            f"entry {number}, {network}, must lie in {', '.join(map(str, PRIVATE_RANGES))}; nothing else is opened to webhooks"
        )
    return network


def is_private_host_name(entry: str) -> bool:
    """A name that is not this machine's and no address in another spelling."""
    name = entry.lower().rstrip(".")
    last = name.rsplit(".", 1)[-1]
    return (
        PRIVATE_HOST.fullmatch(name) is not None
        and last not in ("localhost", "localdomain")
        and re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last) is None
    )
