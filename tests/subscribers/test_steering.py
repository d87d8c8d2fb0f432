"""Preferred networks: the list of a line, and telling its SIM."""

from typing import Any

import pytest

from storage.line_steering import LINE_STEERING_KEPT_SECONDS, LineSteering, latest_line_steering
from tests.network_facts import HOUR
from tests.subscribers.staged import LineStage
from transports.worker.retention import retention_chore


async def recorded(stage: LineStage, **asked: Any) -> list[LineSteering]:
    """What is recorded of steering, by default of the stage's organisation."""
    given = {"organisation": stage.who.organisation, "since": 0.0, "most": 10, **asked}
    return await stage.world.store.read(latest_line_steering, **given)


@pytest.mark.rule("4.2.45")
async def test_a_list_is_assigned_in_every_spelling_and_removed_with_null(stage: LineStage) -> None:
    for name in ("listId", "list_id", "steeringListId", "steering_list_id"):
        given = await stage.ask("steering-list", {name: 18})
        assert (given.status_code, given.json(), stage.line.steering_list_id) == (200, {"data": {"listId": 18}}, 18)
        removed = await stage.ask("steering-list", {name: None})
        assert (removed.status_code, removed.json(), stage.line.steering_list_id) == (200, {"data": {"listId": None}}, None)
    assert stage.writes()[:2] == [
        ("modifySubscriberSteeringList", {"subscriber": {"subscriberId": stage.line.id}, "steeringListId": 18}),
        ("modifySubscriberSteeringList", {"subscriber": {"subscriberId": stage.line.id}}),
    ]


async def test_removing_a_list_reads_no_lists(stage: LineStage) -> None:
    await stage.ask("steering-list", {"listId": None})
    assert stage.sent() == ["getSingleSubscriber", "modifySubscriberSteeringList"]


async def test_a_list_that_the_reseller_does_not_have_is_not_found(stage: LineStage) -> None:
    answer = await stage.ask("steering-list", {"listId": 999}, key="k")
    assert (answer.status_code, {**answer.json(), "request_id": ""}) == (
        404,
        {
            "error": "Your reseller has nothing with this listId",
            "code": "not_found",
            "request_id": "",
            "param": "listId",
            "hint": "list_steering_lists names yours",
        },
    )
    assert (stage.writes(), await stage.claims(), stage.line.steering_list_id) == ([], {}, None)


@pytest.mark.rule("4.2.46")
async def test_the_sim_is_told_once(stage: LineStage) -> None:
    answer = await stage.ask("steering-list/push", method="POST")
    assert (answer.status_code, answer.json()) == (200, {"data": {"pushed": True}})
    assert stage.writes() == [("pushSteeringToSubs", {"subscriberId": stage.line.id})]


async def test_a_line_never_seen_cannot_be_told(stage: LineStage) -> None:
    stage.line.sighting = None
    answer = await stage.ask("steering-list/push", method="POST")
    assert (answer.status_code, answer.json()["ocs_code"]) == (409, 14)


async def test_a_line_without_a_list_cannot_be_told(stage: LineStage) -> None:
    stage.network.accounts[8101].steering_list_id = None
    answer = await stage.ask("steering-list/push", method="POST")
    assert (answer.status_code, answer.json()["ocs_code"]) == (409, 16)
    assert "steering list" in answer.json()["error"]


async def test_what_was_done_to_the_steering_of_a_line_is_recorded_for_its_organisation(stage: LineStage) -> None:
    first = stage.world.clock.now()
    await stage.ask("steering-list", {"listId": 18})
    assert await recorded(stage) == [LineSteering(stage.line.iccid, 18, first, None)]
    stage.world.clock.advance(HOUR)
    await stage.ask("steering-list/push", method="POST")
    assert await recorded(stage) == [LineSteering(stage.line.iccid, 18, first, first + HOUR)]
    assert await recorded(stage, organisation="org_of_somebody_else") == await recorded(stage, since=first + HOUR + 1) == []
    stage.world.clock.advance(HOUR)
    await stage.ask("steering-list", {"listId": None})
    assert await recorded(stage) == [LineSteering(stage.line.iccid, None, first + 2 * HOUR, None)]  # another list is not pushed yet


async def test_a_push_that_was_refused_is_not_recorded(stage: LineStage) -> None:
    stage.line.sighting = None
    await stage.ask("steering-list/push", method="POST")
    assert await recorded(stage) == []


async def test_records_of_steering_are_forgotten_after_thirty_days(stage: LineStage) -> None:
    await stage.ask("steering-list/push", method="POST")
    chore = retention_chore(stage.world.store, stage.world.clock, print)
    stage.world.clock.advance(LINE_STEERING_KEPT_SECONDS - HOUR)
    await chore.run()
    assert len(await recorded(stage)) == 1
    stage.world.clock.advance(2 * HOUR)
    await chore.run()
    assert await recorded(stage) == []
