"""The envelope, the credentials, the addresses, and the ways into the sandbox."""

import asyncio
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.types import Message

from simulators.network.entities import NetworkToken
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork, make_network_app
from simulators.network.world import World
from simulators.server import ANSWER_CHUNK_BYTES, WireAnswer, send_answer
from simulators.transport import SimulatorTransport
from tests.sandbox.network import ALPINE, FJORD, NETWORK_LINES, NETWORK_NOON, Network

INFO = b'{"getResellerInfo":{}}'
NO_ACCOUNT = b'{"status":{"code":8,"msg":"no API account for this token"}}'


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    transport = SimulatorTransport(Network().sandbox)
    async with httpx.AsyncClient(transport=transport, base_url="https://ocs.test/v1", params={"token": FJORD}) as client:
        yield client


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"1", b"{}", b'{"listSponsor":7001,"getResellerInfo":{}}', b'{"listSponsor":NaN}', b"[" * 5000, b"\xff"],
)
async def test_a_body_that_is_not_one_method_is_refused_with_2(body: bytes) -> None:
    answer = await Network().send(body)
    assert (answer.status, answer.body[:20]) == (200, b'{"status":{"code":2,')


async def test_an_unknown_method_is_refused_with_1() -> None:
    assert await Network().ask("getPrepaidPackageTemplate", {}) == {"status": {"code": 1, "msg": "unknown request"}}


@pytest.mark.parametrize("method", ["getResellerInfo", "listSubscriber", "createLocationZone"])
async def test_the_second_version_knows_two_methods_only(method: str) -> None:
    assert await Network().code(method, {}, version="v2") == 1


@pytest.mark.parametrize("scheme", ["Token", "Bearer", "bearer"])
async def test_a_token_may_come_in_the_header(scheme: str) -> None:
    answer = await Network().send(INFO, query="", headers={"authorization": f"{scheme} {FJORD}"})
    assert b'"id":7001' in answer.body


async def test_the_token_of_the_query_wins() -> None:
    answer = await Network().send(INFO, query=f"token={ALPINE}", headers={"authorization": f"Bearer {FJORD}"})
    assert b'"id":7002' in answer.body


@pytest.mark.cases
@pytest.mark.parametrize("query", ["", "token=", "token=wrong", "TOKEN=" + FJORD])
async def test_a_wrong_token_is_code_8_with_http_200_and_may_be_http_401(query: str) -> None:
    assert await Network().send(INFO, query=query) == WireAnswer(200, NO_ACCOUNT)
    assert await Network(refuse_status=401).send(INFO, query=query) == WireAnswer(401, NO_ACCOUNT)


async def test_a_token_may_be_bound_to_addresses() -> None:
    network = Network()
    network.world.tokens["bound"] = NetworkToken("bound", 7001, ("192.0.2.1",))
    assert b'"code":9' in (await network.send(INFO, query="token=bound", client="192.0.2.2")).body
    assert b'"code":0' in (await network.send(INFO, query="token=bound", client="192.0.2.1")).body


async def test_any_address_that_ends_in_a_version_is_served_and_only_by_post() -> None:
    sandbox = Network().sandbox
    for path in ("/v1", "/v1/", "/ocs-custo/main/v1", "/a/b/v1"):
        assert (await sandbox.handle("POST", path, f"token={FJORD}", {}, INFO)).status == 200
    assert (await sandbox.handle("POST", "/ocs-custo/main", f"token={FJORD}", {}, INFO)).status == 404
    assert (await sandbox.handle("GET", "/v1", f"token={FJORD}")).status == 405


async def test_the_statistics_server_has_only_statistics_and_the_main_one_has_them_too() -> None:
    network = Network()
    params = {"subscriber": {"subscriberId": network.active().id}, "period": {"start": "2026-09-21", "end": "2026-09-21"}}
    for version in ("v1", "../as/v1"):
        assert await network.code("subscriberUsageOverPeriod", params, version=version) == 0
    assert await network.code("getResellerInfo", {}, version="../as/v1") == 1


async def test_httpx_reaches_the_sandbox_in_process(http: httpx.AsyncClient) -> None:
    answer = await http.post("", content=INFO)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["getResellerInfo"]["balance"] == "1530,20"


async def test_a_world_is_built_once_when_the_first_request_comes() -> None:
    built: list[int] = []

    def factory() -> World:
        built.append(1)
        return build_world(1, NETWORK_NOON, history_days=0, lines=20)

    sandbox = SimulatedNetwork(factory, wall=lambda: 0.0)
    assert sandbox.world is None
    for _ in range(2):
        assert (await sandbox.handle("POST", "/v1", f"token={FJORD}", {}, INFO)).status == 200
    assert built == [1]


async def test_a_world_whose_first_asker_has_gone_is_built_once_for_those_who_come_after() -> None:
    built, begun, goes_on = list[int](), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def factory() -> World:
        built.append(1)
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(60)
        return build_world(1, NETWORK_NOON, history_days=0, lines=20)

    sandbox = SimulatedNetwork(factory, wall=lambda: 0.0)
    first = asyncio.create_task(sandbox.handle("POST", "/v1", f"token={FJORD}", {}, INFO))
    await begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(sandbox.handle("POST", "/v1", f"token={FJORD}", {}, INFO))
    await asyncio.sleep(0)  # the second one asks while the world is being built
    goes_on.set()
    assert (await second).status == 200
    assert built == [1]


async def test_a_fork_goes_its_own_way() -> None:
    network = Network()
    fork = network.sandbox.fork()
    await network.control("POST", "advance", {"days": 1})
    assert network.sandbox.world is not None
    assert fork.world is not None
    assert network.sandbox.world.now - fork.world.now == 86_400


async def test_the_app_speaks_the_wire_and_refuses_a_body_without_end() -> None:
    transport = httpx.ASGITransport(make_network_app(Network().sandbox))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post("/v1", params={"token": FJORD}, content=INFO)
        assert answer.json()["getResellerInfo"]["id"] == 7001
        assert (await client.get("/control/state")).json()["lines"] == NETWORK_LINES
        assert (await client.post("/v1", content=b" " * ((1 << 20) + 1))).status_code == 413


async def test_a_long_answer_is_sent_in_pieces() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    body = bytes(range(256)) * (ANSWER_CHUNK_BYTES // 256) * 2 + b"end"
    await send_answer(send, WireAnswer(200, body))
    pieces = [message["body"] for message in sent[1:]]
    assert [len(piece) for piece in pieces] == [ANSWER_CHUNK_BYTES, ANSWER_CHUNK_BYTES, 3]
    assert b"".join(pieces) == body
    assert [message["more_body"] for message in sent[1:]] == [True, True, False]
