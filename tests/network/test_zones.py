"""Location zones: reading, making, and their network profile."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from tests.network.stage import NetworkStage

ZONE: dict[str, Any] = {"locationZoneName": "Two countries", "tadigList": ["noraa", "SWEAA", "NORAA"], "networkProfileId": 412}


async def make(stage: NetworkStage, **other: Any) -> int:
    said = await stage.http.post("/v1/location-zones", json={**ZONE, **other})
    assert said.status_code == 201, said.text
    return said.json()["data"]["id"]


@pytest.mark.rule("4.3.4")
async def test_zones_at_a_glance(stage: NetworkStage) -> None:
    rows = await stage.data("/v1/location-zones", limit=1)
    assert rows == snapshot([{"zoneId": 2301, "zoneName": "Nordics", "countries": ["DK", "FI", "IS", "NO", "SE"], "operatorCount": 16}])
    assert len(await stage.data("/v1/location-zones")) == 19


async def test_one_zone_s_networks_are_rows_of_the_upstream(stage: NetworkStage) -> None:
    rows = await stage.data("/v1/location-zones", locationZoneId=2312)
    assert rows[0] == snapshot(
        {
            "networkId": 1,
            "continent": "Europe",
            "countryCode": "47",
            "countryName": "Norway",
            "countryIso2": "no",
            "utcOffset": "+01:00",
            "operatorName": "Telenor",
            "mccMncs": [{"mcc": "242", "mnc": "01"}, {"mcc": "242", "mnc": "12"}],
            "tadigs": ["NORAA", "NORAB"],
        }
    )
    assert stage.calls("listLocationZoneElement") == [2312]


async def test_a_zone_whose_answer_is_malformed_is_read_from_the_detailed_list(stage: NetworkStage) -> None:
    broken = next(zone for zone in stage.network.zones.values() if zone.malformed)
    rows = await stage.data("/v1/location-zones", zoneId=broken.id)
    assert {row["networkId"] for row in rows} == set(broken.network_ids)


async def test_a_refusal_of_the_upstream_is_no_reason_to_fall_back(stage: NetworkStage) -> None:
    stage.world.sandbox.faults.add(NetworkFault("listLocationZoneElement", code=5))
    said = await stage.http.get("/v1/location-zones", params={"zoneId": 2301})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 5)


@pytest.mark.rule("4.3.6")
async def test_detailed_zones_are_compact_unless_they_are_asked_for_whole(stage: NetworkStage) -> None:
    compact = (await stage.data("/v1/location-zones/detailed", limit=1))[0]
    assert compact["operators"][0] == snapshot(
        {"networkId": 1, "operatorName": "Telenor", "countryIso2": "NO", "tadigs": ["NORAA", "NORAB"]}
    )
    page = await stage.data("/v1/location-zones/detailed", verbose="true", limit=2)
    whole = await stage.data("/v1/location-zones/detailed", verbose="true")
    assert whole[:2] == page
    assert len(whole) == 19
    assert whole[0]["operators"][0]["countryIso2"] == "no"


async def test_a_reseller_without_zones_passes_an_empty_array(stage: NetworkStage) -> None:
    stage.network.zones.clear()
    assert await stage.data("/v1/location-zones/detailed", verbose="true") == []
    assert await stage.data("/v1/location-zones") == []


@pytest.mark.rule("4.3.5")
async def test_a_new_zone_is_made_once_and_shown_at_once(stage: NetworkStage) -> None:
    assert len(await stage.data("/v1/location-zones")) == 19
    zone = await make(stage)
    assert stage.calls("createLocationZone") == [
        {"networkProfileId": 412, "locationZoneName": "Two countries", "tadigList": ["NORAA", "SWEAA"]}
    ]
    shown = (await stage.data("/v1/location-zones"))[-1]
    assert shown == {"zoneId": zone, "zoneName": "Two countries", "countries": ["NO", "SE"], "operatorCount": 2}


async def test_the_same_networks_again_name_the_zone_to_use(stage: NetworkStage) -> None:
    zone = await make(stage)
    said = await stage.http.post("/v1/location-zones", json={**ZONE, "locationZoneName": "Again"})
    assert said.status_code == 409
    assert said.json() | {"request_id": "", "details": None} == snapshot(
        {
            "error": "A zone with the very same networks exists; `details` names it. Use that zone.",
            "code": "conflict",
            "request_id": "",
            "param": "tadigList",
            "hint": "Use the zone in details.existingLZ (its Id is the locationZoneId), or name other networks",
            "ocs_code": 10002,
            "details": None,
        }
    )
    assert said.json()["details"] == {"existingLZ": {"Id": zone, "name": "Two countries"}}


async def test_unknown_networks_are_listed(stage: NetworkStage) -> None:
    said = await stage.http.post("/v1/location-zones", json={**ZONE, "tadigList": ["NORAA", "zzzz9"]})
    assert (said.status_code, said.json()["details"]) == (400, {"invalidTadigs": ["ZZZZ9"]})


@pytest.mark.rule("4.3.7")
async def test_a_zone_of_ones_own_gets_another_profile(stage: NetworkStage) -> None:
    zone = await make(stage)
    said = await stage.confirmed(f"/v1/location-zones/{zone}/network-profile", {"networkProfileId": 414})
    assert said.json() == {"data": {"locationZoneId": zone, "networkProfileId": 414}}
    assert stage.network.zones[zone].profile_id == 414


async def test_a_shared_zone_is_read_only(stage: NetworkStage) -> None:
    shared = await stage.confirmed("/v1/location-zones/2312/network-profile", {"networkProfileId": 414})
    assert (shared.status_code, shared.json()["param"]) == (404, "locationZoneId")
    zone = await make(stage)
    beside = await stage.neighbour.put(f"/v1/location-zones/{zone}/network-profile", json={"networkProfileId": 414})
    assert beside.status_code == 404
    assert stage.calls("changeNetworkProfileOfLocationZone") == []


async def test_a_server_that_does_not_know_the_method_leads_to_the_setting(stage: NetworkStage) -> None:
    zone = await make(stage)
    stage.world.sandbox.faults.add(NetworkFault("changeNetworkProfileOfLocationZone", code=1))
    said = await stage.confirmed(f"/v1/location-zones/{zone}/network-profile", {"networkProfileId": 414})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 1)
    assert "SERVICE_OCS_ZONE_METHOD" in said.json()["error"]


async def test_an_own_token_changes_what_it_sees(stage: NetworkStage) -> None:
    body = {"networkProfileId": 415}
    asked = await stage.own.put("/v1/location-zones/2323/network-profile", json=body)
    assert asked.status_code == 202, asked.text
    token = asked.json()["confirm_token"]
    said = await stage.own.put("/v1/location-zones/2323/network-profile", json=body, headers={"X-Confirm-Token": token})
    assert said.status_code == 200
