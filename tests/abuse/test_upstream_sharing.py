"""One token and one pool of connections for many: whoever asks a lot, reads slowly or hangs up takes nothing from the others."""

import asyncio
import weakref
from collections.abc import Callable, Mapping
from typing import cast

import anyio
import httpx
import orjson
import pytest

from clients.http import Outbound, OutboundLimits
from clients.ocs.client import OcsPool
from clients.ocs.link import OcsSettings
from clients.ocs.places import Places
from operations.caches.answers import ReadCache
from registry.caller import Tier
from simulators.server import WireAnswer as SandboxAnswer
from tests.clients.clock import ManualClock
from tests.faults.stage import FaultsStage, open_faults_stage
from tests.stage import opened
from tests.world import HOST, Credentials
from transports.http.asgi import Message, Scope
from transports.http.concurrency import STREAMS_OF_ONE

URL = "https://ocs.example/ocs-custo/main/v1"
LINE = orjson.dumps({"status": {"code": 0}, "getSingleSubscriber": {"subscriberId": 1}})
LONG = "/v1/tariffs/7001"


class Turnstile(httpx.AsyncBaseTransport):
    """Lets one call through at a time, when it is told to, and notes whose it was."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.waiting: list[tuple[str, anyio.Event]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        whose = orjson.loads(request.content)["getSingleSubscriber"]["iccid"]
        let = anyio.Event()
        self.waiting.append((whose, let))
        await let.wait()
        self.passed.append(whose)
        return httpx.Response(200, stream=httpx.ByteStream(LINE))

    async def let_one(self) -> None:
        whose, let = self.waiting.pop(0)
        del whose
        let.set()
        await settled()


async def settled() -> None:
    """Whatever can go on has gone on."""
    for _ in range(50):
        await asyncio.sleep(0)


def pool_through(turnstile: Turnstile, places: int) -> OcsPool:
    outbound = Outbound(OutboundLimits(), transport=turnstile)
    return OcsPool(outbound, OcsSettings(URL, concurrency=places), ManualClock())


async def test_an_organisation_that_asks_a_hundred_times_keeps_nobody_waiting_who_asks_once() -> None:
    turnstile = Turnstile()
    pool = pool_through(turnstile, 4)

    async def ask(owner: str) -> None:
        await pool.for_token("shared-token-of-the-service", owner).subscriber.get_single_subscriber(owner, by="iccid")

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(ask, "greedy")
        await settled()
        assert len(turnstile.waiting) == 3  # the fourth place is for calls that issue
        for owner in ("first", "second"):
            group.start_soon(ask, owner)
        await settled()
        assert len(turnstile.waiting) == 3  # they share the token's limit
        for _ in range(6):
            await turnstile.let_one()
        assert {"first", "second"} <= set(turnstile.passed)  # as soon as what was under way before them is done
        while turnstile.waiting:
            await turnstile.let_one()
    assert len(turnstile.passed) == 102


async def test_tokens_have_limits_of_their_own() -> None:
    turnstile = Turnstile()
    pool = pool_through(turnstile, 1)

    async def ask(token: str) -> None:
        await pool.for_token(token, "one").subscriber.get_single_subscriber(token, by="iccid")

    async with anyio.create_task_group() as group:
        for token in ("the-token-of-one", "the-token-of-another"):
            group.start_soon(ask, token)
        await settled()
        assert len(turnstile.waiting) == 2
        while turnstile.waiting:
            await turnstile.let_one()


@pytest.mark.parametrize("turns", range(6))
async def test_whoever_gives_up_waiting_takes_no_place_along(turns: int) -> None:
    places, served = Places(1), list[str]()
    give_back = await places.take("a")

    async def wait(owner: str) -> None:
        back = await places.take(owner)
        served.append(owner)
        back()

    waiting = [asyncio.create_task(wait(owner)) for owner in "bbcb"]
    await settled()
    waiting[0].cancel()
    give_back()
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting[2].cancel()
    await asyncio.wait(waiting)
    assert served.count("b") == 2 and len(served) <= 3
    assert places.try_take("d")
    assert not places.try_take("d")


class Reader:
    """A client over a connection that it reads as slowly as it likes."""

    def __init__(self, stage: FaultsStage, who: Credentials, path: str = LONG, query: str = "verbose=true") -> None:
        self.status, self.pieces = 0, 0
        self.goes_on, self.hung_up = anyio.Event(), anyio.Event()
        headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {who.secret}".encode())]
        named = {"path": path, "raw_path": path.encode(), "query_string": query.encode(), "headers": headers}
        scope = {"type": "http", "method": "GET", "client": ("127.0.0.1", 1), **named}
        self._asked = False
        self.task = asyncio.create_task(stage.world.door(cast(Scope, scope), self._receive, self._send))

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = cast(int, message["status"])
        elif not self.hung_up.is_set():  # what is sent to nobody is taken without a word
            self.pieces += 1
            if self.status == 200:
                await self.goes_on.wait()


stage = opened(open_faults_stage)


@pytest.mark.long
async def test_slow_readers_of_long_answers_hold_a_few_connections_and_no_more(stage: FaultsStage) -> None:
    slow, other = [await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=8101) for _ in range(2)]
    readers = [Reader(stage, slow) for _ in range(STREAMS_OF_ONE)]
    await waited(lambda: all(reader.pieces for reader in readers))
    async with stage.world.client(slow.secret) as http:
        refused = await http.get(LONG, params={"verbose": "true"})
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (429, "rate_limited", "5")
        assert (await http.get(LONG, params={"verbose": "true", "limit": "5"})).status_code == 200
    async with stage.world.client(other.secret) as http:
        assert (await http.get(LONG, params={"verbose": "true"})).status_code == 200
    for reader in readers:
        reader.goes_on.set()
        await reader.task
    async with stage.world.client(slow.secret) as http:
        assert (await http.get(LONG, params={"verbose": "true"})).status_code == 200


async def test_an_answer_whose_reader_has_hung_up_is_not_read_to_its_end(stage: FaultsStage) -> None:
    who = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
    before = len(asyncio.all_tasks())
    readers = [Reader(stage, who) for _ in range(STREAMS_OF_ONE)]
    await waited(lambda: all(reader.pieces for reader in readers))
    for reader in readers:
        reader.hung_up.set()
        await settled()
        reader.goes_on.set()
        await reader.task
    assert {reader.pieces for reader in readers} == {1}
    await settled()
    assert len(asyncio.all_tasks()) == before
    async with stage.world.client(who.secret) as http:
        assert (await http.get(LONG, params={"verbose": "true"})).status_code == 200


async def test_answers_that_were_kept_are_let_go_when_their_time_is_over() -> None:
    clock = ManualClock()
    reads, gone = ReadCache(clock), list[weakref.ref[Answer]]()

    async def load() -> Answer:
        answer = Answer()
        gone.append(weakref.ref(answer))
        return answer

    for number in range(20):
        await reads.get(("tenant", number), load)
        clock.time += 10
    await reads.get(("tenant", 0), load)
    assert [place for place, answer in enumerate(gone) if answer() is not None] == [15, 16, 17, 18, 19, 20]


class Answer:
    """Something large."""


async def waited(there: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not there():
            await asyncio.sleep(0.001)


async def test_usage_that_is_charged_while_a_balance_is_set_is_not_given_back(stage: FaultsStage) -> None:
    line = stage.inputs.line("balance")
    line.balance, ask = 10_000_000, stage.world.sandbox.handle

    async def busy(
        method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b"", client: str = ""
    ) -> SandboxAnswer:
        if b"modifySubscriberBalance" in body:
            line.balance -= 9_000_000  # used between the look and the write
        return await ask(method, path, query, headers, body, client)

    stage.world.sandbox.handle = busy
    said = await stage.managed.put(f"/v1/subscribers/{line.iccid}/balance", json={"amount": 10, "mode": "set"})
    assert (said.status_code, line.balance) == (200, 1_000_000)


async def test_what_was_confirmed_without_a_removal_does_not_confirm_one(stage: FaultsStage) -> None:
    path = f"/v1/package-templates/{stage.inputs.template}/core"
    plain = {"name": "Renamed"}
    for less in ({"dataLimit": None}, {"databyte": None}, {"data_limit": None}):
        challenge = await stage.managed.put(path, json=plain)
        token = {"X-Confirm-Token": challenge.json()["confirm_token"]}
        refused = await stage.managed.put(path, json=plain | less, headers=token)
        assert (refused.status_code, refused.json()["code"]) == (400, "confirm_token_invalid")
        assert stage.network.templates[stage.inputs.template].data_bytes == 1 << 30
    asked = await stage.managed.put(path, json=plain | {"dataLimit": None})
    assert "dataLimit 1073741824 becomes none" in asked.json()["message"]
    token = {"X-Confirm-Token": asked.json()["confirm_token"], "Idempotency-Key": "k"}
    done = await stage.managed.put(path, json=plain | {"data_limit": None}, headers=token)
    assert (done.status_code, stage.network.templates[stage.inputs.template].data_bytes) == (200, None)
    other = await stage.managed.put(path, json=plain, headers={"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
