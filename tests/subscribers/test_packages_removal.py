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
    assert asked.json()["message"] == snapshot(
        "This will remove all packages and series of the line 8988303700000101276: “Nordic 1GB 30d” (package 3300366, state assigned, "
        "unused data 1.07 GB of 1.07 GB, ends 30 days after its first use), “Nordic monthly 3GB” (package 3300367, state running, "
        "unused data 3.22 GB of 3.22 GB, ends 2027-02-15T12:00:00Z), “Nordic monthly 3GB” (series 6062, still to come without an end). "
        "It cannot be undone; what is unused is lost."
    )
    assert asked.json()["losses"] == snapshot(
        [
            {
                "kind": "package",
                "name": "Nordic 1GB 30d",
                "details": {
                    "package": "3300366",
                    "state": "assigned",
                    "unused_data": "1.07 GB of 1.07 GB",
                    "ends": "30 days after its first use",
                },
            },
            {
                "kind": "package",
                "name": "Nordic monthly 3GB",
                "details": {"package": "3300367", "state": "running", "unused_data": "3.22 GB of 3.22 GB", "ends": "2027-02-15T12:00:00Z"},
            },
            {"kind": "series", "name": "Nordic monthly 3GB", "details": {"series": "6062", "still_to_come": "without an end"}},
        ]
    )
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


async def test_the_challenge_of_one_package_names_what_of_it_is_unused(stage: PackagesStage) -> None:
    package = await stage.assign()
    package.data_used = 400_000_000
    package.expires = int(stage.world.clock.now()) + 86_400
    reads = len(stage.sent())
    asked = await stage.http.delete(f"{stage.path}/{package.id}")
    assert asked.json()["message"] == snapshot(
        "This will delete a package of the line 8988303700000101276: “Nordic 1GB 30d” (package 3300366, state running, "
        "unused data 673.7 MB of 1.07 GB, ends 2027-01-16T12:00:00Z). It cannot be undone; what is unused is lost."
    )
    assert stage.sent(reads) == ["getSingleSubscriber", "listSubscriberPrepaidPackages"]  # what access has read is enough


async def test_a_line_without_packages_is_said_to_lose_nothing(stage: PackagesStage) -> None:
    asked = await stage.http.delete(stage.path)
    assert asked.json()["message"] == snapshot(
        "This will remove all packages and series of the line 8988303700000101276. Nothing that is still of use is on it now. "
        "It cannot be undone; what is unused is lost."
    )
    assert "losses" not in asked.json()


@pytest.mark.long
async def test_packages_that_cannot_be_read_are_still_removed_when_somebody_confirms(stage: PackagesStage) -> None:
    await stage.assign()
    stage.trouble("listSubscriberPrepaidPackages", code=100, times=None)
    asked = await stage.http.delete(stage.path)
    assert asked.json()["message"] == snapshot(
        "This will remove every package and series from a line (iccid 8988303700000101276). "
        "What exactly would be lost cannot be read now (ocs_error)."
    )
    said = await stage.http.delete(stage.path, headers={"X-Confirm-Token": asked.json()["confirm_token"]})
    assert (said.status_code, stage.line.packages) == (200, [])


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
