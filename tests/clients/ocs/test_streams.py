"""A big answer passes through: the same bytes, nothing decoded, nothing kept open."""

from contextlib import aclosing

import anyio
import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.http import Outbound, OutboundLimits
from clients.ocs.client import Ocs
from clients.ocs.json_array import ARRAY_HEAD_BYTES, JsonArrayScan
from clients.ocs.link import OcsLink, OcsSettings
from registry.errors import OcsError
from tests.clients.clock import ManualClock
from tests.clients.ocs.upstream import URL, Chunked, Upstream, broken, raw, reply, upstream
from tests.clients.webhooks.receiver import receiver, status_answer

NASTY = {"name": 'quote " back \\ \\" brackets ]}[{ ü 😀', "empty": "", "deep": [[{"a": [1.50, -2e5, None, True]}], {}], "slash": "\\"}
RULES = [{**NASTY, "id": number, "text": "x" * (number % 90) + "\\" * (number % 7)} for number in range(2500)]
ARRAY = orjson.dumps(RULES)
START, END = b'{"status":{"code":0,"msg":"a } \\" brace"},"listTariffRule":{"rule":', b"}}"


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def chunked(body: bytes, size: int = 1000, error: Exception | None = None) -> tuple[Upstream, Chunked]:
    stream = Chunked(cut(body, size), error)
    return upstream(stream.answer), stream


async def passed(ocs: Ocs) -> bytes:
    return b"".join([part async for part in await ocs.tariffs.stream_customer_tariff(7001)])


@pytest.mark.long
@pytest.mark.parametrize("size", [29, 997, 16384, 1 << 20])
async def test_the_array_passes_byte_by_byte(size: int) -> None:
    spaced = ARRAY.replace(b",{", b" ,\n {")
    there, stream = chunked(b" " + START + b" " + spaced + b"\n } }\n", size)
    assert await passed(there.ocs()) == spaced
    assert stream.closed
    assert there.bodies == [{"getCustomerTariff": 7001}]


async def test_members_after_the_array_are_left_out() -> None:
    there, _ = chunked(START + ARRAY + b',"other":[1],"more":"]"},"hasMore":false}')
    assert await passed(there.ocs()) == ARRAY


@pytest.mark.parametrize(
    "body",
    [
        b'{"listTariffRule":{"rule":' + ARRAY + b'},"status":{"code":0,"msg":"OK"}}',
        b'{"status":{"code":0},"listTariffRule":{"resellerId":1,"rule":' + ARRAY + b"}}",
        b'{"status":{"code":0,"more":{}},"listTariffRule":{"rule":' + ARRAY + b"}}",
    ],
)
async def test_another_order_of_members_is_decoded(body: bytes) -> None:
    there, stream = chunked(body)
    assert orjson.loads(await passed(there.ocs())) == RULES
    assert stream.closed


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(None, b"[]"), ({}, b"[]"), ({"rule": None}, b"[]"), ({"rule": []}, b"[]"), ({"rule": [{"a": 1.5}]}, b'[{"a":1.5}]')],
)
async def test_small_and_missing_arrays_are_arrays_too(payload: object, expected: bytes) -> None:
    assert await passed(upstream(reply("listTariffRule", payload)).ocs()) == expected


@pytest.mark.parametrize("code", [2, "8"])
async def test_a_refusal_comes_before_any_byte(code: int | str) -> None:
    start = START.replace(b'"code":0', b'"code":' + orjson.dumps(code))
    for body in (start + ARRAY + END, start + b"[]" + END):
        there, stream = chunked(body)
        with pytest.raises(OcsError) as caught:
            await there.ocs().tariffs.stream_customer_tariff(7001)
        assert (caught.value.ocs_code, len(there.requests), stream.closed) == (int(code), 1, True)


async def test_the_beginning_is_asked_for_again() -> None:
    good = Chunked(cut(START + ARRAY + END, 5000))
    for first in (raw(b"", 503), reply(code=100), broken(httpx.ReadTimeout("")), Chunked([b"{"]).answer, raw(START + b"7" + END)):
        good.closed = False
        there = upstream(first, good.answer)
        assert await passed(there.ocs()) == ARRAY
        assert len(there.requests) == 2


@pytest.mark.parametrize("error", [None, httpx.ReadError("secret"), ConnectionResetError()])
async def test_an_answer_that_breaks_off_raises_in_the_middle(error: Exception | None) -> None:
    there, stream = chunked((START + ARRAY)[: 3 * ARRAY_HEAD_BYTES], error=error)
    got = bytearray()
    with pytest.raises(OcsError, match="broke off") as caught:
        async for part in await there.ocs().tariffs.stream_customer_tariff(7001):
            got += part
    assert ARRAY.startswith(bytes(got))
    assert len(got) > 2 * ARRAY_HEAD_BYTES
    assert (caught.value.__context__, stream.closed, len(there.requests)) == (None, True, 1)


@pytest.mark.parametrize("tail", [b"}}}}}}", b"[" * 5000, b'"' + b"a" * 5000])
async def test_brackets_that_do_not_match_break_off(tail: bytes) -> None:
    there, stream = chunked(START + ARRAY[:-1] + tail)
    with pytest.raises(OcsError, match="broke off"):
        await passed(there.ocs())
    assert stream.closed


async def test_closing_early_gives_connection_and_place_back() -> None:
    stream = Chunked(cut(START + ARRAY + END, 1000))
    there = upstream(stream.answer, reply("getResellerInfo", {"id": 1}))
    ocs = there.ocs(OcsSettings(URL, concurrency=1))
    rules = await ocs.tariffs.stream_customer_tariff(7001)
    async for _ in rules:
        break
    given = stream.given
    assert not stream.closed
    async with anyio.create_task_group() as tasks:  # another task may close it
        tasks.start_soon(rules.aclose)
    await rules.aclose()
    assert (stream.closed, stream.given) == (True, given)
    assert given < 100
    assert await ocs.reseller.get_reseller_info() == {"id": 1}


async def test_a_reader_that_takes_its_time_keeps_nobody_else_from_asking() -> None:
    stream = Chunked(cut(START + ARRAY + END, 1000))
    there = upstream(stream.answer, reply("getResellerInfo", {"id": 1}))
    ocs = there.ocs(OcsSettings(URL, concurrency=1, total_seconds=0.05))
    rules = await ocs.tariffs.stream_customer_tariff(7001)
    assert await ocs.reseller.get_reseller_info() == {"id": 1}
    assert b"".join([part async for part in rules]) == ARRAY


async def test_a_stream_that_is_never_read_can_be_closed() -> None:
    there, stream = chunked(START + ARRAY + END)
    rules = await there.ocs().tariffs.stream_customer_tariff(7001)
    await rules.aclose()
    assert stream.closed


async def test_an_array_can_be_put_inside_an_answer() -> None:
    there, stream = chunked(START + ARRAY + END)
    rules = (await there.ocs().tariffs.stream_customer_tariff(7001)).within(b'{"data":', b"}")
    assert b"".join([part async for part in rules]) == b'{"data":' + ARRAY + b"}"
    assert stream.closed
    for begun in (False, True):
        there, stream = chunked(START + ARRAY + END)
        rules = (await there.ocs().tariffs.stream_customer_tariff(7001)).within(b"(", b")")
        async with aclosing(rules):
            if begun:
                assert [await anext(rules), (await anext(rules))[:1]] == [b"(", b"["]
        assert stream.closed


async def test_an_error_thrown_into_an_array_closes_it() -> None:
    there, stream = chunked(START + ARRAY + END)
    rules = await there.ocs().tariffs.stream_customer_tariff(7001)
    await anext(rules)
    with pytest.raises(KeyError):
        await rules.athrow(KeyError("x"))
    assert stream.closed


async def test_a_server_that_falls_silent_is_given_up() -> None:
    there = upstream()
    there.gate = anyio.Event()
    with pytest.raises(OcsError) as caught:
        await there.ocs(OcsSettings(URL, total_seconds=0.02)).tariffs.stream_customer_tariff(7001)
    assert (caught.value.error_code, caught.value.ocs_code, len(there.requests)) == ("ocs_timeout", 18, 1)


async def test_a_real_connection_streams_and_serves_again() -> None:
    async with receiver(status_answer("200 OK", body=START + ARRAY + END)) as there:
        settings = OcsSettings(there.url())
        outbound = Outbound(OutboundLimits(total_seconds=5))
        ocs = Ocs(OcsLink(outbound, settings, "t", ManualClock()))
        assert await passed(ocs) == ARRAY
        early = await ocs.tariffs.stream_customer_tariff(7001)
        await early.aclose()
        await outbound.aclose()
    assert there.connections == 2


def test_the_scan_finds_the_end_at_every_cut() -> None:
    array = orjson.dumps([NASTY, [], "]", {"k": ["\\\\", '"']}])
    body = array + b'}, "x": [1]}'
    for size in range(1, len(body) + 1):
        scan, position = JsonArrayScan(), 0
        for part in cut(body, size):
            end = scan.feed(part)
            if end is not None:
                assert position + end == len(array)
                break
            position += len(part)
        else:
            pytest.fail(f"no end found with parts of {size} bytes")


ROW = {"currency": {"code": "EUR"}, "rates": [{"a": "1", "b": "2"}], "text": "plain"}
OTHERS = ({"text": "}{"}, {"text": '"}{"'}, {"}{": [{}, {}]}, {"text": "["}, [[{}]], "}{", {"a": "{", "b": "}"}, {"a": "[{", "b": 1})


@given(st.lists(st.integers(-25, len(OTHERS) - 1), max_size=60), st.sampled_from((2049, 4099, 9001, 60_000)))
def test_rows_of_one_shape_hide_no_end(picked: list[int], size: int) -> None:
    rows = [row for number in picked for row in ([OTHERS[number]] if number >= 0 else [ROW] * -number)]
    array = orjson.dumps(rows)
    body = array + b',"rule":[{}' + array + b"]}}"
    scan, position = JsonArrayScan(), 0
    for part in cut(body, size):
        end = scan.feed(part)
        if end is not None:
            assert position + end == len(array)
            return
        position += len(part)
    pytest.fail("no end found")


def test_a_row_whose_text_holds_a_bracket_counts_as_it_stands() -> None:
    # Its marks begin in the text "{" as well, and there they hide the opening of an array.
    row, hidden = b'{"x":"["}', b'"{","s",["}"]'
    array = b"[" + b",".join([row] * 4000 + [hidden] + [row] * 400) + b"]"
    scan = JsonArrayScan()
    assert scan.feed(array[:30_000]) is None
    assert scan.feed(array[30_000:] + b"]}}") == len(array) - 30_000
