"""Preferred networks: the list of a line, and telling its SIM."""

from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from storage.line_steering import LINE_STEERING_KEPT_SECONDS, LineSteering, latest_line_steering
from tests.network_facts import HOUR
from tests.subscribers.staged import LineStage
from transports.worker.retention import retention_chore


async def recorded(stage: LineStage, **asked: Any) -> list[LineSteering]:
    """What is recorded of steering, by default of the stage's organisation."""
    given: dict[str, Any] = {"organisation": stage.who.organisation, "since": 0.0, "most": 10, **asked}
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
    assert (answer.status_code, answer.json()["data"]["pushed"]) == (200, True)
    assert stage.writes() == [("pushSteeringToSubs", {"subscriberId": stage.line.id})]


async def test_the_answer_names_the_country_and_the_list_and_says_that_its_networks_are_not_told(stage: LineStage) -> None:
    stage.line.steering_list_id = 18
    seen_in(stage, "se")
    assert (await stage.ask("steering-list/push", method="POST")).json() == snapshot(
        {
            "data": {
                "pushed": True,
                "country": "SE",
                "listId": 18,
                "listName": "Cheapest in Europe",
                "networks": None,
                "networksKnown": False,
            }
        }
    )
    stage.line.steering_list_id = None
    account = stage.network.accounts[8101].steering_list_id
    of_account = (await stage.ask("steering-list/push", method="POST")).json()["data"]
    assert (of_account["listId"], of_account["country"]) == (account, "SE")


async def test_networks_that_are_told_are_named_where_the_line_is(stage: LineStage) -> None:
    stage.network.tells_more, stage.line.steering_list_id = True, 17
    seen_in(stage, "se")
    there = (await stage.ask("steering-list/push", method="POST")).json()["data"]
    assert (there["networksKnown"], there["networks"]) == snapshot(
        (True, [{"operatorName": "Telia", "countryIso2": "SE", "tadigs": ["SWEAA"]}])
    )
    assert "warning" not in there


async def test_a_list_that_is_known_to_have_no_network_there_is_warned_of(stage: LineStage) -> None:
    stage.line.steering_list_id = 17
    seen_in(stage, "fr")
    assert "warning" not in (await stage.ask("steering-list/push", method="POST")).json()["data"]
    stage.world.pipeline.deps.reads.forget()
    stage.network.tells_more = True
    told = (await stage.ask("steering-list/push", method="POST")).json()["data"]
    assert told.pop("warning") == (
        "The steering list 17 has no network in FR, so the SIM prefers none there: assign another list with "
        "modify_subscriber_steering_list, then push again"
    )
    named = {"country": "FR", "listId": 17, "listName": "Nordic first"}
    assert told == {"pushed": True, **named, "networks": [], "networksKnown": True}


async def test_the_sim_is_told_although_nothing_can_be_read_of_the_list(stage: LineStage) -> None:
    seen_in(stage, "se")
    for own, trouble in ((17, "getResellerInfo"), (17, "listSteeringList"), (None, "listResellerAccount")):
        stage.line.steering_list_id = own
        stage.world.pipeline.deps.reads.forget()
        stage.trouble(trouble, code=3, times=None)
        answer = await stage.ask("steering-list/push", method="POST")
        assert (answer.status_code, answer.json()) == (
            200,
            {"data": {"pushed": True, "country": "SE", "listId": own, "listName": None, "networks": None, "networksKnown": False}},
        )
        stage.world.sandbox.faults.clear()
    assert len(stage.writes()) == 3


def seen_in(stage: LineStage, iso2: str) -> None:
    """The line was seen last in a network of the country."""
    network = next(network for network in stage.network.networks.values() if network.iso2 == iso2)
    assert stage.line.sighting is not None
    mcc, mnc = network.codes[0]
    stage.line.sighting = replace(stage.line.sighting, mcc=mcc, mnc=mnc)


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
