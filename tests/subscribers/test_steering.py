"""Preferred networks: the list of a line, and telling its SIM."""

import pytest

from tests.subscribers.staged import LineStage


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
