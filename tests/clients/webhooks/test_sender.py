"""Delivery attempts against receivers on loopback, kind and hostile."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from clients.http import OutboundLimits
from clients.webhooks.sender import DeliveryAttempt, WebhookSender
from tests.clients.clock import ManualClock
from tests.clients.webhooks.authority import self_signed
from tests.clients.webhooks.networks import parse_networks
from tests.clients.webhooks.receiver import HookAnswer, receiver, silence, stall, status_answer
from tests.clients.webhooks.test_addresses import DENIED

HOOK_HOST = "hooks.example.com"
LOOPBACK = parse_networks(["127.0.0.0/8"])
QUICK = OutboundLimits(connections=10, keepalive_seconds=None, connect_seconds=0.3, total_seconds=0.3)
Lookup = Callable[[str], Awaitable[Sequence[str]]]


class Names:
    """A name server that answers one scripted list after the other, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def no_such_name(name: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def never(name: str) -> Sequence[str]:
    await anyio.sleep_forever()
    return []


@asynccontextmanager
async def sender(
    lookup: Lookup = no_such_name, *, limits: OutboundLimits | None = None, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[WebhookSender]:
    made = WebhookSender(ManualClock(), exempt=LOOPBACK, lookup=lookup, tls=tls, limits=limits or QUICK)
    try:
        yield made
    finally:
        await made.aclose()


async def deliver(answer: HookAnswer) -> DeliveryAttempt:
    async with receiver(answer) as there, sender(limits=OutboundLimits(keepalive_seconds=None)) as ours:
        return await ours.post(there.url(), b"{}", {"webhook-id": "evt_1"})


async def test_the_exact_bytes_and_headers_arrive_once() -> None:
    async with receiver(status_answer("204 No Content")) as there, sender() as ours:
        attempt = await ours.post(there.url(), '{"name":"é"}'.encode(), {"webhook-id": "evt_1", "content-type": "x/y"})
    head, _, body = there.requests[0].partition(b"\r\n\r\n")
    assert attempt == DeliveryAttempt("ok", 204, 0)
    assert body == '{"name":"é"}'.encode()
    assert head.startswith(b"POST /hook HTTP/1.1\r\n")
    lines = head.lower().split(b"\r\n")
    assert {b"webhook-id: evt_1", b"content-type: x/y", b"accept-encoding: identity"} < set(lines)
    assert there.connections == len(there.requests) == 1


@pytest.mark.parametrize("line", ["301 Moved", "304 Not Modified", "400 Bad", "404 No", "500 Oops", "502 Bad"])
async def test_any_status_but_2xx_is_a_failure_named_by_its_number(line: str) -> None:
    attempt = await deliver(status_answer(line))
    assert not attempt.ok
    assert attempt.outcome == f"status:{attempt.status}"
    assert not attempt.gone


async def test_410_says_that_the_endpoint_is_gone() -> None:
    assert await deliver(status_answer("410 Gone")) == DeliveryAttempt("status:410", 410, 0, None, gone=True)


async def test_retry_after_is_reported_and_capped_at_a_day() -> None:
    assert (await deliver(status_answer("503 Busy", "Retry-After: 120"))).retry_after == 120.0
    assert (await deliver(status_answer("429 Slow", "Retry-After: Fri, 01 Jan 2100 00:00:00 GMT"))).retry_after == 86400.0


async def test_a_redirect_is_not_followed() -> None:
    async with (
        sender() as ours,
        receiver(status_answer("200 OK")) as inside,
        receiver(status_answer("302 Found", f"Location: {inside.url()}")) as outside,
    ):
        attempt = await ours.post(outside.url(), b"{}", {})
    assert attempt.outcome == "status:302"
    assert (outside.connections, inside.connections) == (1, 0)


async def test_a_body_without_end_is_cut_and_the_status_counts() -> None:
    written = 0

    async def gigabyte(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n")
        while written < 1 << 30:
            writer.write(bytes(65536))
            await writer.drain()  # raises when the client hangs up
            written += 65536

    async with receiver(gigabyte) as there, sender(limits=OutboundLimits(keepalive_seconds=None)) as ours:
        attempt = await ours.post(there.url(), b"{}", {})
        await there.idle.wait()
    assert attempt == DeliveryAttempt("ok", 200, 0)
    assert written < 16 * 1024 * 1024  # what socket buffers hold, a small part of the gigabyte


@pytest.mark.long
async def test_a_compressed_body_is_never_expanded() -> None:
    bomb = gzip.compress(bytes(50 * 1024 * 1024))
    assert await deliver(status_answer("200 OK", "content-encoding: gzip", body=bomb)) == DeliveryAttempt("ok", 200, 0)


@pytest.mark.parametrize("answer", [silence, stall])
async def test_a_slow_receiver_times_out(answer: HookAnswer) -> None:
    async with receiver(answer) as there, sender() as ours:
        attempt = await ours.post(there.url(), b"{}", {})
        await there.idle.wait()  # and its connection is closed
    assert attempt == DeliveryAttempt("timeout", None, 0)


async def test_a_name_server_that_never_answers_times_out() -> None:
    async with sender(never) as ours:
        assert (await ours.post(f"https://{HOOK_HOST}/", b"{}", {})).outcome == "timeout"


async def test_an_unknown_name_a_closed_port_and_a_broken_answer_have_their_own_classes() -> None:
    async with receiver(status_answer("200 OK")) as there, sender() as ours:
        closed = there.url()
    async with sender() as ours:
        assert (await ours.post(f"https://{HOOK_HOST}/", b"{}", {})).outcome == "dns"
        assert (await ours.post(closed, b"{}", {})).outcome == "refused"


async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def nonsense(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    await writer.drain()


async def half(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()


async def long_header(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(hang_up, "network"), (nonsense, "protocol"), (half, "network"), (long_header, "protocol")],
)
async def test_a_broken_answer_is_a_failure_of_its_own_class(answer: HookAnswer, outcome: str) -> None:
    assert (await deliver(answer)).outcome == outcome


async def test_cookies_of_one_delivery_are_not_sent_with_the_next() -> None:
    async with receiver(status_answer("200 OK", "set-cookie: tenant=a; path=/")) as there, sender() as ours:
        for _ in range(2):
            assert (await ours.post(there.url(), b"{}", {})).ok
    assert there.connections == 2  # nor is the connection kept
    assert b"cookie" not in there.requests[1].lower()


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver(status_answer("200 OK")) as proxy, receiver(status_answer("200 OK")) as there, sender() as ours:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        assert (await ours.post(there.url(), b"{}", {})).ok
    assert (proxy.connections, there.connections) == (0, 1)


# From here on: names over TLS, as deliveries are made in production.


async def test_the_certificate_is_checked_against_the_name_not_the_address(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path, HOOK_HOST)
    names = Names(["127.0.0.1"])
    async with receiver(status_answer("200 OK"), server) as there, sender(names, tls=client) as ours:
        assert (await ours.post(there.url(HOOK_HOST, "https"), b"{}", {})).outcome == "ok"
        assert (await ours.post(there.url("other.example.com", "https"), b"{}", {})).outcome == "tls"
    assert len(there.requests) == 1


async def test_cookies_of_a_name_are_not_kept_either(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path, HOOK_HOST)
    answer = status_answer("200 OK", "set-cookie: tenant=a; path=/")
    async with receiver(answer, server) as there, sender(Names(["127.0.0.1"]), tls=client) as ours:
        for _ in range(2):
            assert (await ours.post(there.url(HOOK_HOST, "https"), b"{}", {})).ok
    assert b"cookie" not in there.requests[1].lower()


async def test_an_untrusted_certificate_is_class_tls(tmp_path: Path) -> None:
    server, _ = self_signed(tmp_path, HOOK_HOST)
    async with receiver(status_answer("200 OK"), server) as there, sender(Names(["127.0.0.1"])) as ours:
        assert (await ours.post(there.url(HOOK_HOST, "https"), b"{}", {})).outcome == "tls"
    assert there.requests == []


async def test_a_receiver_without_tls_on_an_https_url_is_class_tls() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 This is plain HTTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server, sender(Names(["127.0.0.1"])) as ours:
        port = server.sockets[0].getsockname()[1]
        assert (await ours.post(f"https://{HOOK_HOST}:{port}/", b"{}", {})).outcome == "tls"


async def test_a_name_that_turns_to_cloud_metadata_between_deliveries_is_blocked(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path, HOOK_HOST)
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with receiver(status_answer("200 OK"), server) as there, sender(names, tls=client) as ours:
        attempts = [await ours.post(there.url(HOOK_HOST, "https"), b"{}", {}) for _ in range(3)]
    assert [attempt.outcome for attempt in attempts] == ["ok", "blocked", "blocked"]
    assert names.asked == [HOOK_HOST] * 3  # one lookup each: no cached answer, no second look
    assert there.connections == 1


@pytest.mark.parametrize("denied", ["10.0.0.1", "::1", "64:ff9b::a9fe:a9fe", "::ffff:127.0.0.1", "fe80::1%lo"])
@pytest.mark.parametrize("first", [True, False])
async def test_one_denied_answer_among_good_ones_blocks_the_name(denied: str, *, first: bool) -> None:
    answers = [denied, "127.0.0.1"] if first else ["127.0.0.1", denied]
    async with receiver(status_answer("200 OK")) as there, sender(Names(answers)) as ours:
        assert (await ours.post(there.url(HOOK_HOST, "https"), b"{}", {})).outcome == "blocked"
    assert there.connections == 0


@pytest.mark.parametrize("address", DENIED)
async def test_no_connection_is_tried_to_a_denied_address(address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    async with receiver(status_answer("200 OK")) as there:
        strict = WebhookSender(ManualClock(), lookup=Names([address]), limits=QUICK)
        try:
            named = await strict.post(there.url(HOOK_HOST, "https"), b"{}", {})
            spelled = await strict.post(f"https://{literal}:{there.port}/", b"{}", {})
        finally:
            await strict.aclose()
    assert (named.outcome, spelled.outcome) == ("blocked", "blocked")
    assert there.connections == 0


@pytest.mark.parametrize("url", ["https://localhost.:{}/", "https://127.1:{}/", "https://2130706433:{}/", "https://0x7f000001:{}/"])
async def test_other_spellings_of_loopback_do_not_reach_it(url: str) -> None:
    async with receiver(status_answer("200 OK")) as there, sender(Names(["127.0.0.1"])) as ours:
        assert (await ours.post(url.format(there.port), b"{}", {})).outcome == "blocked"
    assert there.connections == 0


async def test_localhost_of_an_exempt_loopback_is_reached_without_dns() -> None:
    names = Names(["10.0.0.1"])
    async with receiver(status_answer("200 OK")) as there, sender(names) as ours:
        assert (await ours.post(there.url("localhost"), b"{}", {})).ok
    assert names.asked == []


async def test_many_deliveries_at_once_all_arrive() -> None:
    limits = OutboundLimits(keepalive_seconds=None)
    async with receiver(status_answer("200 OK")) as there, sender(limits=limits) as ours, anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(ours.post, there.url(), str(number).encode(), {})
    assert sorted(int(request.rpartition(b"\r\n")[2]) for request in there.requests) == list(range(50))
