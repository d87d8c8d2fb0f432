"""The default networks of an organisation, and the plan of what they are in a country."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from simulators.network.faults import NetworkFault
from tests.network.stage import NetworkStage

PATH = "/v1/network-default"


async def plan(stage: NetworkStage, *countries: str, **other: Any) -> Any:
    said = await stage.http.post(f"{PATH}/plan", json={"countries": countries, **other})
    assert said.status_code == 200, said.text
    return said.json()["data"]


@pytest.mark.rule("4.3.9")
async def test_without_a_choice_the_cheapest_network_is_used(stage: NetworkStage) -> None:
    assert await stage.data(PATH) == snapshot({"mode": "cheapest_available", "effective": {"mode": "cheapest_available"}})


@pytest.mark.rule("4.3.19")
@pytest.mark.rule("4.3.10")
async def test_a_choice_is_stored_and_touches_nothing_upstream(stage: NetworkStage) -> None:
    said = await stage.http.put(PATH, json={"mode": "all"})
    assert said.json() == {"data": {"mode": "all"}}
    assert stage.world.sandbox.calls == []
    chosen = await stage.http.put(PATH, json={"mode": "custom", "listId": 17})
    assert chosen.json() == {"data": {"mode": "custom", "listId": 17}}
    assert {call.method for call in stage.world.sandbox.calls} == {"getResellerInfo", "listSteeringList"}
    assert await stage.data(PATH) == snapshot(
        {"mode": "custom", "listId": 17, "effective": {"mode": "custom", "listId": 17, "listName": "Nordic first"}}
    )


async def test_each_organisation_has_its_own_choice(stage: NetworkStage) -> None:
    await stage.http.put(PATH, json={"mode": "all"})
    assert (await stage.neighbour.get(PATH)).json()["data"]["mode"] == "cheapest_available"


@pytest.mark.rule("4.3.9")
async def test_a_list_that_has_gone_leaves_the_cheapest(stage: NetworkStage) -> None:
    await stage.http.put(PATH, json={"mode": "custom", "listId": 17})
    del stage.network.steering[17]
    stage.world.clock.advance(61)
    assert await stage.data(PATH) == snapshot(
        {
            "mode": "custom",
            "listId": 17,
            "effective": {"mode": "cheapest_available", "note": "Your reseller has no steering list 17 any more: choose again"},
        }
    )
    planned = await plan(stage, "NO")
    assert planned["countries"][0]["mode"] == "cheapest_available"
    assert planned["warnings"] == ["Your reseller has no steering list 17 any more: choose again"]


async def test_a_choice_against_the_rules_is_refused(stage: NetworkStage) -> None:
    for wrong in ({"mode": "custom"}, {"mode": "all", "listId": 17}, {"mode": "dearest"}, {}):
        assert (await stage.http.put(PATH, json=wrong)).status_code == 400, wrong
    assert (await stage.data(PATH))["mode"] == "cheapest_available"


async def test_an_organisation_without_an_account_may_choose_what_needs_none(stage: NetworkStage) -> None:
    caller = await stage.world.caller(Tier.PRO)
    async with stage.world.client(caller.secret) as http:
        assert (await http.put(PATH, json={"mode": "all"})).status_code == 200
        refused = await http.put(PATH, json={"mode": "custom", "listId": 17})
        assert (refused.status_code, refused.json()["code"]) == (409, "org_not_connected")
        assert (await http.get(PATH)).json()["data"]["mode"] == "all"
        assert (await http.post(f"{PATH}/plan", json={"countries": ["NO"]})).status_code == 409


@pytest.mark.rule("4.3.11")
async def test_the_plan_names_the_cheapest_network_of_each_country(stage: NetworkStage) -> None:
    telia = {"networkId": 2, "operator": "Telia", "tadigs": ["NORBA", "NORBB"], "dataPerMb": 0.00128, "currency": "EUR"}
    assert await plan(stage, "no", "AQ", "NO") == {
        "decidedBy": "organisation",
        "countries": [
            {"iso2": "NO", "mode": "cheapest_available", "networks": [telia]},
            {"iso2": "AQ", "mode": "cheapest_available", "networks": []},
        ],
        "warnings": ["AQ: your reseller has no network there"],
    }


async def test_all_networks_are_in_the_order_of_their_price(stage: NetworkStage) -> None:
    row = (await plan(stage, "NO", simMode="all"))["countries"][0]
    assert [network["operator"] for network in row["networks"]] == ["Telia", "Telenor", "Ice"]


@pytest.mark.rule("4.3.11")
async def test_the_sim_overrides_the_package_which_overrides_the_organisation(stage: NetworkStage) -> None:
    await stage.http.put(PATH, json={"mode": "all"})
    assert (await plan(stage, "NO"))["decidedBy"] == "organisation"
    package = await plan(stage, "NO", packageMode="cheapest_available")
    assert (package["decidedBy"], package["countries"][0]["mode"]) == ("package", "cheapest_available")
    sim = await plan(stage, "NO", packageMode="cheapest_available", simMode="custom", simListId=17)
    assert (sim["decidedBy"], sim["countries"][0]["mode"]) == ("sim", "custom")
    assert sim["warnings"] == [
        "The steering list 17 (Nordic first) decides, and the charging system does not show its networks: "
        "all networks with an active rule are given"
    ]


@pytest.mark.rule("4.3.12")
async def test_without_a_tariff_all_networks_of_the_zones_are_given_with_a_warning(stage: NetworkStage) -> None:
    stage.world.sandbox.faults.add(NetworkFault("getCustomerTariff", null_lists=True))
    planned = await plan(stage, "NO")
    assert planned["warnings"] == ["Your reseller has no tariff at present: all networks of its zones are given, without prices"]
    row = planned["countries"][0]
    assert row["mode"] == "all"
    assert [set(network) for network in row["networks"]] == [{"networkId", "operator", "tadigs"}] * 3


async def test_a_tariff_that_does_not_exist_is_a_missing_one(stage: NetworkStage) -> None:
    stage.world.sandbox.faults.add(NetworkFault("getCustomerTariff", code=6))
    assert (await plan(stage, "NO"))["countries"][0]["mode"] == "all"


async def test_a_tariff_that_cannot_be_read_is_an_error_and_no_guess(stage: NetworkStage) -> None:
    stage.world.sandbox.faults.add(NetworkFault("getCustomerTariff", code=5))
    said = await stage.http.post(f"{PATH}/plan", json={"countries": ["NO"]})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 5)


async def test_inactive_rules_and_rules_to_come_do_not_count(stage: NetworkStage) -> None:
    tariff, tomorrow = stage.network.tariffs[512], int(stage.world.clock.now()) + 86_400
    inactive = {2: {"active": False}, 1: {"start": tomorrow}}
    tariff.rules = tuple(rule._replace(**inactive.get(rule.network_id, {})) for rule in tariff.rules)
    row = (await plan(stage, "NO"))["countries"][0]
    assert [network["operator"] for network in row["networks"]] == ["Ice"]


async def test_a_plan_against_the_rules_reaches_nothing(stage: NetworkStage) -> None:
    for wrong in (
        {},
        {"countries": []},
        {"countries": ["NOR"]},
        {"countries": ["NO"] * 61},
        {"countries": ["NO"], "simMode": "custom"},
        {"countries": ["NO"], "packageListId": 17},
    ):
        assert (await stage.http.post(f"{PATH}/plan", json=wrong)).status_code == 400, wrong
    assert stage.world.sandbox.calls == []
