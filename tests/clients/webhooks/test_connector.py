"""The last look at an address, behind every other check: nothing connects around it."""

import socket

import pytest

from clients.http import AddressBlocked, Outbound, OutboundFailed, OutboundLimits
from clients.webhooks.connector import VettingResolver, VettingSockets, vetted_connector
from clients.webhooks.name_lookup import ThreadedLookups
from tests.clients.webhooks.networks import parse_networks
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.clients.webhooks.test_addresses import DENIED, PUBLIC


def unchecked() -> Outbound:
    """The seam of the sender without its URL check."""
    resolver = VettingResolver((), ThreadedLookups())
    return Outbound(OutboundLimits(total_seconds=5), connector=lambda limits, tls: vetted_connector(limits, tls, (), resolver))


async def failure(url: str) -> str:
    outbound = unchecked()
    try:
        with pytest.raises(OutboundFailed) as failed:
            await outbound.exchange("POST", url, headers={}, content=b"{}")
        return failed.value.kind
    finally:
        await outbound.aclose()


@pytest.mark.parametrize("address", [address for address in DENIED if "%" not in address])
async def test_a_denied_literal_is_blocked_even_where_the_url_was_not_checked(address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    async with receiver(status_answer("200 OK")) as there:
        assert await failure(f"http://{literal}:{there.port}/") == "blocked"
    assert there.connections == 0


@pytest.mark.parametrize("host", ["localhost", "localhost.", "0x7f000001", "127.1", "2130706433", "017700000001"])
async def test_names_and_spellings_of_loopback_do_not_reach_it_even_where_the_url_was_not_checked(host: str) -> None:
    async with receiver(status_answer("200 OK")) as there:
        assert await failure(f"http://{host}:{there.port}/") in ("blocked", "protocol", "dns")
    assert there.connections == 0


@pytest.mark.parametrize("address", PUBLIC)
def test_a_socket_is_made_for_a_public_address(address: str) -> None:
    family, target = (socket.AF_INET6, (address, 443, 0, 0)) if ":" in address else (socket.AF_INET, (address, 443))
    VettingSockets(())((family, socket.SOCK_STREAM, 6, "", target)).close()


def test_a_scope_beside_the_address_is_blocked_too() -> None:
    with pytest.raises(AddressBlocked):
        VettingSockets(())((socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2a00:1450:4009::1", 443, 0, 2)))


async def test_the_resolver_hands_on_only_numeric_addresses_of_a_fully_vetted_name() -> None:
    async def lookup(name: str) -> list[str]:
        return ["8.8.8.8", "2606:4700:4700::1111"]

    found = await VettingResolver(parse_networks([]), lookup).resolve("hooks.example.com", 443)
    assert [(answer["host"], answer["port"], answer["family"]) for answer in found] == [
        ("8.8.8.8", 443, socket.AF_INET),
        ("2606:4700:4700::1111", 443, socket.AF_INET6),
    ]


async def test_the_system_resolver_answers_with_plain_addresses() -> None:
    assert await ThreadedLookups()("127.0.0.1") == ["127.0.0.1"]
