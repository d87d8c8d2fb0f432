"""Every method of the wire: sent as documented, its documented answer understood."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from clients.ocs.client import Ocs
from clients.ocs.link import OcsSettings
from clients.ocs.packages import Period
from clients.ocs.times import parse_wire_time, wire_time
from tests.clients.ocs.examples import AFFECTED, LINE_ROW, NESTED, TEMPLATE_ROW, WireCase
from tests.clients.ocs.sources import CLIENT_READS, CLIENT_WRITES
from tests.clients.ocs.table import CASES
from tests.clients.ocs.upstream import URL, reply, upstream
from tests.faults.rows import ROWS
from tests.network_facts import ICCID

L = 910045


def named(case: WireCase) -> str:
    return case.method


def test_every_write_has_a_case_and_every_read_has_one_or_is_called_by_an_operation_whose_calls_are_proved() -> None:
    methods = [case.method for case in CASES]
    assert len(set(methods)) == len(methods)
    assert CLIENT_WRITES <= {*methods} <= CLIENT_READS | CLIENT_WRITES
    assert {*methods, *(method for row in ROWS for method in row.uses)} >= CLIENT_READS


@pytest.mark.parametrize("case", CASES, ids=named)
async def test_a_method_is_sent_as_documented_and_its_answer_is_understood(case: WireCase) -> None:
    there = upstream(reply(case.key or None, case.payload))
    assert await case.call(there.ocs()) == case.expected()
    assert there.bodies == [{case.method: case.sent}]


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case.expected(), dict)], ids=named)
async def test_members_that_nobody_knows_survive(case: WireCase) -> None:
    payload = dict(case.payload) if isinstance(case.payload, dict) else {}
    if "newLZ" in payload:
        payload["newLZ"] = {**payload["newLZ"], "later": {"deep": [1]}}
    there = upstream(reply(case.key, {**payload, "later": {"deep": [1]}}))
    found = await case.call(there.ocs())
    assert isinstance(found, dict)
    assert found["later"] == {"deep": [1]}


async def sent(
    call: Callable[[Ocs], Awaitable[object]], key: str | None = None, payload: object = None, settings: OcsSettings | None = None
):
    there = upstream(reply(key, payload))
    await call(there.ocs(settings))
    (request,), (body,) = there.requests, there.bodies
    return request.url.path, body


async def test_a_package_is_put_on_a_line_for_exact_dates() -> None:
    window: Period = {"start": "2026-09-01T00:00:00", "end": "2026-10-01T00:00:00"}
    _, body = await sent(
        lambda ocs: ocs.packages.affect_to_subscriber(55010, L, active_period=window), "affectPackageToSubscriber", AFFECTED
    )
    assert body == {"affectPackageToSubscriber": {"packageTemplateId": 55010, **NESTED, "activePeriod": window}}


async def test_a_series_starts_at_a_time_in_utc() -> None:
    start = datetime(2026, 9, 1, 2, 30, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    _, body = await sent(lambda ocs: ocs.packages.affect_recurring(55020, L, start=start), "affectRecurringPackageToSubscriber", {})
    expected = {"packageTemplateId": 55020, **NESTED, "startTimeUTC": "2026-09-01T00:30:00"}
    assert body == {"affectRecurringPackageToSubscriber": expected}


async def test_a_balance_is_set_only_when_asked() -> None:
    _, body = await sent(lambda ocs: ocs.subscriber.modify_balance(L, 0, set_balance=True))
    assert body == {"modifySubscriberBalance": {**NESTED, "amount": 0, "setBalance": True}}


async def test_a_plan_or_list_is_removed_by_leaving_it_out() -> None:
    assert (await sent(lambda ocs: ocs.packages.modify_voip_plan(L, None)))[1] == {"modifySubscriberVoipPlan": {"subscriberId": LINE_ROW}}
    assert (await sent(lambda ocs: ocs.subscriber.modify_steering_list(L, None)))[1] == {"modifySubscriberSteeringList": NESTED}


async def test_the_second_version_is_reached_by_the_last_segment_of_the_path() -> None:
    path, _ = await sent(lambda ocs: ocs.packages.list_packages(L))
    assert path == "/ocs-custo/main/v2"
    path, body = await sent(
        lambda ocs: ocs.subscriber.move_range("IMSI", "1", "2", source=3, destination=4, destination_profile=5),
        "moveSubscriberRangeToAccount",
        "7",
        OcsSettings("https://ocs.example/v1/"),
    )
    assert path == "/v2/"
    assert body == {
        "moveSubscriberRangeToAccount": {
            "rangeType": "IMSI",
            "rangeStart": "1",
            "rangeEnd": "2",
            "srcAccountId": 3,
            "destAccount": 4,
            "destNetworkProfileId": 5,
        }
    }


async def test_an_older_server_gets_the_older_names_of_an_expiry() -> None:
    old = OcsSettings(URL, legacy_expiry=True)
    moment = datetime(2026, 9, 1, tzinfo=UTC)
    _, now = await sent(lambda ocs: ocs.packages.modify_exp_date(1, new_expiration=moment))
    _, before = await sent(lambda ocs: ocs.packages.modify_exp_date(1, new_expiration=moment, validity_days=9), settings=old)
    assert now == {"modifySubscriberPrepaidPackageExpDate": {"packageId": 1, "newExpirationDate": "2026-09-01T00:00:00"}}
    assert before == {"modifySubscriberPrepaidPackageExpDate": {"packageId": 1, "newDateUtc": "2026-09-01T00:00:00", "newPeriod": 9}}


async def test_the_undocumented_method_is_named_by_the_settings() -> None:
    ours = replace(OcsSettings(URL), zone_method="setZoneProfile", zone_key="zone", profile_key="profile")
    assert (await sent(lambda ocs: ocs.zones.change_network_profile(1, 2), settings=ours))[1] == {
        "setZoneProfile": {"zone": 1, "profile": 2}
    }


async def test_only_the_filters_given_are_sent() -> None:
    empty, one = {"template": None}, {"template": [TEMPLATE_ROW]}
    assert (await sent(lambda ocs: ocs.templates.list(), "listPrepaidPackageTemplate", empty))[1] == {"listPrepaidPackageTemplate": {}}
    _, body = await sent(lambda ocs: ocs.templates.list(template_id=3), "listPrepaidPackageTemplate", one)
    assert body == {"listPrepaidPackageTemplate": {"templateId": 3}}


async def test_lines_are_searched_by_prefix() -> None:
    _, body = await sent(lambda ocs: ocs.subscriber.list_subscriber(ICCID[:13], by="iccidPrefix"))
    assert body == {"listSubscriber": {"iccidPrefix": ICCID[:13]}}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Hi there", "Hi there"),
        ("Привет", "\\u041F\\u0440\\u0438\\u0432\\u0435\\u0442"),
        ("é😀", "\\u00E9\\uD83D\\uDE00"),
        ("C:\\u0041 \\u", "C:\\u005Cu0041 \\u"),
    ],
)
async def test_an_sms_leaves_as_plain_characters(text: str, written: str) -> None:
    _, body = await sent(lambda ocs: ocs.messages.send_mt_sms(text, sender_id="Fjord", msisdn="4790000001"))
    assert body == {"sendMtSms": {"msisdn": "4790000001", "text": written, "senderId": "Fjord"}}


@pytest.mark.parametrize("text", ["2026-02-01T10:00:00", "2026-02-01T10:00:00.25", "2026-02-01T11:00:00.000+01:00", "2026-02-01 10:00:00"])
def test_times_are_read_in_all_spellings(text: str) -> None:
    assert wire_time(parse_wire_time(text)) == "2026-02-01T10:00:00"
