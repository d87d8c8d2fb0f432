"""More calls than a token has places: draws have places of their own, and whoever would wait too long is told at once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from clients.ocs.client import reserved_places
from clients.ocs.places import DURATION_SAMPLES_MINIMUM, PlaceQueue, Places, TokenPlaces, WaitTooLong, issuing
from tests.issuance.road import RoadGate
from tests.issuance.stage import IssuanceStage
from tests.network_facts import ACCOUNT
from tests.stage import without_request_id
from tests.world import SettableClock

READ = "getSingleSubscriber"
PLACES, RESERVED = 8, 2


@asynccontextmanager
async def crowd(stage: IssuanceStage, size: int) -> AsyncGenerator[list[httpx.Response]]:
    """So many reads of a line at once, none of which is answered until the block ends."""
    gate, answers = RoadGate(), list[httpx.Response]()
    iccid = next(iter((await stage.world.network()).lines_of(ACCOUNT))).iccid
    stage.road.gates[READ] = gate

    async def read() -> None:
        answers.append(await stage.http.get(f"/v1/subscribers/{iccid}"))

    async with anyio.create_task_group() as group:
        for _ in range(size):
            group.start_soon(read)
        await gate.entered.wait()
        await anyio.wait_all_tasks_blocked()
        try:
            yield answers
        finally:
            del stage.road.gates[READ]
            gate.open.set()


async def read_slowly(stage: IssuanceStage, seconds: float) -> None:
    """Enough reads of so many seconds that the queue knows how long they take."""
    stage.road.seen = lambda method: stage.world.clock.advance(seconds)
    iccid = next(iter((await stage.world.network()).lines_of(ACCOUNT))).iccid
    for _ in range(2 * DURATION_SAMPLES_MINIMUM):
        assert (await stage.http.get(f"/v1/subscribers/{iccid}")).status_code == 200
    stage.road.seen = lambda method: None


async def test_draws_go_on_while_reads_hold_all_the_places_that_they_may(stage: IssuanceStage) -> None:
    async with crowd(stage, 3 * PLACES) as answers:
        assert [(await stage.issue(f"k{number}")).status_code for number in range(3)] == [201] * 3
        assert (await stage.intend("intent")).json()["status"] == "succeeded"
        assert answers == []
    assert {answer.status_code for answer in answers} == {200} and len(answers) == 3 * PLACES


@pytest.mark.long
async def test_whoever_would_wait_longer_than_there_is_time_is_refused_at_once_and_nothing_is_kept(stage: IssuanceStage) -> None:
    await read_slowly(stage, 5)
    charged = await stage.charged()
    async with crowd(stage, 4 * PLACES) as answers:
        assert len(answers) == PLACES and {answer.status_code for answer in answers} == {503}
        said = answers[0]
        assert without_request_id(said) == snapshot(
            {
                "error": "Too many calls wait for the charging system, so this one was not sent; nothing was done.",
                "code": "upstream_unavailable",
                "hint": "Call again, with fewer calls at once",
            }
        )
        assert 10 <= int(said.headers["Retry-After"]) <= 20
        refused = len(answers)
    assert [answer.status_code for answer in answers[refused:]] == [200] * (4 * PLACES - refused)
    assert await stage.charged() == charged + 4 * PLACES - refused


@pytest.mark.long
async def test_a_write_that_the_queue_refuses_frees_its_key(stage: IssuanceStage) -> None:
    iccid = next(iter((await stage.world.network()).lines_of(ACCOUNT))).iccid
    change, path = {"firstName": "Anna"}, f"/v1/subscribers/{iccid}/contact"
    await read_slowly(stage, 5)
    async with crowd(stage, 4 * PLACES):
        said = await stage.http.put(path, json=change, headers={"Idempotency-Key": "contact"})
        assert (said.status_code, said.json()["code"]) == (503, "upstream_unavailable")
    assert (await stage.http.put(path, json=change, headers={"Idempotency-Key": "contact"})).status_code == 200


@pytest.mark.parametrize(("count", "reserved"), [(1, 0), (2, 1), (3, 1), (8, 2), (100, 25)])
def test_a_quarter_of_the_places_is_reserved_and_one_is_always_left_for_the_rest(count: int, reserved: int) -> None:
    assert reserved_places(count) == reserved


async def test_a_call_that_issues_takes_any_place_and_others_only_theirs() -> None:
    places = TokenPlaces(Places(1), SettableClock(), reserved=Places(1))
    with issuing():
        both = [await places.take("a"), await places.take("a")]
    for give_back in both:
        give_back()
    ordinary = await places.take("b")
    with anyio.move_on_after(0) as gave_up:
        await places.take("b")
    assert gave_up.cancelled_caught
    ordinary()


async def test_how_long_a_wait_will_be_follows_the_turns_of_the_owners() -> None:
    clock = SettableClock()
    queue = PlaceQueue(Places(2), clock)
    for _ in range(DURATION_SAMPLES_MINIMUM):
        give_back = await queue.take("a", 60.0)
        clock.advance(4)
        give_back()
    held = [await queue.take("a", 60.0) for _ in range(2)]
    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(queue.take, "a", 60.0)
        await anyio.wait_all_tasks_blocked()
        assert (queue.expected("a"), queue.expected("b")) == (14.0, 4.0), "b waits for one of a's, not for all"
        with pytest.raises(WaitTooLong) as refused:
            await queue.take("a", 17.0)
        assert refused.value.retry_after == 14
        group.cancel_scope.cancel()
    for give_back in held:
        give_back()


async def test_a_process_that_stood_still_in_a_call_does_not_take_the_next_waits_for_endless() -> None:
    clock = SettableClock()
    queue = PlaceQueue(Places(1), clock)
    for seconds in [0.1] * DURATION_SAMPLES_MINIMUM + [86_400]:
        give_back = await queue.take("a", 20.0)
        clock.advance(seconds)
        give_back()
    assert queue.expected("a") == pytest.approx(0.09 + 2.0)
