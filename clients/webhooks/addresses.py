"""Which addresses a stranger's URL may reach."""

from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from clients.failure import Blocked

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

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


def parse_networks(networks: Iterable[str]) -> tuple[Network, ...]:
    """Read a list such as `127.0.0.0/8, ::1/128`; ValueError names the member that is not a network."""
    return tuple(ip_network(network.strip()) for network in networks)


def allowed(address: str | Address, exempt: Sequence[Network] = ()) -> bool:
    """Whether a connection to this address may be made. Anything that is no canonical address is refused."""
    found = _parse(address)
    if found is None or _carries_another(found):
        return False
    if exempted(found, exempt):
        return True
    if isinstance(found, IPv4Address):
        return not any(found in network for network in DENIED_IPV4)
    return found in GLOBAL_IPV6 and not any(found in network for network in DENIED_IN_GLOBAL_IPV6)


def exempted(address: Address, exempt: Sequence[Network]) -> bool:
    """Whether the operator opened this address for local receivers."""
    return any(address.version == network.version and address in network for network in exempt)


def vet(addresses: Sequence[str], exempt: Sequence[Network] = ()) -> None:
    """Raise `Blocked` unless there is an answer and every member of it is allowed."""
    if not addresses:
        raise Blocked("The name has no address.")
    if not all(allowed(address, exempt) for address in addresses):
        raise Blocked("The name leads to an address that must not be reached.")


def _parse(address: str | Address) -> Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None


def _carries_another(address: Address) -> bool:
    """A mapped IPv4 address or a scope id would dodge the lists, so no exemption reaches it either."""
    return isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None)
