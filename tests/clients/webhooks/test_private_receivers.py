"""Receivers in the operator's own network: only what is named, only for those that are named, and never what is dangerous anywhere."""

import socket
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address

import pytest

from clients.http import AddressBlocked
from clients.webhooks.addresses import PrivateReceivers, is_own_address, parse_private_receivers
from clients.webhooks.connector import VettingResolver, VettingSockets
from clients.webhooks.receiver_url import BadReceiverUrl, check_receiver_url
from clients.webhooks.sender import WebhookSender
from tests.clients.clock import ManualClock

NEVER = [
    "127.0.0.1",
    "0.0.0.0",
    "169.254.169.254",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:10.20.0.9",
    "100.100.100.200",
    "fd00:ec2::254",
    "fd20:ce::254",
    "224.0.0.1",
]


def opened(*entries: str, own: Sequence[str] = ()) -> PrivateReceivers:
    """What the setting opens, on a machine with these addresses."""
    found = parse_private_receivers(entries)
    return PrivateReceivers(found.networks, found.hosts, lambda address: str(address) in own)


def answering(*addresses: str) -> VettingResolver:
    """A resolver whose every name has these addresses, for an organisation that may reach what is opened."""

    async def lookup(name: str) -> Sequence[str]:
        del name
        return addresses

    return VettingResolver((), lookup, opened("10.20.0.0/16", "hooks.corp.internal", own=["10.20.0.1"]))


@pytest.fixture
async def blocked_sender() -> AsyncIterator[tuple[WebhookSender, list[str]]]:
    """A sender that opens all private ranges, over a name server whose every answer is private; the names that it was asked."""
    asked: list[str] = []

    async def lookup(name: str) -> Sequence[str]:
        asked.append(name)
        return ["169.254.169.254"]

    sender = WebhookSender(ManualClock(), lookup=lookup, private=opened("10.0.0.0/8", "hooks.corp.internal"))
    yield sender, asked
    await sender.aclose()


@pytest.mark.parametrize("address", NEVER)
async def test_no_name_leads_to_what_is_never_reached_however_much_is_opened(address: str) -> None:
    for name in ("hooks.corp.internal", "hooks.example.com"):
        with pytest.raises(AddressBlocked):
            await answering(address).resolve(name, 443)
        with pytest.raises(AddressBlocked):
            await answering("10.20.0.9", address).resolve(name, 443)  # one denied answer spoils the name
    everything = opened("10.0.0.0/8", "100.64.0.0/10", "fc00::/7", "hooks.corp.internal")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    place = (address.partition("%")[0], 443, 0, 4) if "%" in address else (address, 443)
    with pytest.raises(AddressBlocked):
        VettingSockets((), everything)((family, socket.SOCK_STREAM, 0, "", place))


async def test_a_name_reaches_the_named_network_and_a_named_host_all_private_ranges_but_not_this_machine() -> None:
    assert [each["host"] for each in await answering("10.20.0.9").resolve("hooks.example.com", 443)] == ["10.20.0.9"]
    assert [each["host"] for each in await answering("192.168.7.7").resolve("hooks.corp.internal", 443)] == ["192.168.7.7"]
    assert [each["host"] for each in await answering("8.8.8.8").resolve("hooks.example.com", 443)] == ["8.8.8.8"]
    for address, name in (("192.168.7.7", "hooks.example.com"), ("10.20.0.1", "hooks.corp.internal"), ("10.20.0.1", "hooks.example.com")):
        with pytest.raises(AddressBlocked):
            await answering(address).resolve(name, 443)


async def test_rebinding_opens_nothing_to_an_organisation_that_was_not_named() -> None:
    answers = iter((["8.8.8.8"], ["10.20.0.9"]))

    async def lookup(name: str) -> Sequence[str]:
        del name
        return next(answers)

    strict = VettingResolver((), lookup)
    await strict.resolve("hooks.example.com", 443)
    with pytest.raises(AddressBlocked):
        await strict.resolve("hooks.example.com", 443)
    with pytest.raises(AddressBlocked):
        VettingSockets(())((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("10.20.0.9", 443)))


async def test_a_post_of_another_organisation_reaches_nothing_private_through_the_same_sender(
    blocked_sender: tuple[WebhookSender, list[str]],
) -> None:
    sender, asked = blocked_sender
    for url in ("https://10.20.0.9/hook", "https://hooks.corp.internal/hook"):
        assert (await sender.post(url, b"{}", {})).outcome == "blocked"
    assert asked == []
    for private in (True, False):
        assert (await sender.post("https://hooks.example.com/hook", b"{}", {}, private=private)).outcome == "blocked"
    assert (await sender.post("https://hooks.corp.internal/hook", b"{}", {}, private=True)).outcome == "blocked"
    assert asked == ["hooks.example.com", "hooks.example.com", "hooks.corp.internal"]
    assert (await sender.post("https://127.0.0.1/hook", b"{}", {}, private=True)).outcome == "blocked"


@pytest.mark.parametrize(
    "url",
    [
        "https://10.20.0.9/h",
        "https://10.20.0.9:8443/h",
        "https://hooks.corp.internal/h",
        "https://HOOKS.corp.internal/h",
        "https://[fd12::7]/h",
    ],
)
def test_an_opened_receiver_is_accepted_over_tls_only_for_those_who_may(url: str) -> None:
    private = opened("10.20.0.0/16", "fd12::/64", "hooks.corp.internal")
    check_receiver_url(url, (), private)
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(url)
    with pytest.raises(BadReceiverUrl, match="https"):
        check_receiver_url(url.replace("https", "http"), (), private)


@pytest.mark.parametrize("url", ["https://10.21.0.9/h", "https://10.20.0.9:25/h", "https://other.corp.internal/h", "https://localhost/h"])
def test_what_is_not_opened_is_refused_to_those_who_may_too(url: str) -> None:
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(url, (), opened("10.20.0.0/16", "hooks.corp.internal"))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("127.0.0.0/8", "must lie in 10.0.0.0/8"),
        ("0.0.0.0/0", "must lie in"),
        ("169.254.0.0/16", "must lie in"),
        ("::1/128", "must lie in"),
        ("8.8.8.0/24", "must lie in"),
        ("localhost", "no host name"),
        ("127.1", "no host name"),
        ("0x7f000001", "no host name"),
        ("*.corp.internal", "no host name"),
        ("10.20.0.1/16", "no host name"),
    ],
)
def test_what_may_never_be_opened_is_refused_by_its_place_in_the_setting(entry: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"entry 2.*{why}"):
        parse_private_receivers(["10.9.0.0/16", entry])


def test_an_address_of_this_machine_is_known_as_such() -> None:
    assert is_own_address(ip_address("127.0.0.1"))
    assert not is_own_address(ip_address("198.51.100.7"))
