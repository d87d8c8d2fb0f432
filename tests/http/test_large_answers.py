"""Answers above 1 MB, and readers who take their time with them."""

import asyncio
from typing import cast

import orjson
import pytest

from tests.http.asking import bearer_fields
from tests.world import HOST, Credentials, World
from transports.http.asgi import Headers, Message, Scope
from transports.http.concurrency import AnswerReader, LargeAnswers

LARGE_SIZE, STREAM_SIZE = 8_000_000, 2_100_000


class WatchedAnswers(LargeAnswers):
    """Knows how many wait for their turn."""

    waiting = 0

    async def turn(self, reader: AnswerReader) -> None:
        self.waiting += 1
        try:
            await super().turn(reader)
        finally:
            self.waiting -= 1


class Reader:
    """A client that reads its answer when it is told to, and may hang up."""

    def __init__(self, world: World, who: Credentials, path: str = "/v1/large", method: str = "GET") -> None:
        self.status, self.headers, self.body = 0, dict[bytes, bytes](), b""
        self._reads, self._gone = asyncio.Event(), asyncio.Event()
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        scope |= {"headers": [(b"host", HOST.encode()), bearer_fields(who.secret)], "client": ("203.0.113.9", 1)}
        self._asked, self._stands, self._world = False, False, world
        self.task = asyncio.create_task(world.door(cast(Scope, scope), self._receive, self._send))

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = cast(int, message["status"]), dict(cast(Headers, message["headers"]))
            return
        self.body += cast(bytes, message["body"])
        if self.status == 200:
            self._stands = not self._reads.is_set()
            await self._reads.wait()
            self._stands = False

    async def until_begun(self) -> "Reader":
        """As far as it comes without reading, or without its turn. How many turns of the loop that takes is a thread's matter."""
        while not (self.task.done() or self._stands or cast(WatchedAnswers, self._world.door.large).waiting):
            await asyncio.sleep(0)
        return self

    def begin_to_read(self) -> None:
        self._reads.set()

    async def read(self) -> "Reader":
        self.begin_to_read()
        await self.task
        return self

    def hang_up(self) -> None:
        self._gone.set()

    @property
    def code(self) -> str:
        return orjson.loads(self.body)["code"]


@pytest.fixture(autouse=True)
async def asked_before(world: World) -> None:
    """The first answer of an operation waits for a look at its schema, which takes no turns of the loop but a thread's time."""
    world.door.large = WatchedAnswers()
    mine = await world.caller()
    for path in ("/v1/large", "/v1/streams", "/v1/streams/known"):
        await Reader(world, mine, path).read()


@pytest.mark.parametrize("path", ["/v1/large", "/v1/streams/known"])
async def test_a_credential_reads_one_large_answer_at_a_time_and_others_are_not_kept_waiting(world: World, path: str) -> None:
    mine, other = await world.caller(), await world.caller()
    first = await Reader(world, mine, path).until_begun()
    refused = await Reader(world, mine, path).read()
    assert (refused.status, refused.code, refused.headers[b"retry-after"]) == (429, "rate_limited", b"5")
    assert (await Reader(world, mine, "/v1/notes").read()).status == 200
    assert (await Reader(world, other, path).read()).status == 200
    assert (await Reader(world, mine, path, "HEAD").read()).status == 200
    whole = await first.read()
    assert (whole.status, len(whole.body)) == (200, LARGE_SIZE if path == "/v1/large" else STREAM_SIZE)
    assert (await Reader(world, mine, path).read()).status == 200
    assert (world.door.large.in_progress, world.door.large.held, world.door.large.refused["credential"]) == (0, 0, 1)


async def test_one_key_of_an_organisation_does_not_keep_another_from_reading(world: World) -> None:
    mine = await world.caller()
    colleague = await world.caller(organisation=mine.organisation)
    first = await Reader(world, mine).until_begun()
    assert (await Reader(world, colleague).read()).status == 200
    await first.read()


async def test_the_credentials_of_an_organisation_leave_room_for_others(world: World) -> None:
    world.door.large = WatchedAnswers(most_of_one=LARGE_SIZE * 2)
    mine = await world.caller()
    keys = [mine, *[await world.caller(organisation=mine.organisation) for _ in range(2)]]
    readers = [await Reader(world, key).until_begun() for key in keys]
    last = await readers[2].read()
    assert (last.status, last.code, last.headers[b"retry-after"]) == (429, "rate_limited", b"5")
    assert orjson.loads(last.body)["limit"] == orjson.loads(last.body)["used"] == LARGE_SIZE * 2
    assert (await Reader(world, await world.caller()).read()).status == 200
    assert [len((await reader.read()).body) for reader in readers[:2]] == [LARGE_SIZE] * 2
    assert (await Reader(world, keys[2]).read()).status == 200
    assert world.door.large.refused == {"credential": 0, "organisation": 1, "memory": 0}


async def test_large_answers_of_all_together_take_so_much_memory_and_no_more(world: World) -> None:
    world.door.large = WatchedAnswers(most_held=LARGE_SIZE * 2)
    readers = [await Reader(world, await world.caller()).until_begun() for _ in range(3)]
    last = await readers[2].read()
    assert (last.status, last.code, last.headers[b"retry-after"]) == (503, "overloaded", b"1")
    assert (world.door.large.in_progress, world.door.large.held) == (2, LARGE_SIZE * 2)
    assert [len((await reader.read()).body) for reader in readers[:2]] == [LARGE_SIZE] * 2


async def test_an_answer_that_is_larger_than_all_of_the_room_is_given_alone(world: World) -> None:
    world.door.large = WatchedAnswers(most_held=1)
    assert (await Reader(world, await world.caller()).read()).status == 200


async def test_an_answer_whose_size_nobody_knew_waits_at_a_megabyte_for_the_one_before(world: World) -> None:
    mine = await world.caller()
    first = await Reader(world, mine).until_begun()
    second = Reader(world, mine, "/v1/streams")
    second.begin_to_read()
    await second.until_begun()
    assert (second.status, len(second.body)) == (200, 700_000)
    await first.read()
    assert len((await second.read()).body) == STREAM_SIZE


async def test_a_reader_who_hangs_up_while_waiting_frees_what_it_held(world: World) -> None:
    mine = await world.caller()
    first = await Reader(world, mine).until_begun()
    second = Reader(world, mine, "/v1/streams")
    second.begin_to_read()
    await second.until_begun()
    second.hang_up()
    await second.task
    assert len(second.body) == 700_000
    await first.read()
    assert (await Reader(world, mine).read()).status == 200


async def test_a_large_answer_to_a_change_is_never_refused_after_the_change(world: World) -> None:
    mine = await world.caller()
    first = await Reader(world, mine).until_begun()
    second = await Reader(world, mine, "/v1/large", "POST").until_begun()
    assert second.status == 0
    await first.read()
    assert (await second.read()).status == 200
