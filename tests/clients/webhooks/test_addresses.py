"""Appendix A of the security rules: which addresses a delivery may reach."""

from ipaddress import ip_address

import pytest

from clients.http import AddressBlocked
from clients.webhooks.addresses import is_address_allowed
from clients.webhooks.connector import require_allowed_addresses
from tests.clients.webhooks.networks import parse_networks

DENIED = (
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.1.2.3",
    "169.254.169.254",
    "192.0.0.8",
    "198.51.100.1",
    "203.0.113.9",
    "192.88.99.3",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "2002:7f00:1::",
)
PUBLIC = ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4009::1")


def test_the_list_of_denied_addresses_is_complete() -> None:
    assert len(set(DENIED)) == 36


@pytest.mark.parametrize("address", DENIED)
def test_an_address_that_must_not_be_reached_is_denied(address: str) -> None:
    assert not is_address_allowed(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_address_allowed(address)


@pytest.mark.parametrize(
    "address",
    ["192.0.2.7", "192.31.196.1", "192.175.48.1", "192.52.193.1", "192.168.255.255", "172.31.255.255", "2620:4f:8000::1"],
)
def test_classes_without_a_test_address_in_the_list_are_denied_too(address: str) -> None:
    assert not is_address_allowed(address)


@pytest.mark.parametrize("address", ["172.32.0.1", "100.128.0.1", "11.0.0.1", "192.0.1.1", "223.255.255.255", "2001:200::1"])
def test_the_neighbours_of_denied_networks_are_allowed(address: str) -> None:
    assert is_address_allowed(address)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "2130706433", "0x7f000001", "010.0.0.1", "8.8.8.8 ", "8.8.8.8/32"])
def test_what_is_no_canonical_address_is_denied(text: str) -> None:
    assert not is_address_allowed(text)


def test_an_exempt_network_opens_its_own_addresses_only() -> None:
    exempt = parse_networks(["127.0.0.0/8", " fd00::/8"])
    assert [is_address_allowed(address, exempt) for address in ("127.0.0.1", "fd00:ec2::254", "10.0.0.1", "::1")] == [
        True,
        True,
        False,
        False,
    ]


def test_mapped_and_scoped_addresses_stay_denied_even_when_their_network_is_exempt() -> None:
    exempt = parse_networks(["0.0.0.0/0", "::/0"])
    assert not is_address_allowed("::ffff:8.8.8.8", exempt)
    assert not is_address_allowed("fe80::1%eth0", exempt)
    assert is_address_allowed(ip_address("fe80::1"), exempt)


@pytest.mark.parametrize("answers", [[], ["8.8.8.8", "169.254.169.254"], ["64:ff9b::a9fe:a9fe"], ["8.8.8.8", "junk"]])
def test_one_denied_answer_or_none_at_all_refuses_the_whole_name(answers: list[str]) -> None:
    with pytest.raises(AddressBlocked):
        require_allowed_addresses(answers)


def test_a_name_with_only_public_answers_passes() -> None:
    require_allowed_addresses(PUBLIC)
