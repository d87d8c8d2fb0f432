"""Package templates: reading and making them."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.network.stage import NetworkStage

NEW: dict[str, Any] = {"name": "Mine", "locationZoneId": 2301, "validityDays": 30}
THROTTLED = {"throttlingActive": True, "throttlingThreshold1Perc": 80, "throttlingThreshold1Limit": 512, "throttlingErrorAction": 1}
WEEKLY = {
    "recurring": True,
    "recurringPeriodicityType": 1,
    "recurringPeriodicityFrequency": 2,
    "reportUnitsPreviousPackage": True,
    "nbOccurrence": 4,
}


async def ids(stage: NetworkStage, **query: Any) -> list[int]:
    return [row["templateId"] for row in await stage.data("/v1/package-templates", fields="templateId", **query)]


@pytest.mark.rule("4.3.13")
async def test_a_template_carries_the_id_that_other_operations_take(stage: NetworkStage) -> None:
    assert (await stage.data("/v1/package-templates", limit=1))[0] == snapshot(
        {
            "templateId": 55010,
            "sponsors": {"sponsorid": 31, "sponsorname": "SPX", "displayname": "SPX Roaming"},
            "reseller": {"resellerid": 7001, "resellername": "Fjord Mobile"},
            "rdbLocationZones": {"locationzoneid": 2301, "locationzonename": "Nordics"},
            "prepaidpackagetemplateid": 55010,
            "prepaidpackagetemplatename": "Nordic 1GB 30d",
            "resellerid": 7001,
            "priority": 1,
            "locationzoneid": 2301,
            "databyte": 1073741824,
            "perioddays": 30,
            "deleted": False,
            "cost": 4.5,
            "uiVisible": True,
        }
    )


async def test_deleted_templates_are_shown_on_request(stage: NetworkStage) -> None:
    assert 55041 not in await ids(stage)
    assert 55041 in await ids(stage, includeDeleted="true")
    assert (await stage.http.get("/v1/package-templates", params={"templateId": 55041})).status_code == 404


@pytest.mark.long
async def test_one_selector_narrows_the_list(stage: NetworkStage) -> None:
    assert await ids(stage, templateId=55012) == [55012]
    assert await ids(stage, locationZoneId=2312) == [55012]
    assert await ids(stage, destinationListId=64) == [55030]
    assert await ids(stage, resellerId=7001) == await ids(stage)
    assert 55036 in await ids(stage, sponsorId=32)
    assert stage.calls("listPrepaidPackageTemplate")[1] == {"locationZoneId": 2312}


async def test_two_selectors_are_refused(stage: NetworkStage) -> None:
    said = await stage.http.get("/v1/package-templates", params={"templateId": 55010, "resellerId": 7001})
    assert said.status_code == 400
    assert stage.world.sandbox.calls == []


@pytest.mark.rule("4.3.13")
async def test_a_new_template_is_listed_at_once(stage: NetworkStage) -> None:
    before = await ids(stage)
    template = await stage.new_template()
    assert await ids(stage) == [*before, template]
    assert stage.calls("createPrepaidPackageTemplate") == snapshot(
        [
            {
                "prepaidpackagetemplatename": "Mine",
                "locationzoneid": 2301,
                "perioddays": 30,
                "databyte": 1073741824,
                "cost": 4.5,
                "throttlingActive": False,
                "recurring": False,
                "resellerid": 7001,
            }
        ]
    )


async def test_all_groups_go_upstream(stage: NetworkStage) -> None:
    said = await stage.http.post("/v1/package-templates", json={**NEW, **THROTTLED, **WEEKLY, "destinationListId": 64, "mocLimit": 60})
    assert said.status_code == 201
    made = said.json()["data"]
    assert {name: made[name] for name in (*THROTTLED, *WEEKLY)} == THROTTLED | WEEKLY
    assert (made["destinationzoneid"], made["mocsecond"], made["zone"]["locationZoneName"]) == (64, 60, "Nordics")


async def test_the_wire_s_own_names_are_taken(stage: NetworkStage) -> None:
    said = await stage.http.post(
        "/v1/package-templates",
        json={"prepaidpackagetemplatename": "Raw", "locationzoneid": 2301, "perioddays": 7, "databyte": 1, "mosmsnumber": 2},
    )
    assert said.status_code == 201
    made = said.json()["data"]
    assert (made["prepaidpackagetemplatename"], made["perioddays"], made["databyte"], made["mosmsnumber"]) == ("Raw", 7, 1, 2)


async def test_the_reseller_is_never_the_caller_s_to_say(stage: NetworkStage) -> None:
    said = await stage.http.post("/v1/package-templates", json={**NEW, "resellerid": 7002})
    assert (said.status_code, said.json()["code"]) == (400, "unknown_field")


async def test_a_template_against_the_rules_reaches_nothing(stage: NetworkStage) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"throttlingThreshold1Perc": 80}, "throttlingThreshold1Limit: missing"),
        ({"throttlingThreshold4Limit": 512}, "throttlingThreshold4Perc: missing"),
        ({**THROTTLED, "throttlingErrorAction": None}, "throttlingErrorAction: missing"),
        ({"throttlingActive": True, "throttlingErrorAction": 0}, "throttlingThreshold1Perc: missing"),
        ({**WEEKLY, "nbOccurrence": None}, "nbOccurrence: missing"),
        ({"recurring": True}, "recurringPeriodicityType: missing"),
        ({**WEEKLY, "recurring": False}, "recurring is false"),
    ]
    for wrong, text in cases:
        said = await stage.http.post("/v1/package-templates", json={**NEW, **wrong})
        assert (said.status_code, text in said.json()["error"]) == (400, True), said.text
    assert stage.world.sandbox.calls == []


async def test_a_monthly_template_may_be_endless(stage: NetworkStage) -> None:
    said = await stage.http.post("/v1/package-templates", json={**NEW, **WEEKLY, "recurringPeriodicityType": 2, "nbOccurrence": None})
    assert said.status_code == 201


async def test_a_zone_made_a_moment_ago_can_be_used(stage: NetworkStage) -> None:
    await stage.data("/v1/location-zones")
    made = await stage.neighbour.post(
        "/v1/location-zones", json={"locationZoneName": "Fresh", "tadigList": ["NORAA", "SWEAA"], "networkProfileId": 412}
    )
    said = await stage.http.post("/v1/package-templates", json={**NEW, "locationZoneId": made.json()["data"]["id"]})
    assert said.status_code == 201


async def test_a_name_that_is_taken_is_told(stage: NetworkStage) -> None:
    said = await stage.http.post("/v1/package-templates", json={**NEW, "name": "Nordic 1GB 30d"})
    assert (said.status_code, said.json()["ocs_code"]) == (409, 4)


async def test_templates_are_found_by_a_part_of_their_name(stage: NetworkStage) -> None:
    names = [row["prepaidpackagetemplatename"] for row in await stage.data("/v1/package-templates")]
    monthly = [name for name in names if "monthly" in name.casefold()]
    found = await stage.data("/v1/package-templates", q=" MONTHLY ")
    assert monthly and [row["prepaidpackagetemplatename"] for row in found] == monthly
    assert await stage.data("/v1/package-templates", q="no such name") == []
    assert await stage.data("/v1/package-templates", templateId=55012, q="no such name") == []
    assert (await stage.http.get("/v1/package-templates", params={"q": "  "})).status_code == 400
    assert all("q" not in call for call in stage.calls("listPrepaidPackageTemplate"))


async def names(stage: NetworkStage, **query: Any) -> list[str]:
    return [row["prepaidpackagetemplatename"] for row in await stage.data("/v1/package-templates", **query)]


async def test_templates_are_found_by_the_country_in_which_they_work(stage: NetworkStage) -> None:
    norwegian = await names(stage, country="no")
    assert {"Norway 10GB 30d", "Nordic 1GB 30d", "World 1GB 30d"} <= {*norwegian}
    assert not {"Baltics 2GB 15d", "Japan 3GB 15d"} & {*norwegian}
    assert await names(stage, country="UK") == await names(stage, country="GB") != []
    said = await stage.http.get("/v1/package-templates", params={"country": "ZZ"})
    assert (said.status_code, said.json()["param"]) == (400, "country")


async def test_templates_are_found_by_their_days_and_data(stage: NetworkStage) -> None:
    rows = await stage.data("/v1/package-templates")
    found = await stage.data("/v1/package-templates", minDays=15, maxDays=30, minDataBytes=5 << 30)
    assert found == [row for row in rows if 15 <= row["perioddays"] <= 30 and row["databyte"] >= 5 << 30] != []
    assert await stage.data("/v1/package-templates", min_days=0) == rows
    said = await stage.http.get("/v1/package-templates", params={"minDays": 8, "maxDays": 7})
    assert (said.status_code, said.json()["param"]) == (400, "minDays")


async def test_recurring_templates_are_found_by_what_was_answered_here_else_by_their_names(stage: NetworkStage) -> None:
    assert await names(stage, recurring=True) == snapshot(
        [
            "Nordic monthly 3GB",
            "Europe monthly 5GB carry-over",
            "Europe weekly 1GB",
            "World day pass 200MB",
            "M2M World 20MB monthly",
            "M2M Europe 50MB monthly",
        ]
    )
    series = {"recurringPeriodicityType": 2, "recurringPeriodicityFrequency": 1, "reportUnitsPreviousPackage": False}
    await stage.new_template(name="Plain name", recurring=True, **series)
    await stage.new_template(name="Said to be weekly")
    recurring, single = await names(stage, recurring=True), await names(stage, recurring=False)
    assert "Plain name" in recurring and "Said to be weekly" in single
    assert sorted(recurring + single) == sorted(await names(stage))
