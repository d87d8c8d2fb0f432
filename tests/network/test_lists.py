"""Steering lists, destination lists, network profiles, VoIP plans."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.upstream.steering_lists import render_steering_list
from tests.network.stage import NetworkStage


@pytest.mark.rule("4.3.1")
async def test_the_steering_lists_come_with_their_names(stage: NetworkStage) -> None:
    assert await stage.data("/v1/steering-lists") == snapshot(
        [
            {"id": 17, "resellerId": 7001, "name": "Nordic first", "networks": None, "networksKnown": False},
            {"id": 18, "resellerId": 7001, "name": "Cheapest in Europe", "networks": None, "networksKnown": False},
            {"id": 19, "resellerId": 7001, "name": "Best coverage worldwide", "networks": None, "networksKnown": False},
            {"id": 20, "resellerId": 7001, "name": "DACH partners", "networks": None, "networksKnown": False},
        ]
    )


async def test_a_charging_system_that_tells_the_networks_of_a_list_is_repeated(stage: NetworkStage) -> None:
    stage.network.tells_more = True
    rows = await stage.data("/v1/steering-lists")
    assert [(row["name"], row["networksKnown"], len(row["networks"])) for row in rows] == snapshot(
        [("Nordic first", True, 5), ("Cheapest in Europe", True, 33), ("Best coverage worldwide", True, 68), ("DACH partners", True, 3)]
    )
    assert rows[0]["networks"][:2] == snapshot(
        [
            {"operatorName": "Telenor", "countryIso2": "NO", "tadigs": ["NORAA", "NORAB"]},
            {"operatorName": "Telia", "countryIso2": "SE", "tadigs": ["SWEAA"]},
        ]
    )
    assert [len(row["operators"]) for row in rows] == [len(row["networks"]) for row in rows]


def test_what_is_no_list_of_networks_is_passed_on_and_not_understood() -> None:
    for told in (7, "NORAA", ["NORAA"], [{"tadigs": ["NORAA"]}], [{"countryIso2": "no"}, {"countryIso2": 47}], {"no": ["NORAA"]}):
        row: Any = {"id": 17, "name": "Nordic first", "operators": told}
        assert render_steering_list(row) == {**row, "networks": None, "networksKnown": False}
    empty: Any = {"id": 17, "operators": []}
    assert render_steering_list(empty) == {"id": 17, "operators": [], "networks": [], "networksKnown": True}


async def test_a_page_names_the_next_one(stage: NetworkStage) -> None:
    first = await stage.http.get("/v1/steering-lists", params={"limit": 3})
    assert first.headers["link"] == '</v1/steering-lists?limit=3&starting_after=19>; rel="next"'
    assert await stage.data("/v1/steering-lists", limit=3, starting_after=19) == [
        {"id": 20, "resellerId": 7001, "name": "DACH partners", "networks": None, "networksKnown": False}
    ]


async def test_a_list_is_asked_for_once_a_minute(stage: NetworkStage) -> None:
    await stage.data("/v1/steering-lists")
    await stage.data("/v1/steering-lists")
    assert len(stage.calls("listSteeringList")) == 1
    stage.world.clock.advance(61)
    await stage.data("/v1/steering-lists")
    assert len(stage.calls("listSteeringList")) == 2


@pytest.mark.rule("4.3.1")
async def test_lists_that_are_null_upstream_are_empty_arrays(stage: NetworkStage) -> None:
    del stage.network.steering[17], stage.network.steering[18], stage.network.steering[19], stage.network.steering[20]
    assert await stage.data("/v1/steering-lists") == []


@pytest.mark.rule("4.3.2")
async def test_destination_lists_have_their_prefixes(stage: NetworkStage) -> None:
    rows = await stage.data("/v1/destination-lists")
    assert [(row["listId"], row["listName"], len(row["prefixes"])) for row in rows] == snapshot(
        [(64, "Home", 1), (65, "Europe fixed and mobile", 12), (66, "Reserved", 0)]
    )


@pytest.mark.rule("4.3.3")
async def test_the_prefixes_of_a_list_and_of_all(stage: NetworkStage) -> None:
    assert await stage.data("/v1/destination-prefixes", destinationListId=64) == snapshot(
        {"listId": 64, "listName": "Home", "resellerId": 7001, "prefixes": ["47"]}
    )
    merged = await stage.data("/v1/destination-prefixes")
    assert (merged["listId"], len(merged["prefixes"])) == (None, 13)


@pytest.mark.rule("4.3.8")
async def test_profiles_are_filtered_by_sponsor(stage: NetworkStage) -> None:
    rows = await stage.data("/v1/network-profiles", sponsorId=31)
    assert [(row["id"], row["sponsorId"]) for row in rows] == [(412, 31), (414, 31)]


@pytest.mark.rule("4.3.17")
async def test_deleted_voip_plans_are_left_out(stage: NetworkStage) -> None:
    assert [row["id"] for row in await stage.data("/v1/voip-tariffs")] == [92, 93]


@pytest.mark.rule("4.3.18")
async def test_voip_prices_have_dates_with_a_zone(stage: NetworkStage) -> None:
    assert await stage.data("/v1/voip-tariffs/92/rules", limit=1) == snapshot(
        [{"prefix": "1", "country": "UNITED STATES", "price": 0.009, "fromdate": "2025-11-21T00:00:00Z"}]
    )


@pytest.mark.cases
@pytest.mark.parametrize("plan", [94, 95, 9500])
async def test_deleted_foreign_and_unknown_voip_plans_are_not_found(stage: NetworkStage, plan: int) -> None:
    said = await stage.http.get(f"/v1/voip-tariffs/{plan}/rules")
    assert (said.status_code, said.json()["param"]) == (404, "voipPlanId")
    assert stage.calls("listVoipTariffRule") == []
