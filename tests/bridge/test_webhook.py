"""POST /v1/webhooks/bridge4ip: what a notification does, and how often."""

from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest

from registry.ports import SharedSecrets
from tests.bridge.conftest import BRIDGE
from tests.bridge.pushing import OK, PUSHES, countries, kept, place, push_signed, push_status, remembered, states
from tests.connectivity.requests import events, issued
from tests.network_facts import ICCID, INTERNAL
from tests.stage import opened_on_both
from tests.world import NOON, World, open_world

ATTACH = "esim.first_attach"
DAY = 86_400


async def push(bridge: httpx.AsyncClient, body: object) -> None:
    answer = await bridge.post(PUSHES, json=body)
    assert (answer.status_code, answer.json()) == (200, OK), answer.text


@pytest.mark.rule("6.6")
@pytest.mark.rule("6.7")
@pytest.mark.rule("4.9.4")
async def test_a_location_is_a_country_of_the_line_and_an_esims_first_attach(
    world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient
) -> None:
    intent = await issued(http)
    iccid = intent["esim"]["iccid"]
    await push(bridge, place(iccid, lac=4711, cellId=21, rat="LTE"))
    await push(bridge, place(iccid, 262, 2, "2027-01-15T11:59:30"))
    await push(bridge, place(iccid, 208, 10, "2027-01-15T11:59:15.250"))
    assert await countries(world, iccid) == ["DE", "FR"]
    assert [(row.bridge_type, row.mcc, row.mnc, row.data, row.occurred_at) for row in await kept(world)] == [
        ("location.update", "208", "01", '{"mcc":"208","mnc":"01"}', NOON - 60),
        ("location.update", "262", "02", '{"mcc":"262","mnc":"02"}', NOON - 30),
        ("location.update", "208", "10", '{"mcc":"208","mnc":"10"}', NOON - 44.75),
    ]
    told = await events(http, ATTACH)
    assert [(event["data"]["intent"], event["data"]["country"]) for event in told] == [(intent["id"], "FR")]


async def test_a_line_without_an_intent_has_a_history_too(world: World, bridge: httpx.AsyncClient) -> None:
    await push(bridge, place())
    assert (await countries(world), await kept(world)) == (["FR"], [])


async def test_a_network_of_no_known_country_enters_none(world: World, bridge: httpx.AsyncClient) -> None:
    await push(bridge, place(mcc=901, mnc=28))
    await push(bridge, place(mcc=340, mnc=None))
    assert await countries(world) == []


@pytest.mark.cases
@pytest.mark.parametrize("at", ["2099-01-01T00:00:00", "9999-12-31T23:59:59", None])
async def test_a_place_is_never_later_than_now(world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient, at: str | None) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    await push(bridge, place(iccid, at=at))
    assert [row.occurred_at for row in await kept(world)] == [NOON]


async def test_a_location_wakes_the_deliveries_and_a_state_or_an_unknown_shape_changes_no_country(
    world: World, bridge: httpx.AsyncClient
) -> None:
    woken: list[None] = []
    world.pipeline.deps = replace(world.pipeline.deps, wake_worker=lambda: woken.append(None))
    await push(bridge, {"weather": "fine"})
    assert woken == []
    await push(bridge, place())
    assert woken == [None]


@pytest.mark.rule("4.9.4")
async def test_a_profiles_state_is_kept_for_the_intent(world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    await push(bridge, push_status("Enable", iccid))
    assert [(row.bridge_type, row.iccid, row.data) for row in await kept(world)] == [("esim.status", iccid, '{"status":"Enable"}')]
    assert (await events(http, ATTACH), await countries(world, iccid)) == ([], [])


USAGE = {
    "subscriberPrepaidPackage": {
        "unitsBefore": 700,
        "unitsAfter": 900,
        "thresholdPercentage": "80",
        "thresholdUnits": "800",
        "subscriberPackageId": 5,
        "totalUnits": 1000,
        "subscriberId": 7,
        "subscriberIMSI": "001010123456789",
        "usageType": "DATA",
    }
}


@pytest.mark.cases
@pytest.mark.parametrize(
    "body",
    [
        USAGE,
        {},
        {"subscriberPrepaidPackage": 5},
        {"subscriberPrepaidPackage": [USAGE]},
        {"lowCredit": {"resellerId": 1, "balance": "1,50"}},
        {"deep": [1, {"er": None}], "token": "x"},
        push_status("Enable", "8988303000000999999"),
        push_status("Enable", "not an iccid"),
        push_status("Enable") | {"eid": None},
        push_status("Enable") | {"status": 5},
        push_status("Enable") | {"iccid": 5},
        push_status("E" * 65),
        push_status("Enable", "8" * 65),
        {"locationUpdate": None},
    ],
)
@pytest.mark.rule("4.9.4")
async def test_what_says_nothing_of_a_known_line_is_taken_and_not_kept(world: World, bridge: httpx.AsyncClient, body: object) -> None:
    await push(bridge, body)
    assert (await kept(world), await countries(world), await remembered(world)) == ([], [], 1)


@pytest.mark.cases
@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"5", b'"x"', b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 40, b'{"a":NaN}'])
async def test_what_is_no_json_object_is_a_400(world: World, bridge: httpx.AsyncClient, raw: bytes) -> None:
    answer = await bridge.post(PUSHES, content=raw, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")
    assert await remembered(world) == 0


@pytest.mark.cases
@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"mcc": "20"}, "mcc"),
        ({"mcc": 12345}, "mcc"),
        ({"mcc": True}, "mcc"),
        ({"mcc": None}, "mcc"),
        ({"mnc": "x"}, "mnc"),
        ({"iccid": "?"}, "iccid"),
        ({"iccid": None}, "iccid"),
        ({"at": "yesterday"}, "eventTimeUtc"),
        ({"at": "0001-01-01T00:00:00"}, "eventTimeUtc"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "eventTimeUtc"),
    ],
)
async def test_a_location_that_breaks_a_rule_is_named(world: World, bridge: httpx.AsyncClient, changed: dict[str, Any], param: str) -> None:
    answer = await bridge.post(PUSHES, json=place(**changed))
    assert (answer.status_code, answer.json()["param"]) == (400, f"locationUpdate.{param}")
    assert (await remembered(world), await countries(world)) == (0, [])


async def test_the_same_body_within_a_minute_counts_once(world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    for seconds in (0, 30, 29, 1, 59):
        world.clock.advance(seconds)
        await push(bridge, push_status("Enable", iccid))
    assert await states(world) == ["Enable", "Enable"]


async def test_enable_disable_enable_are_three_at_any_pace(world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    other = (await issued(http, "other"))["esim"]["iccid"]
    for pause in (0, 1, 61):
        for state in ("Enable", "Disable", "Enable", "Enable" if pause == 0 else "Disable"):
            await push(bridge, push_status(state, iccid))
            await push(bridge, push_status("Enable", other))
            world.clock.advance(pause)
    of_one = [row.data[11:-2] for row in await kept(world) if row.iccid == iccid]
    assert of_one[:3] == ["Enable", "Disable", "Enable"]
    assert of_one[-4:] == ["Enable", "Disable", "Enable", "Disable"]


async def test_a_location_sent_twice_counts_once_whatever_comes_between(
    world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient
) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    for at in ("11:58:00", "11:59:00", "11:58:00", "11:59:00"):
        await push(bridge, place(iccid, at=f"2027-01-15T{at}"))
    assert len(await kept(world)) == 2


async def test_a_signed_notification_counts_once_in_seven_days(world: World, http: httpx.AsyncClient, upstream: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    for id, seconds, count in [("m1", 0, 1), ("m1", 3600, 1), ("m2", 0, 2), ("m1", 7 * DAY - 3601, 2), ("m1", 1, 3)]:
        world.clock.advance(seconds)
        answer = await push_signed(upstream, world, push_status("Enable", iccid), id)
        assert (answer.status_code, answer.json()) == (200, OK)
        assert len(await kept(world)) == count, (id, seconds)


async def test_the_same_id_with_another_body_is_a_repetition(world: World, http: httpx.AsyncClient, upstream: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    for state in ("Enable", "Disable"):
        assert (await push_signed(upstream, world, push_status(state, iccid), "m1")).json() == OK
    assert await states(world) == ["Enable"]


async def test_what_is_older_than_seven_days_is_forgotten(world: World, bridge: httpx.AsyncClient) -> None:
    for number in range(30):
        await push(bridge, {"n": number})
    assert await remembered(world) == 30
    world.clock.advance(7 * DAY + 1)
    await push(bridge, {"n": 30})
    assert await remembered(world) == 1


async def test_a_failed_write_leaves_no_memory_of_the_push(world: World, http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    """A push that could not be kept is a 503, so that its sender may send it again."""
    await world.store.aclose()
    answer = await bridge.post(PUSHES, json=push_status("Enable"))
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")


either = opened_on_both(open_world, BRIDGE, faultless=True, secrets=SharedSecrets(internal=INTERNAL))


async def test_of_many_at_once_one_counts(either: World) -> None:
    async with either.client((await either.caller()).secret) as http, either.client(INTERNAL) as bridge:
        iccid = (await issued(http))["esim"]["iccid"]
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(push, bridge, push_status("Enable", iccid))
                tasks.start_soon(push, bridge, place(iccid))
        assert sorted(row.bridge_type for row in await kept(either)) == ["esim.status", "location.update"]
        assert await countries(either, iccid) == ["FR"]
        assert len(await events(http, ATTACH)) == 1
        assert await countries(either, ICCID) == []
