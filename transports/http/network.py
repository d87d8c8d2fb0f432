"""Networks of clients: what one party holds is counted by its network, since an IPv6 client changes its address as it likes."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

from transports.http.forwarded import address_in, trusts

Network = IPv4Network | IPv6Network
LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


def network_of(address: str) -> str:
    """The IPv4 address, or the IPv6 network of 64 bits, that a client's address is in; a text that is no address is itself."""
    found = address_in(address)
    if found is None:
        return address
    return str(ip_network((found, 64), strict=False)) if isinstance(found, IPv6Address) else str(found)


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of the networks."""
    found = address_in(address)
    return found is not None and trusts(found, networks)
