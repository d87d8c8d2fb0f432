"""Answers as servers write them: missing lists, irregular kinds, decimal commas."""

import pytest

from clients.ocs.wire_schema import balance_amount, parse_nothing
from registry.errors import OcsError
from tests.clients.ocs.examples import FIRST_DAY, WireCase
from tests.clients.ocs.table import CASES
from tests.clients.ocs.upstream import reply, upstream
from tests.network_facts import ICCID


def as_it_came(value: object) -> object:
    return value


LISTS = [case for case in CASES if isinstance(case.expected(), list)]


@pytest.mark.parametrize("case", LISTS, ids=lambda case: case.method)
async def test_a_list_that_is_missing_or_null_is_empty(case: WireCase) -> None:
    empties = [None, {}] if isinstance(case.payload, dict) else [None]
    answers = [reply(), *(reply(case.key, empty) for empty in empties)]
    if isinstance(case.payload, dict):
        answers.append(reply(case.key, dict.fromkeys(case.payload)))
    for answer in answers:
        assert await case.call(upstream(answer).ocs()) == []


@pytest.mark.parametrize("case", LISTS, ids=lambda case: case.method)
async def test_a_list_of_something_else_is_unreadable(case: WireCase) -> None:
    wrong = [["row"], "rows", 7, [[]]]
    for payload in wrong:
        inside = dict.fromkeys(case.payload, payload) if isinstance(case.payload, dict) else payload
        with pytest.raises(OcsError):
            await case.call(upstream(reply(case.key, inside)).ocs())


async def test_lists_inside_an_answer_are_filled_in() -> None:
    ocs = upstream(reply()).ocs()
    assert await ocs.packages.list_packages(1) == {"packages": [], "recurring": []}
    assert await ocs.packages.list_packages(1, version="v1") == {"packages": []}
    assert await ocs.subscriber.list_subscriber(1) == {"subscriberList": []}
    assert await ocs.zones.destination_list_prefixes(1) == {"prefixes": []}
    assert await ocs.statistics.active_period(1) == {}
    events = await ocs.statistics.network_events_over_period(1, FIRST_DAY, FIRST_DAY)
    assert events == {"mapAnswer": {"events": []}, "s6aAnswer": {"events": []}, "gyAnswer": {"events": []}}
    assert await ocs.statistics.usage_over_period(1, FIRST_DAY, FIRST_DAY) == {"total": {"quantityPerCountry": []}, "usages": []}


async def test_a_place_or_a_counter_may_be_missing() -> None:
    ocs = upstream(reply()).ocs()
    assert await ocs.subscriber.get_location(1) is None
    assert await ocs.subscriber.reset_gz_counter(1) is None


async def test_an_older_server_answers_a_reset_with_the_counter() -> None:
    ocs = upstream(reply("resetSubsGzCounter", {"subscriberId": 1, "volumeOnGZ": 0})).ocs()
    assert await ocs.subscriber.reset_gz_counter(1) == {"subscriberId": 1, "volumeOnGZ": 0}


async def test_ids_may_come_as_strings_and_null_members_are_dropped() -> None:
    sim = {"id": "760112", "status": "FREE"}
    line = {"subscriberId": "910045", "accountId": 8101.0, "sim": sim, "networkInfo": None, "imsiList": None, "status": [{}]}
    ocs = upstream(reply("getSingleSubscriber", line)).ocs()
    found = await ocs.subscriber.get_single_subscriber(910045)
    assert found == {"subscriberId": 910045, "accountId": 8101, "sim": {"id": 760112, "status": "FREE"}, "status": [{}]}


@pytest.mark.parametrize(
    "line",
    [
        {"subscriberId": "x"},
        {"subscriberId": True},
        {"subscriberId": 1.5},
        {"subscriberId": "9" * 30},
        {"subscriberId": 1, "status": {}},
        {"subscriberId": 1, "status": [None]},
        {"subscriberId": 1, "sim": []},
        {"accountId": 1},
    ],
)
async def test_a_line_that_breaks_what_we_rely_upon_is_unreadable(line: object) -> None:
    for method, payload in (("getSingleSubscriber", line), ("listSubscriber", {"subscriberList": [line]})):
        ocs = upstream(reply(method, payload)).ocs()
        call = ocs.subscriber.get_single_subscriber if method == "getSingleSubscriber" else ocs.subscriber.list_subscriber
        with pytest.raises(OcsError):
            await call(1)


async def test_a_count_of_moved_lines_must_be_a_number() -> None:
    ocs = upstream(reply("moveSubscriberRangeToAccount", "many")).ocs()
    with pytest.raises(OcsError) as caught:
        await ocs.subscriber.move_range("ICCID", ICCID, ICCID, source=1, destination=2)
    assert caught.value.outcome_unknown


async def test_the_raw_call_hands_out_the_payload_as_it_came() -> None:
    ocs = upstream(reply("anyMethod", [1, None, {"a": "b"}])).ocs()
    assert await ocs.link.read("anyMethod", {}, as_it_came) == [1, None, {"a": "b"}]
    assert await ocs.link.write("anyMethod", 7, parse_nothing, key="elsewhere") is None


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1530,20", 1530.20),
        ("1530.20", 1530.20),
        ("1.530,20", 1530.20),
        ("1 530,20", 1530.20),
        ("-3,5", -3.5),
        (12.5, 12.5),
        (7, 7.0),
        ("", None),
        ("lots", None),
        ("nan", None),
        ("inf", None),
        (None, None),
        (True, None),
    ],
)
def test_a_balance_is_read_with_comma_or_dot(text: str | float | None, amount: float | None) -> None:
    assert balance_amount(text) == amount
