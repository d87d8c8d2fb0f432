"""A long list of lines is decoded in slices: to the same answer, whatever its rows hold, and other tasks get a turn in between."""

import tracemalloc

import anyio
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.ocs.client import OcsPool
from clients.ocs.json_array import SLICE_BYTES, open_long_answer
from clients.ocs.link import OcsSettings
from clients.ocs.wire_schema import CARD_SECRETS, Json, UnreadableAnswer
from tests.clients.clock import ManualClock
from tests.clients.ocs.upstream import URL, Upstream, raw
from tests.length import examples

HOSTILE = ('we]i}rd "{[ \\ é', 'a"},{"b', "\\", '\\"', "},", '"', "", "x" * 200)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", '"', "}, {")), inner, max_size=3),
    max_leaves=12,
)


def as_it_is(row: Json) -> Json:
    return row


def answer(rows: list[object], **more: object) -> dict[str, object]:
    return {"status": {"code": 0, "msg": "OK"}, "listSubscriber": {"subscriberList": rows, "hasMore": False, "nbFound": len(rows), **more}}


@pytest.mark.long
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(("subscriberId", "name", "sim")), VALUES, max_size=3), max_size=6), indented=st.booleans()
)
@settings(max_examples=examples(40))
async def test_it_is_the_answer_that_decoding_it_at_once_gives(rows: list[dict[str, object]], indented: bool) -> None:
    filler = [{"subscriberId": number, "name": HOSTILE[number % len(HOSTILE)], "imsiList": [{"id": 1}, {"id": 2}]} for number in range(900)]
    made = answer([*filler, *rows, *filler[:5]])
    body = orjson.dumps(made, option=orjson.OPT_INDENT_2 if indented else None)
    assert await open_long_answer(body, as_it_is) == made


async def test_others_get_a_turn_while_it_is_decoded() -> None:
    body = orjson.dumps(answer([{"subscriberId": number, "name": "x" * 400} for number in range(2000)]))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.sleep(0)

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        assert len((await open_long_answer(body, as_it_is))["listSubscriber"]["subscriberList"]) == 2000  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue, reportOptionalSubscript]  # an answer
        group.cancel_scope.cancel()
    assert turns >= len(body) // SLICE_BYTES - 1


async def test_a_row_that_is_longer_than_a_slice_is_decoded_whole() -> None:
    made = answer([{"subscriberId": 1, "imsiList": [{"id": number, "imsi": "}"} for number in range(9000)]}, {"subscriberId": 2}])
    assert await open_long_answer(orjson.dumps(made), as_it_is) == made


async def test_an_answer_without_a_list_is_decoded_as_any_other() -> None:
    made = {"status": {"code": 6}, "listSubscriber": None}
    assert await open_long_answer(orjson.dumps(made), as_it_is) == made


@pytest.mark.parametrize("cut", [1, 3, 40, 70_000])
async def test_one_that_broke_off_is_unreadable(cut: int) -> None:
    body = orjson.dumps(answer([{"subscriberId": number, "name": "x" * 400} for number in range(500)]))
    with pytest.raises(UnreadableAnswer):
        await open_long_answer(body[:-cut], as_it_is)


async def test_rows_that_are_no_json_are_unreadable() -> None:
    rows = b",".join([b'{"subscriberId":1}'] * 5000 + [b'{"subscriberId":}'])
    with pytest.raises(UnreadableAnswer):
        await open_long_answer(b'{"status":{"code":0},"listSubscriber":{"subscriberList":[%b]}}' % rows, as_it_is)


async def most_memory(organisations: int) -> int:
    """Bytes at the highest moment while so many read a long list at once, each of which is done with it when it is there."""
    rows = [{"subscriberId": number, "imsiList": [{"id": each, "imsi": f"{number}{each}"} for each in range(40)]} for number in range(1500)]
    body = orjson.dumps(answer(list[object](rows)))
    pool = OcsPool(Upstream([raw(body)]).outbound(), OcsSettings(URL), ManualClock())

    async def read(organisation: int) -> None:
        told = await pool.for_token("one", f"org_{organisation}").subscriber.list_subscriber(8101)
        assert len(told.get("subscriberList", [])) == 1500

    tracemalloc.start()
    try:
        async with anyio.create_task_group() as group:
            for organisation in range(organisations):
                group.start_soon(read, organisation)
        return tracemalloc.get_traced_memory()[1] - organisations * len(body)  # each has the answer itself
    finally:
        tracemalloc.stop()


@pytest.mark.long
async def test_several_that_come_at_once_take_the_memory_of_one() -> None:
    alone = await most_memory(1)
    assert alone > 10_000_000
    assert await most_memory(4) < 1.5 * alone


@pytest.mark.parametrize(
    "place",
    [
        b'{"status":{"code":0,"subscriberList":[]},"listSubscriber":{"subscriberList":%b}}',
        b'{"status":{"code":0},"other":{"subscriberList":[{"subscriberId":1}]},"listSubscriber":{"subscriberList":%b}}',
        b'{"status":{"code":0},"listSubscriber":{"subscriber\\u004cist":%b}}',
        b'{"listSubscriber":{"subscriberList":%b},"status":{"code":0}}',
    ],
)
@pytest.mark.parametrize("count", [3, 6000])
async def test_no_line_keeps_the_secrets_of_its_card_wherever_the_list_stands(place: bytes, count: int) -> None:
    secret = sorted(CARD_SECRETS)[0]
    rows = orjson.dumps([{"subscriberId": number + 1, "name": "x" * 40, secret: "0000"} for number in range(count)])
    told = await Upstream([raw(place % rows)]).ocs().subscriber.list_subscriber(8101)
    listed = told.get("subscriberList", [])
    assert (len(listed), [row for row in listed if secret in row]) == (count, [])
