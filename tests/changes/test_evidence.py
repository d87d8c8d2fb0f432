"""What a line says of a row whose answer was lost, and of a row that is taken back after the line was used."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from simulators.network.world import LineIndex
from tests.changes.stage import ChangeStage
from tests.changes.test_money import PACKAGE_TEMPLATE, SERIES_TEMPLATE, start_series

DAY = 86_400


async def settled(stage: ChangeStage, plan: dict[str, Any]) -> dict[str, Any]:
    """The set once its lost rows were looked at."""
    stage.fleet.clock.advance(31.0)
    await stage.work()
    return await stage.read(plan["id"])


def outcome_of_row(found: dict[str, Any]) -> tuple[str, str | None]:
    (row,) = found["rows"]
    return row["state"], row.get("code")


async def assign(stage: ChangeStage, iccid: str) -> int:
    body, headers = {"packageTemplateId": PACKAGE_TEMPLATE}, {"Idempotency-Key": stage.fleet.world.ids.new("key")}
    said = await stage.http.post(f"/v1/subscribers/{iccid}/packages", json=body, headers=headers)
    assert said.status_code < 300, said.text
    return said.json()["data"]["packageId"]


@pytest.mark.parametrize("other", ["a series", "the same template"])
async def test_a_package_that_another_call_placed_is_not_the_lost_one(stage: ChangeStage, other: str) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    plan = await stage.plan([line], action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    stage.fleet.trouble("affectPackageToSubscriber", drop_before=True)
    assert outcome_of_row(await stage.done(plan))[0] == "unknown"
    if other == "a series":
        assert (await start_series(stage, line.iccid)).status_code < 300
    else:
        await assign(stage, line.iccid)
    assert outcome_of_row(await settled(stage, plan)) == ("failed", "not_done")
    await stage.undo(plan["id"], answers=409)


@pytest.mark.parametrize(
    ("action", "template", "method"),
    [
        ("assign_package", PACKAGE_TEMPLATE, "affectPackageToSubscriber"),
        ("assign_series", SERIES_TEMPLATE, "affectRecurringPackageToSubscriber"),
    ],
)
async def test_a_package_that_was_made_is_found(stage: ChangeStage, action: str, template: int, method: str) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    plan = await stage.plan([line], action=action, packageTemplateId=template)
    stage.fleet.trouble(method, drop_after=True)
    await stage.done(plan)
    assert outcome_of_row(await settled(stage, plan)) == ("done", None)


async def test_a_lost_deletion_that_was_made_is_done(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    had = len(line.packages)
    plan = await stage.plan([line], action="assign_package", packageTemplateId=PACKAGE_TEMPLATE)
    await stage.done(plan)
    undo = await stage.undo(plan["id"])
    stage.fleet.trouble("deleteSubscriberPackage", drop_after=True)
    await stage.done(undo)
    assert (outcome_of_row(await settled(stage, undo)), len(line.packages)) == (("done", None), had)


async def test_a_lost_stop_of_a_series_that_was_made_is_half_done(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    plan = await stage.plan([line], action="assign_series", packageTemplateId=SERIES_TEMPLATE)
    await stage.done(plan)
    undo = await stage.undo(plan["id"])
    stage.fleet.trouble("stopResumeSubsRecurringPackage", drop_after=True)
    await stage.done(undo)
    assert outcome_of_row(await settled(stage, undo)) == ("failed", "partly_done")


async def test_an_end_of_a_package_that_has_begun_is_not_taken_back_to_days_before_its_use(stage: ChangeStage) -> None:
    (line,) = stage.lines("ACTIVE")[:1]
    id = await assign(stage, line.iccid)
    await stage.done(await stage.plan([line], action="delete_packages", packageTemplateId=SERIES_TEMPLATE))
    plan = await stage.plan([line], action="set_package_expiry", packageTemplateId=PACKAGE_TEMPLATE, validityDays=50)
    await stage.done(plan)
    package = next(package for package in line.packages if package.id == id)
    package.activated, package.expires = int(stage.fleet.clock.now()), int(stage.fleet.clock.now()) + 50 * DAY
    stage.fleet.clock.advance(10.0 * DAY)
    undo = await stage.undo(plan["id"])
    assert [(row["state"], row["code"]) for row in undo["rows"]] == [("skipped", "changed_since")]


@pytest.mark.long
async def test_a_plan_of_a_tag_holds_lines_that_no_listing_shows_yet(stage: ChangeStage) -> None:
    await stage.fleet.sync()
    network, model = stage.fleet.network, stage.lines("ACTIVE")[0]
    iccids = [f"898830370000099{number:04}" for number in range(30)]
    for number, iccid in enumerate(iccids):
        line = deepcopy(model)
        line.id, line.sim.id = 990_000 + number, 880_000 + number
        line.imsis = [replace(line.imsis[-1], id=770_000 + number, imsi=f"24001990000{number:04}", iccid=iccid, end=None)]
        line.multi_imsis, line.numbers, line.packages = [], [], []
        network.lines[line.id] = line
    network.lookup = LineIndex()
    for part in (iccids[:15], iccids[15:]):
        said = await stage.http.post("/v1/tags/batch7/lines", json={"iccids": part})
        assert said.status_code == 200, said.text
    plan = await stage.plan({"tagged": "batch7"}, action="set_status", status="SUSPENDED")
    assert (plan["counts"]["lines"], plan["counts"]["planned"]) == (30, 30)
