"""X-Request-Id and traceparent: taken from trusted proxies alone, and only as their grammar has them; our own id is another one."""

from ipaddress import ip_address, ip_network

import pytest

from tests.http.asking import ask, bearer_fields
from tests.world import World
from transports.http.door import HttpDoor
from transports.http.forwarded import Correlation, ForwardedClients, correlation_of, parse_address
from transports.http.request import HttpRules
from transports.logs import RequestLine

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TOLD, UNTOLD = ("198.51.100.7", "edge-7f3a", TRACE), ("203.0.113.9", "", "")
HEADERS = [(b"x-request-id", b"edge-7f3a"), (b"traceparent", PARENT), (b"x-forwarded-for", b"198.51.100.7")]


@pytest.mark.parametrize(("trusted", "told"), [("203.0.113.0/24", TOLD), ("10.0.0.0/8", UNTOLD), ("", UNTOLD)])
async def test_names_of_a_request_are_taken_from_a_trusted_proxy_alone(world: World, trusted: str, told: tuple[str, str, str]) -> None:
    lines = list[RequestLine]()
    door = HttpDoor(world.pipeline, rules=HttpRules(hosts=frozenset({"*"})), log=lines.append, fault=lambda *_: None)
    caller = await world.caller()
    front = ForwardedClients(door, [ip_network(trusted)]) if trusted else door
    answer = await ask(front, "GET", b"/v1/notes", [bearer_fields(caller.secret), *HEADERS])
    [line] = lines
    assert (line.client, line.client_request_id, line.trace) == told
    assert line.key == caller.key_id and answer.headers["request-id"] == line.request_id != "edge-7f3a"


def test_the_scope_of_an_address_is_text_of_whoever_wrote_it_and_left_out() -> None:
    assert parse_address("fe80::1%<script>") == parse_address("[fe80::1%ak_0]:443") == ip_address("fe80::1")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"edge-7f3a", "edge-7f3a"),
        (b"1-67891233-abcdef012345678912345678", "1-67891233-abcdef012345678912345678"),
        (b"Root=1-67891233;Self=1", "Root=1-67891233;Self=1"),
        (b"x" * 128, "x" * 128),
        (b"x" * 129, ""),
        (b"", ""),
        (b"two words", ""),
        (b'quote"', ""),
        (b"\xc3\xa9", ""),
        (b"ak_0123456789012345678901234567890123456789abcdef", ""),
        (b"somebody@example.com", ""),
        (b"8988303000000912345", ""),
    ],
)
def test_an_id_of_a_request_is_short_visible_and_no_secret(value: bytes, found: str) -> None:
    assert correlation_of([(b"x-request-id", value)]) == Correlation(found, "")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (PARENT, TRACE),
        (b" " + PARENT, TRACE),
        (b"cc" + PARENT[2:], TRACE),
        (b"cc" + PARENT[2:] + b"-what-the-future-will-be", TRACE),
        (PARENT + b"-more", ""),
        (b"cc" + PARENT[2:] + b".more", ""),
        (b"ff" + PARENT[2:], ""),
        (PARENT.upper(), ""),
        (PARENT[:-1], ""),
        (PARENT.replace(TRACE.encode(), b"0" * 32), ""),
        (PARENT.replace(b"00f067aa0ba902b7", b"0" * 16), ""),
        (b"cc" + PARENT[2:] + b"-" + b"x" * 600, ""),
        (b"", ""),
    ],
)
def test_a_trace_is_as_trace_context_has_it(value: bytes, found: str) -> None:
    assert correlation_of([(b"traceparent", value)]) == Correlation("", found)


def test_what_was_said_twice_was_not_said() -> None:
    assert correlation_of([(b"x-request-id", b"a"), (b"x-request-id", b"a"), (b"traceparent", PARENT)]) == Correlation("", TRACE)
