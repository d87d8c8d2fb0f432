"""POST /v1/connectivity/events/observe."""

from typing import Any, NamedTuple

import httpx
import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from storage.engine.sql import Query
from storage.sightings import NetworkEventTable
from tests.connectivity.requests import events, issued
from tests.world import World

SEEN = NetworkEventTable.table
OBSERVE = "/v1/connectivity/events/observe"
ATTACH = "esim.first_attach"


class Kept(NamedTuple):
    iccid: str
    bridge_type: str
    mcc: str | None
    mnc: str | None
    data: str


KEPT = Query(Kept, sa.select(*(SEEN.c[name] for name in Kept._fields)))


async def observe(bridge: httpx.AsyncClient, bridge_type: str, **body: object) -> dict[str, Any]:
    answer = await bridge.post(OBSERVE, json={"bridge_type": bridge_type, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.rule("6.2")
async def test_the_first_country_of_an_esim_is_an_event(http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    intent = await issued(http)
    iccid = intent["esim"]["iccid"]
    answer = await observe(bridge, "network.attach", iccid=iccid, occurred_at="2027-01-15T11:59:00Z", data={"mcc": "208", "mnc": "01"})
    assert answer == {"ignored": False, "intent": intent["id"]}
    assert await events(http, ATTACH) == snapshot(
        [
            {
                "id": "evt_01mcckg2g0000000000000000g",
                "object": "connectivity.event",
                "type": "esim.first_attach",
                "livemode": False,
                "created": 1800014400,
                "data": {
                    "intent": "cni_01mcckg2g00000000000000009",
                    "iccid": "8999806986354554454",
                    "plan": "test_eu_1gb",
                    "mcc": "208",
                    "mnc": "01",
                    "country": "FR",
                },
            }
        ]
    )
    await observe(bridge, "location.update", iccid=iccid, data={"mcc": "262", "mnc": "02"})
    assert len(await events(http, ATTACH)) == 1


async def test_an_event_without_a_country_is_not_the_first(http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    for data in ({}, {"mcc": "901", "mnc": "28"}, {"mcc": "340", "mnc": "01"}, {"mnc": "01"}):
        assert (await observe(bridge, "network.attach", iccid=iccid, data=data))["ignored"] is False
    assert await events(http, ATTACH) == []
    await observe(bridge, "network.attach", iccid=iccid, data={"mcc": 340, "mnc": 1, "country": "GP"})
    assert [event["data"]["country"] for event in await events(http, ATTACH)] == ["GP"]


@pytest.mark.rule("4.1.15")
@pytest.mark.parametrize(
    "body",
    [
        {"bridge_type": "weather.report"},
        {"bridge_type": "weather.report", "iccid": "?", "data": {"deep": [1, {"er": None}]}, "more": True},
        {"bridge_type": "network.attach"},
        {"bridge_type": "network.attach", "imsi": "001010123456789"},
        {"bridge_type": "network.attach", "iccid": "8988303000000999999", "data": {"mcc": "208"}},
        {"bridge_type": "network.attach", "iccid": "not an iccid"},
    ],
)
async def test_what_is_not_ours_is_ignored(bridge: httpx.AsyncClient, body: dict[str, object]) -> None:
    answer = await bridge.post(OBSERVE, json=body)
    assert (answer.status_code, answer.json()) == (200, {"ignored": True})


async def test_members_that_a_newer_bridge_adds_are_skipped_and_not_kept(
    http: httpx.AsyncClient, bridge: httpx.AsyncClient, world: World
) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    body = {"imsi": "001010123456789", "cell": {"lac": 1}, "data": {"mcc": "208", "subscriber": "Jane Doe", "status": "Enable"}}
    assert (await observe(bridge, "esim.status", iccid=iccid, **body))["ignored"] is False
    # What is kept: no door shows it yet.
    kept = await world.store.read(lambda connection: connection.all(KEPT))
    assert kept == [Kept(iccid, "esim.status", "208", None, '{"mcc":"208","status":"Enable"}')]


async def test_a_packages_total_moves_the_usage_up_and_never_down(http: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    for used in (100_000_000, 850_000_000, 600_000_000, 850_000_000, 1_000_000_000):
        await observe(bridge, "package.usage", iccid=iccid, data={"used_bytes": used})
    told = [(event["data"]["threshold_percent"], event["data"]["used_mb"]) for event in await events(http, "usage.threshold_reached")]
    assert told == [(50, 850.0), (80, 850.0), (100, 1000.0)]
    assert await events(http, ATTACH) == []


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({"mcc": "20"}, "mcc"),
        ({"mcc": 12345}, "mcc"),
        ({"mcc": True}, "mcc"),
        ({"used_bytes": -1}, "used_bytes"),
        ({"country": "fr"}, "country"),
    ],
)
async def test_a_known_member_that_breaks_a_rule_is_named(
    http: httpx.AsyncClient, bridge: httpx.AsyncClient, data: dict[str, object], param: str
) -> None:
    iccid = (await issued(http))["esim"]["iccid"]
    answer = await bridge.post(OBSERVE, json={"bridge_type": "network.attach", "iccid": iccid, "data": data})
    assert (answer.status_code, answer.json()["param"]) == (400, f"data.{param}")
    assert await events(http, ATTACH) == []
