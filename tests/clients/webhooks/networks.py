"""Networks as tests write them."""

from collections.abc import Iterable
from ipaddress import ip_network

from clients.webhooks.addresses import IpNetwork


def parse_networks(networks: Iterable[str]) -> tuple[IpNetwork, ...]:
    """Read a list such as `127.0.0.0/8, ::1/128`; ValueError names the member that is not a network."""
    return tuple(ip_network(network.strip()) for network in networks)
