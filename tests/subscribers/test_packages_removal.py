"""Removing packages for good."""

import pytest
from inline_snapshot import snapshot

from tests.stage import opened
from tests.subscribers.packages_stage import MONTHLY, PackagesStage, open_packages_stage

stage = opened(open_packages_stage)


@pytest.mark.rule("4.2.33")
async def test_everything_is_removed_after_a_second_word(stage: PackagesStage) -> None:
    await stage.assign()
    await stage.http.post(f"{stage.path}/recurring", json={"templateId": stage.template(MONTHLY)})
    asked = await stage.http.delete(stage.path)
    assert asked.status_code == 202
    assert len(stage.line.packages) == 2
    said = await stage.removed(stage.path)
    assert (said.status_code, said.json()) == (200, {"data": {"removed": "all"}})
    assert (stage.line.packages, stage.line.series) == ([], [])
    assert stage.writes()[-1] == ("cleanSubscriberAllPackages", {"subscriberId": stage.line.id})


@pytest.mark.rule("4.2.34")
async def test_one_package_is_deleted_and_the_others_stay(stage: PackagesStage) -> None:
    kept, gone = await stage.assign(), await stage.assign()
    said = await stage.removed(f"{stage.path}/{gone.id}")
    assert (said.status_code, said.json()) == (200, {"data": {"deleted": True, "packageId": gone.id}})
    assert stage.line.packages == [kept]
    assert stage.writes()[-1] == ("deleteSubscriberPackage", gone.id)


async def test_a_deletion_with_a_key_is_answered_again_after_the_package_is_gone(stage: PackagesStage) -> None:
    package = await stage.assign()
    path = f"{stage.path}/{package.id}"
    first = await stage.removed(path, key="once")
    before = stage.writes()
    again = await stage.http.delete(path, headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.content) == (200, first.content)
    assert stage.writes() == before


async def test_packages_of_other_lines_and_unknown_ones_are_answered_alike(stage: PackagesStage) -> None:
    other = next(line for line in stage.network.lines_of(8101) if line.packages)
    foreign = next(line for line in stage.network.lines_of(8102) if line.packages)
    told = []
    for id in (other.packages[0].id, foreign.packages[0].id, 1):
        said = await stage.http.delete(f"{stage.path}/{id}")
        assert said.status_code == 404
        told.append({**said.json(), "request_id": ""})
    assert (
        told
        == [
            snapshot(
                {
                    "error": "This line has no package with this id",
                    "code": "not_found",
                    "request_id": "",
                    "param": "packageId",
                    "hint": "list_subscriber_packages names its packages",
                }
            )
        ]
        * 3
    )
    assert stage.writes() == []
