"""Which webhook URLs may be registered."""

import pytest

from clients.webhooks.receiver_url import BadReceiverUrl, check_receiver_url
from tests.clients.webhooks.networks import parse_networks
from tests.clients.webhooks.test_addresses import DENIED

LOOPBACK = parse_networks(["127.0.0.0/8"])


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/esim",
        "https://hooks.example.com",
        "HTTPS://Hooks.Example.COM:8443/a?b=c",
        "https://8.8.8.8/hook",
        "https://[2606:4700:4700::1111]:443/hook",
        "https://bücher.example/hook",
        "https://xn--bcher-kva.example/hook",
        "https://hooks.example.com/%E2%82%AC?q=%23",
        "https://my_hooks.example.com/",
    ],
)
def test_an_https_url_of_a_public_host_is_accepted(url: str) -> None:
    check_receiver_url(url)


@pytest.mark.parametrize("address", DENIED)
def test_a_url_with_a_denied_literal_is_refused(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(f"https://{host}/hook")


@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "127.0.0.0x1",
        "1.2.3.4.5",
        "256.1.1.1",
        "hooks.example.0x",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[fe80::1%25eth0]",
        "[::1",
        "[v1.x]",
        "\uff11\uff12\uff17.0.0.1",
        "127\u30020\u30020\u30021",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "api.localhost",
        "printer.local",
        "metadata.google.internal",
        "db.home.arpa",
        "intranet",
        "hooks.example.com.",
        "hooks..example.com",
        ".example.com",
        "-a.example.com",
        "a" * 64 + ".example.com",
        "a." * 127 + "com",
        "xn--zz--.example.com",
        "hooks.exa mple.com",
        "hooks.example.com%2f",
        "%31%32%37.0.0.1",
    ],
)
def test_a_local_malformed_or_non_canonical_host_is_refused(host: str) -> None:
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(f"https://{host}/hook")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com",
        "/hook",
        "//hooks.example.com/hook",
        "https:hooks.example.com",
        "https:///hook",
        "http://hooks.example.com/hook",
        "http://8.8.8.8/hook",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "javascript://hooks.example.com/",
        "https://user@hooks.example.com/",
        "https://user:pass@hooks.example.com/",
        "https://hooks.example.com\\@127.0.0.1/",
        "https://hooks.example.com#@127.0.0.1/",
        "https://hooks.example.com/#fragment",
        "https://hooks.example.com/a b",
        "https://hooks.example.com/\r\nHost: other",
        "https://hooks.example.com/\x00",
        "https://hooks.example.com/\udc80",
        "https://hooks.example.com/é",
        "https://hooks.example.com:0/",
        "https://hooks.example.com:25/",
        "https://hooks.example.com:65536/",
        "https://hooks.example.com:/",
        "https://hooks.example.com:8x/",
        "https://hooks.example.com:\u0668\u0660/",
        " https://hooks.example.com/",
        "https://hooks.example.com/\n",
        "https://hooks.example.com/" + "a" * 2048,
    ],
)
def test_a_url_of_another_shape_is_refused(url: str) -> None:
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(url)


def test_a_url_of_exactly_the_longest_length_is_accepted() -> None:
    url = "https://hooks.example.com/"
    check_receiver_url(url + "a" * (2048 - len(url)))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/hook", "http://127.1.2.3/", "http://localhost:81/", "https://localhost"])
def test_an_exempt_host_may_use_plain_http_and_any_port(url: str) -> None:
    check_receiver_url(url, LOOPBACK)
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(url)


@pytest.mark.parametrize("url", ["http://127.1/", "http://10.0.0.1/", "http://[::1]/", "http://hooks.example.com/", "http://localhost./"])
def test_an_exemption_opens_nothing_else(url: str) -> None:
    with pytest.raises(BadReceiverUrl):
        check_receiver_url(url, LOOPBACK)


def test_localhost_stays_closed_when_another_network_is_exempt() -> None:
    with pytest.raises(BadReceiverUrl):
        check_receiver_url("http://localhost:9000/", parse_networks(["10.0.0.0/8"]))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hooks.example.com/?token=s3cret", "scheme 'http' is not accepted, deliveries go out over TLS. Use https://."),
        (
            "https://169.254.169.254/?token=s3cret",
            "host '169.254.169.254' is not a public address. Give a host that can be reached from the internet.",
        ),
        (
            "https://127.1/?token=s3cret",
            "host '127.1' ends in a number but is not a plain IPv4 address (four decimal numbers, no leading zeros).",
        ),
        (
            "https://u:s3cret@hooks.example.com/",
            "has a user name or password before the host. Deliveries are signed; leave them out.",
        ),
    ],
)
def test_the_refusal_teaches_without_repeating_secrets_of_the_url(url: str, reason: str) -> None:
    with pytest.raises(BadReceiverUrl) as refused:
        check_receiver_url(url)
    assert refused.value.reason == reason
