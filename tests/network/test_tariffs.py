"""What roaming costs."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from tests.network.stage import NetworkStage


@pytest.mark.rule("4.2.8")
async def test_rows_are_on_one_level(stage: NetworkStage) -> None:
    assert (await stage.data("/v1/tariffs/7001", limit=1))[0] == snapshot(
        {
            "country": "Norway",
            "countryIso2": "NO",
            "operator": "Telenor",
            "networkId": 1,
            "mccMnc": ["242-01", "242-12"],
            "tadigs": ["NORAA", "NORAB"],
            "currency": "EUR",
            "dataPerMb": 0.00444,
            "mocPerMin": 0.189,
            "mtcPerMin": 0.063,
            "moSms": 0.075,
            "mtSms": 0.0,
            "active": True,
        }
    )


async def test_a_country_goes_by_code_or_name_in_any_case(stage: NetworkStage) -> None:
    for country in ("no", "NO", "norway", "NORWAY", " Norway "):
        rows = await stage.data("/v1/tariffs/7001", country=country)
        assert [row["operator"] for row in rows] == ["Telenor", "Telia", "Ice"]


async def test_traffic_chooses_the_prices(stage: NetworkStage) -> None:
    row = (await stage.data("/v1/tariffs/7001", country="NO", trafficType="sms"))[0]
    assert {name for name in row if name.startswith("m")} == {"mccMnc", "moSms", "mtSms"}
    assert "dataPerMb" not in row


async def test_pages_and_members_of_both_forms(stage: NetworkStage) -> None:
    first = await stage.http.get("/v1/tariffs/7001", params={"limit": 2, "fields": "operator,active"})
    assert first.json()["data"] == [{"operator": "Telenor", "active": True}, {"operator": "Telia", "active": True}]
    assert "starting_after=9002" in first.headers["link"]
    rules = await stage.data("/v1/tariffs/7001", verbose="true", limit=1, starting_after=9001, fields="roamingplanruleid,datarate")
    assert rules == [{"roamingplanruleid": 9002, "datarate": 0.00128}]


async def test_the_whole_rules_pass_as_the_upstream_wrote_them(stage: NetworkStage) -> None:
    whole = await stage.http.get("/v1/tariffs/7001", params={"verbose": "true"})
    assert whole.content.startswith(b'{"data":[{')
    assert len(whole.json()["data"]) == len(stage.network.tariffs[512].rules)
    assert whole.json()["data"][0]["operator"]["countryIso2"] == "no"
    narrowed = await stage.data("/v1/tariffs/7001", verbose="true", country="no")
    assert narrowed == whole.json()["data"][:3]


@pytest.mark.long
async def test_answers_that_nobody_reads_hold_no_place_of_the_token(stage: NetworkStage) -> None:
    for _ in range(20):
        assert (await stage.http.head("/v1/tariffs/7001", params={"verbose": "true"})).status_code == 200
    assert (await stage.http.get("/v1/tariffs/7001", params={"verbose": "true"})).status_code == 200


async def test_a_refusal_before_the_first_byte_is_an_error_body(stage: NetworkStage) -> None:
    stage.world.sandbox.faults.add(NetworkFault("getCustomerTariff", code=5))
    said = await stage.http.get("/v1/tariffs/7001", params={"verbose": "true"})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 5)


@pytest.mark.parametrize("query", [{}, {"verbose": "true"}])
async def test_an_own_token_sees_its_own_prices_only(stage: NetworkStage, query: dict[str, Any]) -> None:
    assert (await stage.own.get("/v1/tariffs/7002", params=query)).status_code == 200
    assert (await stage.own.get("/v1/tariffs/7001", params=query)).status_code == 404


async def test_an_own_reseller_without_a_tariff_is_an_error_of_the_upstream(stage: NetworkStage) -> None:
    for query in ({}, {"verbose": "true"}):
        stage.world.sandbox.faults.add(NetworkFault("getCustomerTariff", code=6))
        said = await stage.http.get("/v1/tariffs/7001", params=query)
        assert (said.status_code, said.json()["ocs_code"]) == (502, 6)


async def test_a_country_that_is_not_sold_has_no_rows(stage: NetworkStage) -> None:
    assert await stage.data("/v1/tariffs/7001", country="Atlantis") == []
