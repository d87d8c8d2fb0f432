"""Sending the rows of a set: by several workers, through lost leases, stops and days, each row once."""

from collections import Counter

import anyio
import pytest

from tests.changes.stage import CHANGES, ChangeStage
from tests.world import Credentials

DAY = 86_400.0


@pytest.mark.long
async def test_three_workers_at_once_send_every_row_once(both: ChangeStage) -> None:
    lines, since = both.lines("ACTIVE"), both.call_number
    plans = [await both.plan(lines[first::3], action="set_status", status="SUSPENDED") for first in range(3)]
    for plan in plans:
        await both.apply(plan)
    for _ in range(3):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(both.work)
    found = [await both.read(plan["id"]) for plan in plans]
    assert [each["state"] for each in found] == ["applied"] * 3
    assert ({line.status for line in lines}, set(Counter(both.writes(since)).values()), both.reports) == ({"SUSPENDED"}, {1}, [])


async def test_a_row_whose_sender_lost_its_lease_is_sent_once(both: ChangeStage) -> None:
    lines, since = both.lines("ACTIVE")[:6], both.call_number
    plan = await both.plan(lines, action="set_status", status="SUSPENDED")
    await both.apply(plan)

    async def another_worker_takes_over() -> None:
        both.fleet.clock.advance(61.0)
        await both.work()

    both.during_a_write(another_worker_takes_over)
    await both.work()
    both.fleet.clock.advance(10.0)
    await both.work()
    found = await both.read(plan["id"])
    assert (found["state"], found["counts"]["done"], found["counts"]["skipped"]) == ("applied", 6, 0)
    assert set(Counter(both.writes(since)).values()) == {1}


async def test_a_cancelled_set_stops_and_what_was_sent_stays(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")
    plan = await both.plan(lines, action="set_status", status="SUSPENDED")
    await both.apply(plan)

    cancelled = both.fleet.sleep.until = anyio.Event()

    async def cancel() -> None:
        assert (await both.http.post(f"{CHANGES}/{plan['id']}/cancel")).status_code == 200
        cancelled.set()

    both.during_a_write(cancel, times=len(lines))
    await both.work()
    found = await both.read(plan["id"])
    changed = sum(line.status == "SUSPENDED" for line in lines)
    assert (found["state"], found["stopped"]["code"]) == ("partly_applied", "cancelled")
    assert found["stopped"]["cancelled_by"] == found["planned_by"] and "usr_" not in found["stopped"]["error"]
    assert 0 < changed < len(lines)
    assert (found["counts"]["done"], found["counts"]["not_sent"]) == (changed, len(lines) - changed)


async def test_a_row_that_waits_again_when_its_set_is_cancelled_is_not_sent(both: ChangeStage) -> None:
    """The network had no time for it, and meanwhile the set was stopped."""
    lines = both.lines("ACTIVE")[:1]
    plan = await both.plan(lines, action="set_status", status="SUSPENDED")
    await both.apply(plan)

    async def cancel() -> None:
        assert (await both.http.post(f"{CHANGES}/{plan['id']}/cancel")).status_code == 200

    both.fleet.trouble("modifySubscriberStatus", code=100, delay=1.0)
    both.fleet.sleep.act = cancel
    await both.work()
    both.fleet.clock.advance(60.0)
    await both.work()
    found = await both.read(plan["id"])
    assert (found["state"], found["counts"]["not_sent"], lines[0].status) == ("cancelled", 1, "ACTIVE")


async def revoked(stage: ChangeStage) -> tuple[dict[str, object], Credentials]:
    """A plan that was applied with a key of its own, and the key."""
    who = stage.fleet.who
    key, secret = await stage.fleet.world.key(who.person, who.organisation)
    async with stage.fleet.world.client(secret) as http:
        plan = await stage.plan(stage.lines("ACTIVE"), http=http, action="set_status", status="SUSPENDED")
        await stage.apply(plan, http=http)
    return plan, Credentials(who.organisation, who.person, key, secret)


async def test_a_key_revoked_in_the_middle_stops_the_rest_and_the_set_says_so(both: ChangeStage) -> None:
    plan, key = await revoked(both)

    async def revoke() -> None:
        await both.fleet.world.revoke(key)

    both.during_a_write(revoke)
    await both.work()
    found = await both.read(str(plan["id"]))
    assert (found["state"], found["stopped"]["code"]) == ("partly_applied", "asker_gone")
    assert found["counts"]["done"] + found["counts"]["not_sent"] == found["counts"]["planned"]


async def test_a_set_whose_key_was_revoked_before_its_turn_ends(both: ChangeStage) -> None:
    plan, key = await revoked(both)
    await both.fleet.world.revoke(key)
    await both.work()
    found = await both.read(str(plan["id"]))
    assert (found["state"], found["stopped"]["code"], found["counts"]["done"]) == ("cancelled", "asker_gone", 0)


async def test_a_row_that_waits_again_when_the_key_of_its_set_is_revoked_ends_with_the_set(both: ChangeStage) -> None:
    """The network had no time for it; meanwhile other rows found the key gone, and stopped the set."""
    plan, key = await revoked(both)

    async def revoke() -> None:
        await both.fleet.world.revoke(key)

    both.fleet.trouble("modifySubscriberStatus", code=100, delay=1.0)
    both.fleet.sleep.act = revoke
    with anyio.fail_after(20):
        await both.work()
        both.fleet.clock.advance(60.0)
        await both.work()
    found = await both.read(str(plan["id"]))
    assert (found["state"], found["stopped"]["code"]) in (("cancelled", "asker_gone"), ("partly_applied", "asker_gone"))
    assert found["counts"]["done"] + found["counts"]["not_sent"] == found["counts"]["planned"]


async def test_used_up_calls_pause_a_set_until_the_next_day(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:6]
    http = await both.fleet.restricted(calls_per_day=12)
    plan = await both.plan(lines, http=http, action="set_status", status="SUSPENDED")  # six lines that are read, and two calls
    await both.apply(plan, http=http)
    await both.work()
    paused = await both.read(plan["id"])
    assert (paused["state"], 0 < paused["counts"]["done"] < 6) == ("applying", True)
    both.fleet.clock.advance(60.0)
    await both.work()
    assert (await both.read(plan["id"]))["counts"] == paused["counts"]
    both.fleet.clock.advance(DAY)
    await both.work()
    assert (await both.read(plan["id"]))["state"] == "applied"


async def test_a_lost_answer_is_settled_by_the_line_and_not_sent_again(both: ChangeStage) -> None:
    lines, since = both.lines("ACTIVE")[:3], both.call_number
    plan = await both.plan(lines, action="set_status", status="SUSPENDED")
    both.fleet.trouble("modifySubscriberStatus", drop_after=True)
    both.fleet.trouble("modifySubscriberStatus", drop_before=True)
    unsettled = await both.done(plan)
    assert (unsettled["state"], unsettled["counts"]["unknown"]) == ("applying", 2)
    both.fleet.clock.advance(31.0)
    await both.work()
    found = await both.read(plan["id"])
    rows = {row["iccid"]: (row["state"], row.get("code")) for row in found["rows"]}
    assert (found["state"], Counter(rows.values())) == ("partly_applied", {("done", None): 2, ("failed", "not_done"): 1})
    assert all((rows[line.iccid][0] == "done") == (line.status == "SUSPENDED") for line in lines)
    assert set(Counter(both.writes(since)).values()) == {1}


async def test_a_second_call_that_is_refused_says_what_was_done_and_is_undone(stage: ChangeStage) -> None:
    """The list is set, and nothing can be pushed to a line that no network has seen."""
    (line,) = stage.lines("ACTIVE")[:1]
    line.sighting, line.steering_list_id = None, None
    found = await stage.done(await stage.plan([line], action="set_steering_list", listId=18, push=True))
    assert (found["state"], found["rows"][0]["code"], line.steering_list_id) == ("partly_applied", "partly_done", 18)
    await stage.done(await stage.undo(found["id"]))
    assert line.steering_list_id is None
