"""Series of packages: starting, stopping, resuming."""

import httpx
import pytest
from inline_snapshot import snapshot

from tests.stage import opened
from tests.subscribers.packages_stage import MONTHLY, ONE_TIME, PackagesStage, open_packages_stage, plain

stage = opened(open_packages_stage)


async def start(stage: PackagesStage, **body: object) -> httpx.Response:
    return await stage.http.post(f"{stage.path}/recurring", json={"packageTemplateId": stage.template(MONTHLY), **body})


@pytest.mark.rule("4.2.32")
async def test_a_series_starts_now_with_its_first_package(stage: PackagesStage) -> None:
    said = await start(stage)
    assert said.status_code == 201
    package, line = said.json()["data"]["packageInfo"], plain(said.json())["data"]["simInfo"]
    assert {name: package[name] for name in ("tsactivationutc", "tsexpirationutc", "perioddays", "cost", "templateId")} == snapshot(
        {
            "tsactivationutc": "2027-01-15T12:00:00",
            "tsexpirationutc": "2027-02-15T12:00:00",
            "perioddays": 31,
            "cost": 8.9,
            "templateId": 55032,
        }
    )
    assert isinstance(package["recurringPackage"], int) and (line["smdpServer"], line["subsPackageId"]) == (
        "smdp.spx-roaming.test",
        "int",
    )
    assert package["packageId"] == stage.line.packages[0].id


async def test_a_series_at_first_use_has_a_package_that_waits(stage: PackagesStage) -> None:
    said = await start(stage, activateAtFirstUse=True)
    assert "tsactivationutc" not in said.json()["data"]["packageInfo"]
    (method, payload) = stage.writes()[-1]
    template = stage.template(MONTHLY)
    identifier = {"subscriberId": stage.line.id}
    assert (method, payload) == (
        "affectRecurringPackageToSubscriber",
        {"packageTemplateId": template, "subscriber": identifier, "activationAtFirstUse": True},
    )


async def test_a_series_that_starts_later_has_no_package_yet(stage: PackagesStage) -> None:
    said = await start(stage, startTime="2027-02-01T02:00:00+02:00")
    assert said.json()["data"]["packageInfo"] is None
    assert said.json()["data"]["simInfo"]["iccid"] == stage.line.iccid
    _, payload = stage.writes()[-1]
    assert isinstance(payload, dict) and payload["startTimeUTC"] == "2027-02-01T00:00:00"


async def test_a_start_and_a_first_use_exclude_each_other(stage: PackagesStage) -> None:
    said = await start(stage, startTime="2027-02-01", activateAtFirstUse=True)
    assert (said.status_code, said.json()["param"]) == (400, "startTime")
    assert stage.world.sandbox.calls == []


async def test_a_one_time_template_makes_no_series(stage: PackagesStage) -> None:
    said = await stage.http.post(f"{stage.path}/recurring", json={"templateId": stage.template(ONE_TIME)})
    assert (said.status_code, said.json()["ocs_code"], said.json()["code"]) == (409, 14, "conflict")
    assert "nothing was assigned" in said.json()["error"]
    assert all(words in said.json()["hint"] for words in ("no recurring one", "list_package_templates", "assign_package", "sponsor"))
    assert stage.line.series == []


@pytest.mark.rule("4.2.38")
async def test_a_series_is_stopped_and_resumed_by_one_of_its_packages(stage: PackagesStage) -> None:
    await start(stage)
    (series,) = stage.line.series
    path = f"{stage.path}/{stage.line.packages[0].id}/recurring-status"
    stopped = await stage.http.put(path, json={"action": "stop"})
    assert stopped.json() == {"data": {"recurringId": series.id, "active": False}}
    assert not series.active
    assert len(stage.line.packages) == 1
    resumed = await stage.http.put(path, json={"action": "resume"})
    assert resumed.json() == {"data": {"recurringId": series.id, "active": True}}
    assert stage.writes()[-1] == ("stopResumeSubsRecurringPackage", {"recurringId": series.id, "active": True})


async def test_a_series_without_a_package_is_stopped_by_its_own_id(stage: PackagesStage) -> None:
    await start(stage, startTime="2027-02-01")
    (series,) = stage.line.series
    stopped = await stage.http.put(f"{stage.path}/{series.id}/recurring-status", json={"action": "stop"})
    assert stopped.json() == {"data": {"recurringId": series.id, "active": False}}


async def test_a_one_time_package_has_no_series_to_stop(stage: PackagesStage) -> None:
    package = await stage.assign()
    said = await stage.http.put(f"{stage.path}/{package.id}/recurring-status", json={"action": "stop"})
    assert said.status_code == 400
    assert {**said.json(), "request_id": "", "error": said.json()["error"].replace(str(package.id), "N")} == snapshot(
        {
            "error": "packageId: package N is a one-time package, so there is no series to stop or resume",
            "code": "invalid_request",
            "request_id": "",
            "param": "packageId",
            "hint": "modify_package_status pauses it; list_subscriber_packages shows which packages have `recurring`",
        }
    )
