"""Changing the three parts of a package template."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from simulators.network.entities import PackageTemplate, ThrottleThreshold
from simulators.network.methods.templates import listed_template_view, template_recurrence_view, template_throttling_view
from simulators.network.world import World as Network
from tests.network.stage import NetworkStage

THROTTLED = {"throttlingActive": True, "throttlingThreshold1Perc": 80, "throttlingThreshold1Limit": 512, "throttlingErrorAction": 1}
MONTHLY = {
    "recurring": True,
    "recurringPeriodicityType": 2,
    "recurringPeriodicityFrequency": 1,
    "reportUnitsPreviousPackage": False,
    "nbOccurrence": 6,
}


@pytest.fixture
def newer_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose lists show what only the answers of a change are documented to show."""

    def listed(world: Network, template: PackageTemplate) -> dict[str, object]:
        row = listed_template_view(world, template)
        return {**row, **template_throttling_view(template), **template_recurrence_view(template)}

    monkeypatch.setattr("simulators.network.methods.templates.listed_template_view", listed)


@pytest.mark.rule("4.3.14")
async def test_what_is_left_out_of_the_core_stays(stage: NetworkStage) -> None:
    id = await stage.new_template(mocLimit=60)
    said = await stage.confirmed(f"/v1/package-templates/{id}/core", {"dataLimit": 2 << 30, "mocLimit": None})
    assert said.status_code == 200
    assert stage.calls("modifyPPTCore") == [
        {
            "prepaidpackagetemplateid": id,
            "prepaidpackagetemplatename": "Mine",
            "resellerid": 7001,
            "locationzoneid": 2301,
            "databyte": 2147483648,
            "perioddays": 30,
            "cost": 4.5,
        }
    ]
    template = stage.network.templates[id]
    assert (template.name, template.data_bytes, template.moc_seconds) == ("Mine", 2 << 30, None)
    assert said.json()["data"]["templateId"] == id
    shown = await stage.data("/v1/package-templates", templateId=id, fields="databyte")
    assert shown == [{"databyte": 2 << 30}]


@pytest.mark.rule("4.3.14")
async def test_a_change_is_announced_before_it_is_made(stage: NetworkStage) -> None:
    id = await stage.new_template()
    asked = await stage.http.put(f"/v1/package-templates/{id}/core", json={"name": "New name"})
    assert asked.status_code == 202
    assert asked.json()["losses"] == snapshot([{"kind": "template", "name": "Mine", "details": {"name": "Mine becomes New name"}}])
    assert asked.json()["message"].replace(str(id), "ID") == snapshot(
        "This will change the package template ID: “Mine” (name Mine becomes New name)."
    )
    assert stage.calls("modifyPPTCore") == []


@pytest.mark.cases
@pytest.mark.parametrize("part", ["core", "recurring", "throttling"])
async def test_a_template_of_the_reseller_s_or_of_a_neighbour_is_read_only(stage: NetworkStage, part: str) -> None:
    body = {"core": {"cost": 1}, "recurring": MONTHLY, "throttling": THROTTLED}[part]
    id = await stage.new_template()
    answers = [
        await stage.http.put(f"/v1/package-templates/55010/{part}", json=body),
        await stage.http.put(f"/v1/package-templates/55042/{part}", json=body),
        await stage.http.put(f"/v1/package-templates/999999/{part}", json=body),
        await stage.neighbour.put(f"/v1/package-templates/{id}/{part}", json=body),
    ]
    assert [(answer.status_code, answer.json()["param"]) for answer in answers] == [(404, "templateId")] * 4
    assert answers[1].json() | {"request_id": ""} == answers[2].json() | {"request_id": ""}
    assert not [call for call in stage.world.sandbox.calls if call.method.startswith("modify")]


async def test_an_own_token_changes_any_template_it_sees(stage: NetworkStage) -> None:
    asked = await stage.own.put("/v1/package-templates/55042/core", json={"cost": 9})
    said = await stage.own.put(
        "/v1/package-templates/55042/core", json={"cost": 9}, headers={"X-Confirm-Token": asked.json()["confirm_token"]}
    )
    assert (said.status_code, said.json()["data"]["cost"]) == (200, 9.0)


async def test_a_core_against_the_rules_reaches_nothing(stage: NetworkStage) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "at least one field"),
        ({"name": None, "validityDays": None}, "at least one field"),
        ({"locationZoneId": "2301"}, "locationZoneId: got"),
    ]
    for wrong, text in cases:
        said = await stage.http.put("/v1/package-templates/55010/core", json=wrong)
        assert (said.status_code, text in said.json()["error"]) == (400, True), wrong
    assert stage.world.sandbox.calls == []


async def test_a_zone_of_another_sponsor_has_to_be_meant(stage: NetworkStage) -> None:
    id = await stage.new_template()
    said = await stage.confirmed(f"/v1/package-templates/{id}/core", {"locationZoneId": 2318})
    assert said.status_code == 409
    assert said.json()["hint"] == "The new zone may have another sponsor than the template: send changeSponsor: true to change it"
    meant = await stage.confirmed(f"/v1/package-templates/{id}/core", {"locationZoneId": 2318, "changeSponsor": True})
    assert meant.status_code == 200
    assert stage.network.templates[id].sponsor_id == 32


@pytest.mark.rule("4.3.15")
async def test_a_template_becomes_recurring_and_stops(stage: NetworkStage) -> None:
    id = await stage.new_template()
    begun = await stage.confirmed(f"/v1/package-templates/{id}/recurring", {name: MONTHLY[name] for name in MONTHLY if name != "recurring"})
    assert {name: begun.json()["data"][name] for name in MONTHLY} == MONTHLY
    ended = await stage.confirmed(f"/v1/package-templates/{id}/recurring", {"recurring": False})
    assert ended.json()["data"]["recurring"] is False
    assert stage.calls("modifyPPTRecurring") == [
        {"prepaidpackagetemplateid": id, **MONTHLY},
        {"prepaidpackagetemplateid": id, "recurring": False},
    ]


async def test_a_part_of_a_group_that_is_not_shown_names_what_is_missing(stage: NetworkStage) -> None:
    id = await stage.new_template()
    said = await stage.http.put(f"/v1/package-templates/{id}/recurring", json={"recurringPeriodicityFrequency": 2})
    assert said.status_code == 400
    assert said.json()["error"] == (
        "recurringPeriodicityType: missing; a recurring template needs recurringPeriodicityType, reportUnitsPreviousPackage "
        "(only a monthly one may go without nbOccurrence)"
    )
    assert said.json()["param"] == "recurringPeriodicityType"
    assert "send all of it" in said.json()["hint"]
    slow = await stage.http.put(f"/v1/package-templates/{id}/throttling", json={"throttlingActive": True})
    assert (slow.status_code, slow.json()["param"]) == (400, "throttlingErrorAction")


async def test_a_group_that_is_shown_is_completed(stage: NetworkStage, newer_server: None) -> None:
    id = await stage.new_template(**THROTTLED, **MONTHLY)
    path = f"/v1/package-templates/{id}"
    twice = await stage.confirmed(f"{path}/recurring", {"recurringPeriodicityFrequency": 2})
    assert twice.json()["data"]["nbOccurrence"] == 6
    assert stage.network.templates[id].frequency == 2
    second = {"throttlingActive": True, "throttlingThreshold2Perc": 95, "throttlingThreshold2Limit": 128}
    assert (await stage.confirmed(f"{path}/throttling", second)).status_code == 200
    assert stage.network.templates[id].throttles[:2] == (ThrottleThreshold(80, 512), ThrottleThreshold(95, 128))
    gone = {"throttlingActive": True, "throttlingThreshold1Perc": None, "throttlingThreshold1Limit": None}
    assert (await stage.confirmed(f"{path}/throttling", gone)).status_code == 200
    assert stage.network.templates[id].throttles[:2] == (None, ThrottleThreshold(95, 128))


async def test_a_template_that_is_known_not_to_recur_takes_no_rhythm(stage: NetworkStage, newer_server: None) -> None:
    id = await stage.new_template()
    said = await stage.http.put(f"/v1/package-templates/{id}/recurring", json={"recurringPeriodicityFrequency": 2})
    assert (said.status_code, said.json()["param"]) == (400, "recurring")


@pytest.mark.rule("4.3.16")
async def test_throttling_begins_and_ends(stage: NetworkStage) -> None:
    id = await stage.new_template()
    slow = await stage.confirmed(f"/v1/package-templates/{id}/throttling", THROTTLED)
    assert {name: slow.json()["data"][name] for name in THROTTLED} == THROTTLED
    await stage.confirmed(f"/v1/package-templates/{id}/throttling", {"throttlingActive": False})
    assert stage.calls("modifyPPTThrottling") == [
        {"prepaidpackagetemplateid": id, **THROTTLED},
        {"prepaidpackagetemplateid": id, "throttlingActive": False},
    ]


async def test_throttling_against_the_rules_reaches_nothing(stage: NetworkStage) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"throttlingThreshold1Perc": 80}, "throttlingActive"),
        ({**THROTTLED, "throttlingThreshold1Limit": 2048}, "throttlingThreshold1Limit"),
        ({**THROTTLED, "throttlingActive": 1}, "throttlingActive"),
    ]
    for wrong, param in cases:
        said = await stage.http.put("/v1/package-templates/55010/throttling", json=wrong)
        assert (said.status_code, said.json()["param"]) == (400, param), wrong
    assert stage.world.sandbox.calls == []


async def test_half_a_threshold_is_refused(stage: NetworkStage) -> None:
    id = await stage.new_template()
    said = await stage.http.put(f"/v1/package-templates/{id}/throttling", json={**THROTTLED, "throttlingThreshold2Perc": 90})
    assert (said.status_code, said.json()["param"]) == (400, "throttlingThreshold2Limit")
    assert stage.calls("modifyPPTThrottling") == []
