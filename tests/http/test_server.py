"""The server itself on loopback: deadlines, caps, and requests that no application sees. Deadlines are shortened, not waited for."""

import asyncio
import gc
import signal
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import orjson
import pytest
import uvicorn

from registry.caller import Tier
from tests.http.asking import ask
from tests.http.conftest import HTTP_OPERATIONS
from tests.world import World, open_world
from transports.http.asgi import App, Receive, Scope, Send
from transports.http.connections import PROBE_CONNECTIONS, Connections, Deadlines
from transports.http.door import InnerApplication
from transports.http.forwarded import LOOPBACK_NETWORKS, ClientNetwork
from transports.http.server import MissingPackage, bind_socket, make_http_server, require_packages, run_on_uvloop, socket_port
from transports.logs import Logs

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SHORT = Deadlines(headers=0.3, body=0.6, keep_alive=1, stall=0.3)
GET = b"GET /health HTTP/1.1\r\nHost: reseller.test\r\n\r\n"


@dataclass
class RunningHere:
    port: int
    server: uvicorn.Server
    connections: Connections
    logged: list[bytes] = field(default_factory=list[bytes])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, sent: bytes) -> bytes:
        """Everything the server says until it closes."""
        reader, writer = await self.connect()
        try:
            writer.write(sent)
            return await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()

    async def get(self) -> bytes:
        return await self.exchange(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))


@asynccontextmanager
async def serving(
    app: App,
    world: World,
    deadlines: Deadlines = SHORT,
    connections: Connections | None = None,
    always: Sequence[tuple[str, str]] = (),
) -> AsyncGenerator[RunningHere]:
    """The server on a free port of loopback, in this loop."""
    connections = Connections(deadlines.concurrency, deadlines.of_network) if connections is None else connections
    bound, listening, logged = bind_socket("127.0.0.1", 0), asyncio.Event(), list[bytes]()
    logs = Logs(logged.append, world.clock)
    server = make_http_server(
        app, deadlines=deadlines, ids=world.ids, logs=logs, ready=listening.set, connections=connections, always=always
    )
    threshold = gc.get_threshold()
    task = asyncio.ensure_future(server.serve(sockets=[bound]))
    try:
        await asyncio.wait_for(listening.wait(), 60)
        yield RunningHere(socket_port(bound), server, connections, logged)
    finally:
        server.should_exit = True
        await task
        logs.flush()
        gc.unfreeze()
        gc.set_threshold(*threshold)


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    async with open_world(tmp_path_factory.mktemp("server"), HTTP_OPERATIONS) as world:
        yield world


@pytest.fixture(scope="module")
async def server(world: World) -> AsyncGenerator[RunningHere]:
    async with serving(world.door, world) as running:
        yield running


def body_of(answer: bytes) -> dict[str, object]:
    return orjson.loads(answer.partition(b"\r\n\r\n")[2])


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


async def test_an_answer_carries_our_headers_and_not_the_name_of_the_server(server: RunningHere) -> None:
    answer = await server.get()
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert status_of(answer) == 200
    assert b"request-id: req_" in head
    assert b"\r\ndate: " in head  # RFC 9110 6.6.1
    assert b"server:" not in head


async def trickle(server: RunningHere, start: bytes, drip: Callable[[int], bytes], stop: float) -> tuple[float, bytes]:
    """Send a start, then a little now and then until the server closes; the time it took and what the server said."""
    reader, writer = await server.connect()
    begun, heard, count = time.monotonic(), b"", 0
    try:
        writer.write(start)
        while time.monotonic() - begun < stop:
            try:
                piece = await asyncio.wait_for(reader.read(65536), 0.05)
            except TimeoutError:
                writer.write(drip(count))
                count += 1
                continue
            except ConnectionError:
                break
            if not piece:
                break
            heard += piece
        return time.monotonic() - begun, heard
    finally:
        writer.close()


BODY_START = b"POST /v1/notes HTTP/1.1\r\nHost: reseller.test\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n%s\r\n{"


@pytest.mark.long
async def test_two_hundred_slow_clients_are_all_closed_and_others_are_answered_meanwhile(world: World, server: RunningHere) -> None:
    caller = await world.caller(Tier.ENTERPRISE)
    body = BODY_START % f"Authorization: Bearer {caller.secret}\r\n".encode()
    slow = [trickle(server, b"GET /health HTTP/1.1\r\nX-Slow: ", lambda count: b"x", 60) for _ in range(100)]
    slow += [trickle(server, body, lambda count: b" ", 60) for _ in range(90)]
    slow += [trickle(server, b"", lambda count: b"", 60) for _ in range(10)]
    gathered = asyncio.gather(*slow)
    answered = 0
    while not gathered.done():
        assert status_of(await server.get()) == 200
        answered += 1
    results = await gathered
    assert answered > 1
    assert max(seconds for seconds, _ in results) < 55
    assert min(seconds for seconds, _ in results[100:190]) >= SHORT.body * 0.9
    assert {status_of(heard) for _, heard in results[:190]} == {408}
    assert {heard for _, heard in results[190:]} == {b""}
    assert {body_of(heard)["code"] for _, heard in results[:190]} == {"request_timeout"}
    assert world.faults == []


@pytest.mark.long
async def test_a_body_that_is_late_is_logged_under_the_id_that_its_sender_got(world: World, server: RunningHere) -> None:
    caller = await world.caller()
    _, heard = await trickle(server, BODY_START % f"Authorization: Bearer {caller.secret}\r\n".encode(), lambda count: b" ", 10)
    line = world.lines[-1]
    assert (status_of(heard), line.status, line.code, line.operation) == (408, 408, "request_timeout", "create_note")
    assert body_of(heard)["request_id"] == line.request_id


@pytest.mark.long
async def test_an_answered_request_whose_body_goes_on_for_ever_is_closed(server: RunningHere) -> None:
    seconds, heard = await trickle(server, BODY_START % b"", lambda count: b" ", 60)
    assert status_of(heard) == 401
    assert heard.count(b"HTTP/1.1") == 1
    assert seconds < 10


@pytest.mark.long
async def test_an_idle_connection_is_closed(server: RunningHere) -> None:
    assert (await server.exchange(GET)).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("drip", [b"\r\n", b"\n"])
async def test_line_ends_between_requests_do_not_keep_a_connection(server: RunningHere, drip: bytes) -> None:
    seconds, heard = await trickle(server, GET, lambda count: drip, 15)
    assert heard.startswith(b"HTTP/1.1 200")
    assert seconds < 10


async def test_requests_on_one_connection_are_answered_in_order(server: RunningHere) -> None:
    answer = await server.exchange(GET + GET.replace(b"/health", b"/nope") + GET + b"GET /hea")
    assert [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]] == [200, 404, 200, 408]


async def test_a_trailer_is_no_header(world: World, server: RunningHere) -> None:
    caller = await world.caller()
    chunked = (
        b"POST /v1/notes HTTP/1.1\r\nHost: reseller.test\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        b"Connection: close\r\n\r\nc\r\n" + b'{"name":"x"}' + b"\r\n0\r\nAuthorization: Bearer " + caller.secret.encode() + b"\r\n\r\n"
    )
    assert status_of(await server.exchange(chunked)) == 401


async def test_whitespace_around_a_header_value_is_not_part_of_it(world: World, server: RunningHere) -> None:
    caller = await world.caller()
    sent = f"GET /v1/notes HTTP/1.1\r\nHost: \t reseller.test \t\r\nAuthorization: Bearer {caller.secret}  \r\nConnection: close\r\n\r\n"
    assert status_of(await server.exchange(sent.encode())) == 200


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        b"Content-Length: 3\r\nContent-Length: 3\r\n",
        b"Content-Length: +3\r\n",
        b"X-Note: a\r\n b\r\n",
        b"X-Note: a\x01b\r\n",
        b"X-Note: a\x00b\r\n",
        b"X Note: a\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Host: other.test\r\n",
    ],
)
async def test_an_ambiguous_request_ends_its_connection_with_our_error_body(server: RunningHere, head: bytes) -> None:
    answer = await server.exchange(b"POST /v1/notes HTTP/1.1\r\nHost: reseller.test\r\n" + head + b"\r\nabc" + GET)
    body = body_of(answer)
    assert (status_of(answer), body["code"], set(body) >= {"error", "request_id"}) == (400, "invalid_request", True)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"nonsense\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_a_bad_request(server: RunningHere, sent: bytes) -> None:
    answer = await server.exchange(sent)
    assert (status_of(answer), body_of(answer)["code"]) == (400, "invalid_request")


@pytest.mark.long
async def test_a_request_for_an_upgrade_is_answered_as_if_it_had_not_asked(server: RunningHere) -> None:
    upgrade = GET.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert status_of(await server.exchange(upgrade)) == 200


async def test_an_endless_head_is_cut_off_before_its_deadline(world: World) -> None:
    async with serving(world.door, world, Deadlines()) as server:
        answer = await server.exchange(b"GET /health HTTP/1.1\r\nX-Note: " + b"x" * 200_000)
        assert (status_of(answer), body_of(answer)["code"]) == (431, "headers_too_large")


@pytest.mark.parametrize(
    ("size", "end"),
    [
        *(
            (size, b" HTTP/1.1\r\nHost: reseller.test\r\nConnection: close\r\n\r\n")
            for size in (8_192, 9_000, 17_000, 24_000, 70_000, 200_000)
        ),
        *((size, b"") for size in (17_000, 24_000, 70_000, 200_000)),  # a shorter one is judged when it is complete
    ],
)
async def test_an_address_that_is_too_long_is_told_so_however_long_it_is(world: World, server: RunningHere, size: int, end: bytes) -> None:
    answer = await server.exchange(b"GET /" + b"x" * size + end)
    assert (status_of(answer), body_of(answer)["code"]) == (414, "uri_too_long")
    assert set(body_of(answer)) == {"error", "code", "hint", "request_id"}


async def test_a_long_url_and_large_headers_are_the_doors_to_refuse(server: RunningHere) -> None:
    close = b"Host: reseller.test\r\nConnection: close\r\n"
    assert status_of(await server.exchange(b"GET /" + b"x" * 8192 + b" HTTP/1.1\r\n" + close + b"\r\n")) == 414
    assert status_of(await server.exchange(b"GET /health HTTP/1.1\r\n" + close + b"X: " + b"x" * 16_384 + b"\r\n\r\n")) == 431


async def test_a_client_that_expects_to_be_told_is_told_after_authentication(world: World, server: RunningHere) -> None:
    head = BODY_START.partition(b"Content-Length")[0] + b"Content-Length: 12\r\nExpect: 100-continue\r\n"
    assert b"100 Continue" not in await server.exchange(head + b"Connection: close\r\n\r\n")
    caller = await world.caller()
    reader, writer = await server.connect()
    writer.write(head + f"Authorization: Bearer {caller.secret}\r\n\r\n".encode())
    assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b'{"name":"x"}')
    assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 201")
    writer.close()


HEAD = b"GET /health HTTP/1.1\r\nHost: reseller.test\r\n"
POST = b"POST /v1/notes HTTP/1.1\r\nHost: reseller.test\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
NOTES = GET.replace(b"/health", b"/v1/notes")


async def busy(server: RunningHere, count: int) -> list[Pair]:
    """Connections whose requests have begun and do not come to their end."""
    held = [await server.connect() for _ in range(count)]
    for reader, writer in held:
        writer.write(POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 401")  # and its body is still awaited
    return held


async def close(held: list[Pair]) -> None:
    for _, writer in held:
        writer.close()


async def test_one_busy_connection_too_many_is_told_so_and_the_balancers_probe_is_answered(world: World) -> None:
    async with serving(world.door, world, Deadlines(concurrency=2)) as server:
        held = await busy(server, 2)
        answer = await server.exchange(NOTES)
        assert (status_of(answer), body_of(answer)["code"]) == (503, "overloaded")
        assert b"retry-after: 1" in answer.lower()
        assert world.lines[-1].code == "overloaded"
        assert status_of(await server.get()) == 200
        await close(held)


@pytest.mark.cases
@pytest.mark.parametrize("sent", [b"", b"GET /hea", GET])
async def test_idle_connections_make_way_however_many_they_are(world: World, sent: bytes) -> None:
    async with serving(world.door, world, Deadlines(concurrency=5)) as server:
        held = [await server.connect() for _ in range(20)]
        for reader, writer in held[-4:]:
            writer.write(sent)
            if sent == GET:
                assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 200")
        caller = await world.caller()
        asked = NOTES.replace(b"\r\n\r\n", f"\r\nConnection: close\r\nAuthorization: Bearer {caller.secret}\r\n\r\n".encode())
        assert status_of(await server.exchange(asked)) == 200
        assert server.connections.ended["idle"] == 16
        assert [await asyncio.wait_for(reader.read(), 60) for reader, _ in held[:16]] == [b""] * 16, "the oldest"
        await close(held)


async def test_a_network_has_so_many_connections_and_no_more(world: World) -> None:
    async with serving(world.door, world, Deadlines(concurrency=10), Connections(10, 3, uncapped=())) as server:
        held = await busy(server, 3)
        answer = await server.exchange(NOTES)
        assert (status_of(answer), body_of(answer)["code"]) == (503, "overloaded")
        assert str(body_of(answer)["error"]).startswith("3 connections of your network are open")
        assert (server.connections.ended["network"], len(server.connections)) == (1, 3)
        held[0][1].close()
        assert await asyncio.wait_for(held[0][0].read(), 60)
        while len(server.connections) > 2:
            await asyncio.sleep(0)
        assert status_of(await server.get()) == 200
        await close(held)


async def test_a_network_at_its_cap_has_a_few_connections_for_probes_alone_whatever_host_they_name(world: World) -> None:
    async with serving(world.door, world, Deadlines(concurrency=20), Connections(20, 3, uncapped=())) as server:
        held = await busy(server, 3)
        probe = b"GET /health HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n"
        assert status_of(await server.exchange(probe)) == 200
        again = await server.exchange(GET + NOTES)  # a connection that was let in for a probe asks for nothing else
        assert (status_of(again), again.count(b"HTTP/1.1 503")) == (200, 1)
        held += await busy_probing(server, PROBE_CONNECTIONS)
        answer = await server.exchange(b"")
        assert (status_of(answer), body_of(answer)["code"], len(server.connections)) == (503, "overloaded", 3 + PROBE_CONNECTIONS)
        await close(held)


async def busy_probing(server: RunningHere, count: int) -> list[Pair]:
    """Connections of a network at its cap that hold what was left to them for a probe."""
    held: list[Pair] = []
    for _ in range(count):  # one by one: an idle one would make way for the next
        reader, writer = await server.connect()
        writer.write(POST.replace(b"/v1/notes", b"/health"))
        assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 405")  # and its body is still awaited
        held.append((reader, writer))
    return held


async def test_connections_of_trusted_proxies_are_neither_capped_nor_closed(world: World) -> None:
    loopback = (ip_network("127.0.0.0/8"),)
    async with serving(world.door, world, Deadlines(concurrency=4), Connections(4, 2, trusted=loopback, uncapped=())) as server:
        held = [await server.connect() for _ in range(5)]
        for reader, writer in held:
            writer.write(GET)
            assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 200")
        assert (len(server.connections), server.connections.ended.total()) == (5, 0)
        await close(held)


@pytest.mark.long
@pytest.mark.parametrize(("deadlines", "trusted"), [(Deadlines(keep_alive_of_proxies=1), LOOPBACK_NETWORKS), (Deadlines(keep_alive=1), ())])
async def test_a_trusted_proxys_idle_connection_is_kept_for_a_time_of_its_own(
    world: World, deadlines: Deadlines, trusted: tuple[ClientNetwork, ...]
) -> None:
    async with serving(world.door, world, deadlines, Connections(4, 4, trusted=trusted)) as server:
        reader, writer = await server.connect()
        writer.write(GET)
        assert (await asyncio.wait_for(reader.read(), 12)).startswith(b"HTTP/1.1 200")  # all, which is until it is closed
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /health HTTP/1.0\r\n\r\n",
        b"HEAD /health HTTP/1.0\r\nUser-Agent: probe\r\n\r\n",
        b"GET /health HTTP/1.0\r\nHost: 10.0.0.7:8000\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n",
        b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n",
    ],
)
async def test_a_load_balancers_probe_needs_no_host_of_ours(server: RunningHere, sent: bytes) -> None:
    assert status_of(await server.exchange(sent)) == 200
    assert status_of(await server.exchange(sent.replace(b"/health", b"/v1/notes"))) in (400, 421)


ALWAYS = (("strict-transport-security", "max-age=31536000"),)


@pytest.mark.long
@pytest.mark.parametrize("sent", [GET, NOTES, GET[:20], b"nonsense\r\n\r\n", b"GET /" + b"x" * 20_000, POST])
async def test_what_every_answer_says_is_in_the_servers_own_refusals_too(world: World, sent: bytes) -> None:
    async with serving(world.door, world, always=ALWAYS) as server:
        answer = await server.exchange(sent)
        assert answer.count(b"HTTP/1.1 ") == answer.count(b"strict-transport-security: max-age=31536000\r\n") == 1


async def large(world: World, more: str = "") -> bytes:
    """A request of somebody for a large answer."""
    caller = await world.caller()
    return f"GET /v1/large HTTP/1.1\r\nHost: reseller.test\r\n{more}Authorization: Bearer {caller.secret}\r\n\r\n".encode()


async def test_a_client_that_reads_too_slowly_is_let_go_although_it_reads(world: World) -> None:
    async with serving(world.door, world, Deadlines(stall=0.2, rate=100_000_000, credit=0)) as server:
        reader, writer = await server.connect()
        writer.write(await large(world))
        read = 0
        with suppress(ConnectionResetError):
            while piece := await asyncio.wait_for(reader.read(50_000), 60):
                read += len(piece)
                await server.get()  # takes a while
        assert 0 < read < 8_000_000
        assert server.connections.ended["slow"] == 1
        writer.close()
    assert (world.door.large.in_progress, world.door.large.held) == (0, 0)


async def slow_page(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer in two parts, the second one after the deadline for heads."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    later = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(SHORT.headers * 3, later.set_result, None)
    await later
    await send({"type": "http.response.body", "body": b"after"})


@pytest.mark.long
async def test_the_slow_start_of_a_next_request_does_not_cut_an_answer_under_way(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("slow")
    async with (
        open_world(folder, HTTP_OPERATIONS, inner=InnerApplication(slow_page, prefixes=("/slow",))) as housed,
        serving(housed.door, housed) as server,
    ):
        answer = await server.exchange(GET.replace(b"/health", b"/slow") + b"GET /hea")
        assert b"firstafter" in answer
        broken = GET.replace(b"GET /health", b"POST /slow").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        reader, writer = await server.connect()
        writer.write(broken)
        await asyncio.wait_for(reader.readuntil(b"first"), 60)
        writer.write(b"no chunk\r\n")
        assert b"HTTP/1.1" not in await asyncio.wait_for(reader.read(), 60)
        writer.close()
        begun = time.monotonic()
        while not any(line.method == "POST" for line in housed.lines) and time.monotonic() - begun < 60:
            assert status_of(await server.get()) == 200
        assert time.monotonic() - begun < 60
    assert housed.faults == []


@pytest.mark.cases
@pytest.mark.parametrize(("wanted", "more"), [(0, ""), (3_000_000, ""), (0, "Connection: close\r\n")])
async def test_a_client_that_stops_reading_is_let_go(world: World, server: RunningHere, wanted: int, more: str) -> None:
    before = len(server.server.server_state.connections)
    reader, writer = await server.connect()
    writer.write(await large(world, more))
    await asyncio.wait_for(reader.readexactly(1 + wanted), 60)
    begun = time.monotonic()
    while len(server.server.server_state.connections) > before and time.monotonic() - begun < 60:
        assert status_of(await server.get()) == 200
    assert time.monotonic() - begun < 60
    writer.close()


async def test_a_head_that_begins_behind_a_large_body_is_not_too_large(world: World, server: RunningHere) -> None:
    caller = await world.caller()
    body = b'{"name":"x"' + b" " * 60_000 + b"}"
    first = BODY_START.partition(b"Content-Length")[0] + b"Content-Length: %d\r\n" % len(body)
    first += f"Authorization: Bearer {caller.secret}\r\n\r\n".encode() + body
    reader, writer = await server.connect()
    writer.write(first + GET[:20])
    assert b" 201 " in await asyncio.wait_for(reader.readline(), 60)
    writer.write(GET[20:].replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert b"HTTP/1.1 200" in await asyncio.wait_for(reader.read(), 60)
    writer.close()


@pytest.mark.long
async def test_a_client_that_reads_slowly_gets_the_whole_answer(world: World, server: RunningHere) -> None:
    reader, writer = await server.connect()
    writer.write(await large(world))
    begun, read = time.monotonic(), 0
    while piece := await asyncio.wait_for(reader.read(65536), 60):
        read += len(piece)
        if read < 4_000_000 and time.monotonic() - begun < SHORT.stall * 3:
            await server.get()  # takes a while
    assert read > 8_000_000
    writer.close()


async def test_a_fault_of_the_door_is_one_answer_and_its_text_is_masked(world: World, server: RunningHere) -> None:
    caller = await world.caller()
    sent = f"GET /v1/misspelt HTTP/1.1\r\nHost: reseller.test\r\nAuthorization: Bearer {caller.secret}\r\n\r\n"
    answer = await server.exchange(sent.encode())
    assert (status_of(answer), body_of(answer)["code"]) == (500, "internal")
    assert caller.secret.encode() not in b"".join(server.logged)


async def test_what_the_server_refused_by_itself_is_logged(server: RunningHere) -> None:
    answer = await server.exchange(b"nonsense\r\n\r\n")
    request_id = str(body_of(answer)["request_id"])
    assert any(b'"refused"' in line and request_id.encode() in line for line in server.logged)


def test_a_missing_package_is_named_at_start() -> None:
    require_packages()
    with pytest.raises(MissingPackage, match="needs no_such_loop, which is not installed: run `pip install no_such_loop`"):
        require_packages(("uvloop", "no_such_loop"))


def test_the_server_runs_on_uvloop(tmp_path: Path) -> None:
    async def main() -> tuple[str, bytes]:
        async with open_world(tmp_path, HTTP_OPERATIONS) as world, serving(world.door, world) as server:
            return type(asyncio.get_running_loop()).__module__, await server.get()

    loop, answer = run_on_uvloop(main())
    assert (loop, status_of(answer)) == ("uvloop", 200)


def test_a_signal_ends_the_server_and_not_the_process(tmp_path: Path) -> None:
    async def main() -> str:
        async with open_world(tmp_path, HTTP_OPERATIONS) as world:
            logs = Logs(lambda piece: None, world.clock)
            end: Callable[[], None] = lambda: signal.raise_signal(signal.SIGTERM)  # noqa: E731
            server = make_http_server(world.door, deadlines=SHORT, ids=world.ids, logs=logs, ready=end)
            await server.serve(sockets=[bind_socket("127.0.0.1", 0)])
        return "in order"

    threshold = gc.get_threshold()
    assert run_on_uvloop(main()) == "in order"
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_a_port_that_is_taken_is_an_error_and_leaves_no_socket_behind() -> None:
    first = bind_socket("127.0.0.1", 0)
    first.listen()
    with pytest.raises(OSError, match="in use"):
        bind_socket("127.0.0.1", socket_port(first))
    first.close()


async def test_a_websocket_is_turned_away(world: World) -> None:
    sent: list[object] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        sent.append(message)

    await world.door({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1000}]
    assert (await ask(world.door)).status == 200


def test_the_version_of_the_server_is_the_one_this_was_written_for() -> None:
    assert uvicorn.__version__.startswith("0.54.")
