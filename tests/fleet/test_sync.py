"""What a sync reads and stores, on both databases, and what it costs."""

from collections import Counter
from datetime import datetime

import pytest

from simulators.network import charging, packages
from simulators.network.entities import DATA
from simulators.network.methods.subscribers import begin_line_status
from tests.fleet.stage import ReadModelStage

DAY, MINUTE = 86_400, 60


@pytest.mark.long
async def test_a_finished_sync_is_what_the_network_is(both: ReadModelStage) -> None:
    assert await both.count() == 13
    await both.sync()
    assert await both.differences() == []
    for days in (1, 3, 9):
        await both.pass_time(days * DAY)
        await both.sync()
    both.clock.advance(9 * 3600)
    await both.sync()
    assert both.reports == []


async def test_nothing_is_asked_but_the_list_while_nothing_happens(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    for line in stage.network.lines.values():
        line.persona = line.persona._replace(active_share=0.0)
    stage.clock.advance(1)
    await stage.sync()
    before = len(stage.calls())
    for _ in range(3):
        stage.clock.advance(5 * MINUTE + 1)
        await stage.sync()
    asked = Counter(call.method for call in stage.world.sandbox.calls[before:])
    assert asked == {"listSubscriber": 3, "listResellerAccount": 3}


@pytest.mark.long
async def test_a_day_on_which_a_line_is_used_takes_seven_calls_at_most(stage: ReadModelStage) -> None:
    """Twice for packages and use each eight hours, and once more for the day when its records have come in."""
    await stage.count()
    await stage.sync()
    for each in stage.network.lines.values():
        each.persona = each.persona._replace(active_share=0.0)
    stage.clock.advance(3 * DAY)
    await stage.sync()
    line = stage.line()
    before = len(stage.calls())
    days = 2
    for _ in range(days * 24):
        stage.clock.advance(60 * MINUTE)
        charging.charge_usage(stage.network, line, DATA, 1000, sorted(stage.network.networks)[0], int(stage.clock.now()))
        await stage.sync()
    asked = [call for call in stage.world.sandbox.calls[before:] if f"{line.id}" in str(call.payload)]
    assert len(asked) <= 7 * days + 1


@pytest.mark.long
async def test_a_change_of_packages_that_nothing_tells_of_is_seen_within_a_week(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    for each in stage.network.lines.values():
        each.persona = each.persona._replace(active_share=0.0)
    line = stage.line()
    packages.set_package_active(stage.network, line.packages[0], not line.packages[0].active)
    await stage.sync()
    assert await stage.differences() != []
    stage.clock.advance(7 * DAY + 5 * 3600)
    await stage.sync()
    assert await stage.differences() == []


@pytest.mark.long
async def test_a_package_that_a_series_makes_is_seen_when_it_is_made(stage: ReadModelStage) -> None:
    """Nothing is told of it, and the line is used by nobody."""
    await stage.count()
    await stage.sync()
    for each in stage.network.lines.values():
        each.persona = each.persona._replace(active_share=0.0)
    line = next(line for line in stage.network.lines_of(8101) if line.series and line.series[0].start)
    due = packages.next_series_creation(stage.network, line, line.series[0])
    assert due is not None
    await stage.pass_time(due - stage.clock.now() - 60)
    await stage.sync()
    held = len(line.packages)
    await stage.pass_time(60 + 11 * MINUTE)
    await stage.sync()
    assert len(line.packages) == held + 1
    assert await stage.differences() == []


@pytest.mark.long
async def test_what_a_fresh_look_has_shown_is_read_all_the_same(stage: ReadModelStage) -> None:
    """The line's own row says that it was used; its packages and the use itself are read when they are due."""
    await stage.count()
    await stage.sync()
    for each in stage.network.lines.values():
        each.persona = each.persona._replace(active_share=0.0)
    await stage.pass_time(3600)
    await stage.sync()
    line = stage.line()
    charging.charge_usage(stage.network, line, DATA, 1000, sorted(stage.network.networks)[0], int(stage.clock.now()))
    (row,) = (await stage.query(text=line.iccid, fresh=True, limit=20, fields=["last_used"]))["data"]
    assert row["last_used"] == "2027-01-15T13:00:00Z"
    stage.clock.advance(7.1 * 3600)
    await stage.sync()
    assert await stage.differences() == []


async def test_a_line_that_cannot_be_read_is_tried_again_later(stage: ReadModelStage) -> None:
    for line in list(stage.network.lines_of(8101))[1:]:
        del stage.network.lines[line.id]
    stage.trouble("listSubscriberPrepaidPackages", code=3, times=2)  # the client asks a read twice
    await stage.count()
    await stage.sync()
    assert (await stage.status())["waiting"]["never_read"] == 1
    said = await stage.query(limit=1)
    assert said["incomplete"] == {
        "lines": 1,
        "reasons": ["The packages and use of 1 of 1 lines have not been read yet; that goes on now."],
    }
    stage.clock.advance(15 * MINUTE + 1)
    await stage.sync()
    assert (await stage.status())["waiting"]["never_read"] == 0
    assert await stage.differences() == []


@pytest.mark.long
async def test_a_traffic_limit_ends_the_turn_and_is_waited_for_longer_each_time(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    stage.trouble("*", code=100, times=None)
    waits: list[float] = []
    for _ in range(3):
        stage.clock.advance(301)
        asked = len(stage.calls())
        await stage.sync()
        assert len(stage.calls()) - asked <= 2  # one read, which the client repeats
        status = await stage.status()
        assert (status["status"], status["error"]) == (
            "held_up",
            "The charging system's traffic limit is reached; this call was not carried out. Wait, then call again.",
        )
        assert status["again_at"] is not None
        waits.append(datetime.fromisoformat(status["again_at"]).timestamp() - int(stage.clock.now()))
        before = len(stage.calls())
        await stage.sync()  # nobody asks in between
        assert len(stage.calls()) == before
    assert waits == [5.0, 10.0, 20.0]
    stage.world.sandbox.faults.clear()
    stage.clock.advance(301)
    await stage.sync()
    assert (await stage.status())["status"] == "up_to_date"


async def test_a_person_who_asks_while_the_charging_system_must_be_left_alone_gets_what_is_known(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    stage.trouble("*", code=100, times=None)
    stage.clock.advance(301)
    await stage.sync()
    before = len(stage.calls())
    said = await stage.query(limit=1)
    assert len(stage.calls()) == before
    assert said["incomplete"]["reasons"] == [
        "The charging system could not be read (The charging system's traffic limit is reached; this call was not carried out. Wait, "
        "then call again); it is asked again at 2027-01-15T12:05:06Z."
    ]


@pytest.mark.long
async def test_a_list_that_was_cut_or_failed_removes_nothing(both: ReadModelStage) -> None:
    await both.count()
    await both.sync()
    gone = both.line()
    both.network.lines.pop(gone.id)
    both.trouble("listSubscriber", has_more=True, times=None)
    both.clock.advance(301)
    await both.sync()
    assert await both.count(text=gone.iccid) == 1
    assert (await both.status())["complete"] is False
    both.world.sandbox.faults.clear()
    both.trouble("getSingleSubscriber", code=3, times=2)
    both.clock.advance(301)
    await both.sync()
    assert await both.count(text=gone.iccid) == 1  # it was looked for, and the look failed
    both.clock.advance(301)
    await both.sync()
    assert await both.count(text=gone.iccid) == 0


async def test_a_status_that_somebody_else_has_set_is_seen_by_the_next_list(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    begin_line_status(stage.network, stage.line(), "SUSPENDED")
    assert await stage.count(status="SUSPENDED") == 0
    stage.clock.advance(301)
    await stage.sync()
    assert await stage.count(status="SUSPENDED") == 1
