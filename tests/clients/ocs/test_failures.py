"""What a failure means: how often was it tried, may it have happened, may it be made again."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import anyio
import httpx
import pytest

from clients.http import AddressBlocked, Outbound
from clients.ocs.client import Ocs, OcsPool, ocs_limits
from clients.ocs.link import OcsLink, OcsSettings
from clients.ocs.places import Places, TokenPlaces
from registry.errors import BadRequest, Conflict, OcsError, OcsNotFound, Refusal
from tests.clients.clock import ManualClock
from tests.clients.ocs.upstream import URL, UpstreamAnswer, broken, raw, reply, upstream
from tests.clients.webhooks.receiver import HookAnswer as RawAnswer
from tests.clients.webhooks.receiver import receiver

HOSTILE = "<script>upstream words</script>"


class Told(NamedTuple):
    ocs_code: int | None
    outcome_unknown: bool
    before_execution: bool
    code: str


async def reading(ocs: Ocs) -> object:
    return await ocs.reseller.get_reseller_info()


async def writing(ocs: Ocs) -> object:
    return await ocs.packages.affect_from_account(55010, 8101)


async def failed(call: Callable[[Ocs], Awaitable[object]], *answers: UpstreamAnswer) -> tuple[Told, int, OcsError]:
    there = upstream(*answers)
    with pytest.raises(OcsError) as caught:
        await call(there.ocs())
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert HOSTILE not in str(error.body("req_1"))
    return Told(error.ocs_code, error.outcome_unknown, error.before_execution, error.error_code), len(there.requests), error


AMBIGUOUS = {
    "timeout reported": (reply(code=18, msg=HOSTILE), 18, "ocs_timeout"),
    "timeout": (broken(httpx.ReadTimeout(HOSTILE)), 18, "ocs_timeout"),
    "broken connection": (broken(ConnectionResetError(HOSTILE)), None, "ocs_error"),
    "tls": (broken(ssl.SSLError(HOSTILE)), None, "ocs_error"),
    "protocol": (broken(httpx.RemoteProtocolError(HOSTILE)), None, "ocs_error"),
    "http 500": (raw(HOSTILE.encode(), 500), None, "ocs_error"),
    "http 401": (raw(b"", 401), None, "ocs_error"),
    "http 204": (raw(b"", 204), None, "ocs_error"),
    "redirect": (raw(b"", 302), None, "ocs_error"),
    "empty body": (raw(b""), None, "ocs_error"),
    "malformed JSON": (raw(b'{"status":{"code":0'), None, "ocs_error"),
    "no object": (raw(b"[]"), None, "ocs_error"),
    "status missing": (raw(b"{}"), None, "ocs_error"),
    "status of a wrong kind": (raw(b'{"status":0}'), None, "ocs_error"),
    "code missing": (raw(b'{"status":{"msg":"OK"}}'), None, "ocs_error"),
    "code of a wrong kind": (reply(code=True), None, "ocs_error"),
    "code of words": (reply(code="OK"), None, "ocs_error"),
    "payload missing": (reply(), None, "ocs_error"),
    "payload of a wrong kind": (
        raw(b'{"status":{"code":0},"getResellerInfo":[1],"affectPackageToSubscriber":[1]}'),
        None,
        "ocs_error",
    ),
    "payload without its id": (raw(b'{"status":{"code":0},"getResellerInfo":{},"affectPackageToSubscriber":{}}'), None, "ocs_error"),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_an_unclear_answer_is_asked_for_again_by_reads_and_leaves_the_outcome_of_writes_open(name: str) -> None:
    answer, ocs_code, code = AMBIGUOUS[name]
    read, reads, _ = await failed(reading, answer)
    write, writes, error = await failed(writing, answer)
    assert (read, reads) == (Told(ocs_code, False, False, code), 2)
    assert (write, writes) == (Told(ocs_code, True, False, code), 1)
    assert "may have been carried out" in error.message


@pytest.mark.parametrize("error", [ConnectionRefusedError(), AddressBlocked("10.0.0.1"), socket.gaierror(8, "unknown")])
async def test_what_was_never_sent_has_surely_not_happened(error: Exception) -> None:
    assert (await failed(reading, broken(error)))[:2] == (Told(None, False, True, "ocs_error"), 2)
    assert (await failed(writing, broken(error)))[:2] == (Told(None, False, True, "ocs_error"), 1)


async def cut_short(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"status":{"code":0,"msg":"OK"}')
    await writer.drain()


async def hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    return


@pytest.mark.parametrize("answer", [cut_short, hang_up])
async def test_a_real_connection_that_ends_too_soon_leaves_the_outcome_of_a_write_open(answer: RawAnswer) -> None:
    async with receiver(answer) as there:
        settings = OcsSettings(there.url())
        pool = OcsPool(Outbound(ocs_limits(settings)), settings, ManualClock())
        for call, unknown, connections in ((writing, True, 1), (reading, False, 3)):
            with pytest.raises(OcsError) as caught:
                await call(pool.for_token("t"))
            assert (caught.value.outcome_unknown, caught.value.before_execution) == (unknown, False)
            assert there.connections == connections
        await pool.aclose()


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_charging_system_in_trouble_is_no_matter_of_address_or_token(status: int) -> None:
    _, _, error = await failed(reading, raw(b"", status))
    assert "try again later" in error.message and "token" not in error.message
    assert error.headers == {"Retry-After": "10"}
    _, _, error = await failed(writing, raw(b"", status))
    assert error.headers == {}  # whoever wrote looks first


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refused_address_or_token_is_told_so(status: int) -> None:
    _, _, error = await failed(reading, raw(b"", status))
    assert error.message.endswith("Check its address and the token.") and error.headers == {}


@pytest.mark.parametrize(
    "answer", [*(reply(code=code) for code in (1, 2, 3, 5, 6, 7, 11, 14, 18, 100, 12345)), *(row[0] for row in AMBIGUOUS.values())]
)
async def test_no_text_names_a_method_of_the_wire(answer: UpstreamAnswer) -> None:
    for call in (reading, writing):
        _, _, error = await failed(call, answer)
        assert "getResellerInfo" not in error.message and "affectPackage" not in error.message


async def test_a_second_answer_saves_a_read() -> None:
    for first in (raw(b"", 502), reply(code=3), reply(code=18), reply(code=100), broken(httpx.ReadTimeout(""))):
        there = upstream(first, reply("getResellerInfo", {"id": 7}))
        assert await there.ocs().reseller.get_reseller_info() == {"id": 7}
        assert len(there.requests) == 2


async def test_the_traffic_limit_is_waited_out_by_reads_and_told_to_writers() -> None:
    told, reads, error = await failed(reading, reply(code=100))
    assert (told, reads, error.headers) == (Told(100, False, True, "ocs_error"), 2, {"Retry-After": "1"})
    told, writes, error = await failed(writing, reply(code=100))
    assert (told, writes, error.headers) == (Told(100, False, True, "ocs_error"), 1, {"Retry-After": "1"})


REPEAT = [1, 5, 7, 8, 9, 13, 15, 16, 19, 12345]
INPUT, STATE = [2, 10, 10001, 10003, 10004], [4, 12, 14, 10002]
WRITES = (
    dict.fromkeys(REPEAT, (502, "ocs_error")) | dict.fromkeys(INPUT, (400, "invalid_request")) | dict.fromkeys(STATE, (409, "conflict"))
)


@pytest.mark.parametrize("code", WRITES)
async def test_a_business_refusal_is_final_and_speaks_our_words(code: int) -> None:
    for call, (status, word) in ((reading, (502, "ocs_error")), (writing, WRITES[code])):
        told, times, error = await failed(call, reply(code=code, msg=HOSTILE))
        assert (told, times, error.status) == (Told(code, False, False, word), 1, status)
        assert error.body("req_1")["ocs_code"] == code


async def test_a_server_fault_is_asked_once_more_by_reads_only() -> None:
    assert (await failed(reading, reply(code=3)))[1] == 2
    assert (await failed(writing, reply(code=3)))[:2] == (Told(3, False, False, "ocs_error"), 1)


@pytest.mark.parametrize("code", [6, 11, "6"])
async def test_what_does_not_exist_or_is_not_ours_can_be_told_apart_from_other_errors(code: int | str) -> None:
    told, times, error = await failed(reading, reply(code=code))
    assert isinstance(error, OcsNotFound)
    assert (told, times, error.status) == (Told(int(code), False, False, "ocs_error"), 1, 502)
    told, times, error = await failed(writing, reply(code=code))
    assert isinstance(error, OcsNotFound)
    assert (told, times, error.status) == (Told(int(code), False, False, "invalid_request"), 1, 400)


async def test_a_line_at_its_end_of_life_is_a_conflict() -> None:
    there = upstream(reply(code="17", msg=HOSTILE))
    with pytest.raises(Conflict) as caught:
        await writing(there.ocs())
    body = caught.value.body("req_1")
    assert (caught.value.status, body["code"], len(there.requests)) == (409, "subscriber_end_of_life", 1)
    assert HOSTILE not in str(body)


@pytest.mark.parametrize(
    ("code", "payload", "details"),
    [
        (10001, {"invalidTadigs": ["ZZZZ9", 7]}, {"invalidTadigs": ["ZZZZ9"]}),
        (10002, {"existingLZ": {"Id": 2301, "name": "Nordics", "secret": 1}}, {"existingLZ": {"Id": 2301, "name": "Nordics"}}),
        (10004, None, None),
    ],
)
async def test_the_refusals_of_a_zone_keep_what_they_name(code: int, payload: object, details: object) -> None:
    there = upstream(reply("createLocationZone", payload, code=code))
    with pytest.raises(OcsError) as caught:
        await there.ocs().zones.create_location_zone(1, "Nordics", ["ZZZZ9"])
    assert (caught.value.ocs_code, caught.value.details) == (code, details)


async def test_an_unknown_zone_method_points_at_the_setting() -> None:
    there = upstream(reply(code=1))
    with pytest.raises(OcsError, match="therefore a setting"):
        await there.ocs().zones.change_network_profile(1, 2)


async def test_the_other_spelling_of_the_status_text_is_no_error() -> None:
    there = upstream(raw(b'{"getResellerInfo":{"id":"7001"},"status":{"code":"0","message":"fine"}}'))
    assert await there.ocs().reseller.get_reseller_info() == {"id": 7001}


async def test_a_number_that_no_wire_holds_is_refused_before_it_is_sent() -> None:
    there = upstream()
    with pytest.raises(BadRequest, match="64 bits"):
        await there.ocs().packages.delete(1 << 70)
    assert there.requests == []


async def test_foreign_words_and_tokens_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in (reply(code=2, msg=HOSTILE), raw(HOSTILE.encode()), reply("getResellerInfo", {"id": HOSTILE})):
        with pytest.raises(Refusal):
            await reading(upstream(answer).ocs(token="s3cret"))
    assert "getResellerInfo" in caplog.text
    assert HOSTILE not in caplog.text
    assert "s3cret" not in caplog.text


async def overdue(ocs: Ocs) -> tuple[bool, bool, str | None]:
    with pytest.raises(OcsError) as caught:
        await writing(ocs)
    return caught.value.before_execution, caught.value.outcome_unknown, caught.value.error_code


async def test_a_call_that_finds_no_place_in_time_was_surely_not_sent() -> None:
    there, places = upstream(), TokenPlaces(Places(1), ManualClock())
    there.gate = anyio.Event()
    ocs = there.ocs(OcsSettings(URL, total_seconds=0.05), places=places)
    give_back = await places.take("somebody else")
    assert await overdue(ocs) == (True, False, "ocs_timeout")
    assert there.requests == []
    give_back()
    assert await overdue(ocs) == (False, True, "ocs_timeout")
    assert len(there.requests) == 1


async def test_no_more_calls_are_under_way_than_the_setting_says() -> None:
    there = upstream(reply("getResellerInfo", {"id": 1}))
    there.gate = anyio.Event()
    ocs = there.ocs(OcsSettings(URL, concurrency=3))
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(reading, ocs)
        await anyio.wait_all_tasks_blocked()
        assert len(there.requests) == 3
        there.gate.set()
    assert (len(there.requests), there.most_at_once) == (10, 3)


async def test_a_token_that_no_header_can_carry_is_refused_without_a_call() -> None:
    there = upstream()
    settings = OcsSettings(URL, auth="bearer")
    for token in ("line\r\nbreak", "tök"):
        ocs = Ocs(OcsLink(there.outbound(), settings, token, ManualClock()))
        with pytest.raises(OcsError, match="no request can carry") as caught:
            await reading(ocs)
        assert token not in str(caught.value)
    assert there.requests == []
