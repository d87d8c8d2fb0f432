"""Activating, suspending and ending a line."""

import pytest
from inline_snapshot import snapshot

from tests.stage import without_request_id
from tests.subscribers.staged import LineStage


@pytest.mark.rule("4.2.44")
async def test_a_line_is_paused_and_taken_up_again(stage: LineStage) -> None:
    rows = len(stage.line.statuses)
    for status in ("SUSPENDED", "INACTIVE", "DISCONNECTED", "ACTIVE"):
        answer = await stage.ask("status", {"status": status})
        assert (answer.status_code, answer.json()) == (200, {"data": {"status": status}})
        assert stage.line.status == status
    assert len(stage.line.statuses) == rows + 4


async def test_one_read_and_one_write_reach_the_network(stage: LineStage) -> None:
    await stage.ask("status", {"status": "SUSPENDED"})
    assert stage.sent() == ["getSingleSubscriber", "modifySubscriberStatus"]
    assert stage.writes() == [("modifySubscriberStatus", {"subscriber": {"subscriberId": stage.line.id}, "newStatus": "SUSPENDED"})]


@pytest.mark.parametrize("status", ["END_OF_LIFE", "TERMINATED"])
@pytest.mark.parametrize("more", [{}, {"irreversible": False}])
async def test_a_line_is_not_ended_by_its_status_alone(stage: LineStage, status: str, more: dict[str, bool]) -> None:
    answer = await stage.ask("status", {"status": status, **more})
    assert answer.status_code == 400
    assert without_request_id(answer) == snapshot(
        {
            "error": "status END_OF_LIFE is final: the line can never be used again. "
            "Send irreversible: true to do it, or SUSPENDED to pause the line",
            "code": "invalid_request",
        }
    )
    assert (stage.sent(), stage.line.status, await stage.charged()) == ([], "ACTIVE", 0)


@pytest.mark.parametrize("status", ["END_OF_LIFE", "TERMINATED"])
async def test_a_line_that_was_ended_knowingly_stays_ended(stage: LineStage, status: str) -> None:
    answer = await stage.ask("status", {"status": status, "irreversible": True})
    assert (answer.status_code, answer.json()) == (200, {"data": {"status": "END_OF_LIFE"}})
    assert stage.line.status == "END_OF_LIFE"
    back = await stage.ask("status", {"status": "ACTIVE"})
    assert (back.status_code, back.json()["code"], stage.line.status) == (409, "subscriber_end_of_life", "END_OF_LIFE")
