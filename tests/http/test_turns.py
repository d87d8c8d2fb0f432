"""Whose request begins next, and what is charged to whoever sends bodies that are refused."""

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from registry.caller import Tier
from registry.limits import Limits
from tests.http.asking import ask, bearer_fields, json_body
from tests.http.conftest import HTTP_OPERATIONS
from tests.world import World, open_world
from transports.http.concurrency import RequestTurns
from transports.http.door import credential_of

BAD = orjson.dumps({f"k{number}": 1 for number in range(19_000)})
LIMITS = Limits(refused_bytes=2 * len(BAD), refused_bytes_per_second=len(BAD) // 10)


async def test_a_client_with_many_requests_waits_behind_one_with_few() -> None:
    turns, order = RequestTurns(time.monotonic, 2), list[str]()

    async def request(client: str) -> None:
        if not turns.begin_at_once():
            await turns.wait(client, b"")
        order.append(client)

    await asyncio.gather(*(request("many") for _ in range(10)), request("one"), request("two"))
    assert order[:6] == ["many", "many", "many", "one", "two", "many"]
    assert order.count("many") == 10


async def test_credentials_that_somebody_makes_up_have_one_turn_together_and_spaces_make_no_other_one() -> None:
    turns, order = RequestTurns(time.monotonic, 1), list[str]()

    async def request(network: str, credential: bytes) -> None:
        if not turns.begin_at_once():
            await turns.wait(network, credential)
        order.append(network)

    await asyncio.gather(*(request("many", b"%d" % number) for number in range(20)), request("one", b"good"))
    assert order.index("one") <= 2
    shown = {credential_of([(b"authorization", value)]) for value in (b"Bearer key", b"Bearer     key", b" bearer key ")}
    assert shown == {b"key"} and credential_of([(b"authorization", b"  ")]) == credential_of([]) == b""


async def test_as_many_requests_begin_in_a_turn_as_fit_by_what_the_last_ones_took_and_twice_as_many_at_most() -> None:
    now, begun = 0.0, 0
    turns = RequestTurns(lambda: now)

    async def request(seconds: float) -> None:
        nonlocal now, begun
        if not turns.begin_at_once():
            await turns.wait("one", b"")
        begun, now = begun + 1, now + seconds

    requests = asyncio.gather(*(request(seconds) for seconds in [0.01] * 11 + [0.001] * 7 + [0.0] * 20))
    seen = [0]
    while not requests.done():
        await asyncio.sleep(0)
        seen.append(begun)
    assert [after - before for before, after in pairwise(seen) if after != before] == [8, 1, 1, 1, 1, 2, 4, 7, 8, 5]


async def test_a_request_that_is_given_up_takes_nobodys_turn() -> None:
    turns, order = RequestTurns(time.monotonic, 1), list[int]()

    async def request(number: int) -> None:
        if not turns.begin_at_once():
            await turns.wait("one", b"")
        order.append(number)

    tasks = [asyncio.create_task(request(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2, 3]


async def post(world: World, secret: str, raw: bytes, **place: str) -> tuple[int, int]:
    """The status, and how much of the body was left unread."""
    answer = await ask(world.door, "POST", b"/v1/notes", [bearer_fields(secret), *json_body(raw)], [raw])
    return answer.status, answer.pieces_left


async def test_whoever_sends_refused_bodies_is_refused_before_the_next_is_read(tmp_path: Path) -> None:
    async with open_world(tmp_path, HTTP_OPERATIONS, limits=LIMITS) as world:
        caller, other = await world.caller(Tier.ENTERPRISE), await world.caller(Tier.ENTERPRISE)
        assert [await post(world, caller.secret, BAD) for _ in range(3)] == [(400, 0), (400, 0), (429, 1)]
        good = b'{"name":"first"}'
        assert await post(world, caller.secret, good) == (429, 1)
        assert await post(world, other.secret, good) == (201, 0)
        refused = await ask(world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), *json_body(good)], [good])
        assert (refused.code, refused.headers["retry-after"]) == ("rate_limited", "1")
        listed = await ask(world.door, "GET", b"/v1/notes", [bearer_fields(caller.secret)])
        assert listed.status == 200
        world.clock.advance(1)
        assert await post(world, caller.secret, good) == (201, 0)


async def test_bodies_that_are_taken_are_never_charged(tmp_path: Path) -> None:
    async with open_world(tmp_path, HTTP_OPERATIONS, limits=LIMITS) as world:
        caller = await world.caller(Tier.ENTERPRISE)
        large = b'{"name":"x"' + b" " * 200_000 + b"}"
        assert [await post(world, caller.secret, large) for _ in range(8)] == [(201, 0)] * 8


@pytest.mark.parametrize(("count", "status"), [(90, 200), (101, 431)])
async def test_a_request_has_at_most_a_hundred_headers(tmp_path: Path, count: int, status: int) -> None:
    async with open_world(tmp_path, HTTP_OPERATIONS) as world:
        answer = await ask(world.door, headers=[(b"x-%d" % number, b"1") for number in range(count)])
        assert answer.status == status


async def test_a_large_body_that_is_answered_from_what_was_stored_is_charged(tmp_path: Path) -> None:
    async with open_world(tmp_path, HTTP_OPERATIONS, limits=LIMITS) as world:
        caller = await world.caller(Tier.ENTERPRISE)
        path, raw = b"/v1/subscribers/issue-from-inventory", b"{" + b" " * len(BAD) + b"}"

        async def issue() -> tuple[int, bool]:
            headers = [bearer_fields(caller.secret), (b"idempotency-key", b"one"), *json_body(raw)]
            answer = await ask(world.door, "POST", path, headers, [raw])
            return answer.status, "idempotent-replayed" in answer.headers

        assert [await issue() for _ in range(4)] == [(200, False), (200, True), (200, True), (429, False)]
