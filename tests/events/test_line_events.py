"""What happens to a line is told once, whoever sees it first; what was so before we looked is not told at all."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from operations.event_types.catalogue import EVENT_TYPES
from storage.engine.sql import Connection, Query
from storage.fleet_line_news import FLEET_BASELINE, TABLES_OF_NEWS
from storage.upstream_connections import set_connection
from tests.bridge.pushing import place
from tests.connectivity.requests import INTENTS
from tests.events.line_stage import LineEventStage, open_line_event_stage
from tests.fleet.truth import current_fleets
from tests.network_facts import SIBLING
from tests.stage import opened, opened_on_both
from transports.worker.retention import retention_chore

stage = opened(open_line_event_stage)
both = opened_on_both(open_line_event_stage)
DAY, HOUR = 86_400, 3600


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.long
async def test_a_status_that_a_call_of_ours_sets_is_told_once(both: LineEventStage) -> None:
    line = both.fleet.line()
    await both.set_status(line, "SUSPENDED")
    told = [{"type": "line.status_changed", "iccid": line.iccid, "before": "ACTIVE", "after": "SUSPENDED"}]
    assert await both.told("status_changed") == told
    for after in (1, 301, 301):
        await both.sync(after=after)
    await both.set_status(line, "SUSPENDED")
    await both.look_at(line)
    assert await both.told("status_changed") == told


async def test_a_status_that_somebody_else_set_is_told_by_the_list(stage: LineEventStage) -> None:
    line = stage.fleet.line()
    stage.set_status_elsewhere(line, "SUSPENDED")
    await stage.look_at(stage.fleet.line(1))
    assert await stage.told("status_changed") == []
    await stage.sync()
    await stage.sync()
    told = {"type": "line.status_changed", "iccid": line.iccid, "before": "ACTIVE", "after": "SUSPENDED"}
    assert await stage.told("status_changed") == [told]


@pytest.mark.long
async def test_a_status_that_a_push_makes_us_look_at_is_told_once(stage: LineEventStage) -> None:
    line = stage.fleet.line()
    stage.set_status_elsewhere(line, "SUSPENDED")
    await stage.look_at(line)
    await stage.set_status(line, "SUSPENDED")
    await stage.sync()
    assert [event["after"] for event in await stage.told("status_changed")] == ["SUSPENDED"]


@pytest.mark.long
async def test_a_status_whose_outcome_nobody_knew_is_told_when_it_is_seen(stage: LineEventStage) -> None:
    line = stage.fleet.line()
    stage.fleet.trouble("modifySubscriberStatus", drop_after=True)
    said = await stage.http.put(f"/v1/subscribers/{line.iccid}/status", json={"status": "SUSPENDED"})
    assert said.status_code == 502
    assert await stage.told("status_changed") == []
    await stage.sync(after=1)
    await stage.sync()
    assert [event["after"] for event in await stage.told("status_changed")] == ["SUSPENDED"]


@pytest.mark.long
async def test_a_line_that_a_call_of_ours_moves_is_told_once(both: LineEventStage) -> None:
    line = both.fleet.line()
    await both.move(line, SIBLING)
    told = [{"type": "line.moved", "iccid": line.iccid, "account_before": 8101, "account_after": 8102}]
    assert await both.told("moved") == told
    await both.sync(after=1)
    await both.sync()
    assert await both.told("moved") == told
    assert await both.told("moved", organisation=both.fleet.who.organisation) == []  # it has left that one's account


@pytest.mark.long
async def test_a_line_that_somebody_else_moves_is_told_once(stage: LineEventStage) -> None:
    line = stage.fleet.line()
    stage.move_elsewhere(line, SIBLING)
    await stage.sync()
    await stage.sync()
    assert await stage.told("moved") == [{"type": "line.moved", "iccid": line.iccid, "account_before": 8101, "account_after": 8102}]


@pytest.mark.long
async def test_a_country_that_a_push_tells_first_is_told_once_to_each_organisation(both: LineEventStage) -> None:
    line = both.fleet.line()
    await both.push(place(line.iccid, 208, 1, moment(both.fleet.clock.now())))
    both.attach(line, "FR")
    await both.sync()
    await both.look_at(line)
    told = [{"type": "line.entered_country", "iccid": line.iccid, "country": "FR"}]
    assert await both.told("entered_country") == told
    assert await both.told("entered_country", organisation=both.fleet.who.organisation) == told


@pytest.mark.long
async def test_a_country_that_the_list_tells_first_is_told_once(stage: LineEventStage) -> None:
    line = stage.fleet.line()
    stage.attach(line, "FR")
    await stage.sync()
    await stage.push(place(line.iccid, 208, 1, moment(stage.fleet.clock.now() - 60)))
    await stage.push(place(line.iccid, 262, 1, moment(stage.fleet.clock.now() - 30 * DAY)))  # it was there long ago
    await stage.sync()
    assert [event["country"] for event in await stage.told("entered_country")] == ["FR"]
    stage.attach(line, "DE")
    await stage.look_at(line)
    assert [event["country"] for event in await stage.told("entered_country")] == ["FR", "DE"]


@pytest.mark.long
async def test_a_problem_is_told_when_it_opens_and_when_it_is_over(both: LineEventStage) -> None:
    line, package = both.package()
    used, package.data_used = package.data_used, package.data_limit or 0
    await both.look_at(line)
    opened = [event for event in await both.told("problem_opened") if event["iccid"] == line.iccid]
    assert [event["problem"] for event in opened] == ["exhausted"]
    await both.sync()
    package.data_used = used
    await both.look_at(line)
    await both.sync()
    closed = [event for event in await both.told("problem_closed") if event["iccid"] == line.iccid]
    assert [event["problem"] for event in closed] == ["exhausted"]
    assert [event for event in await both.told("problem_opened") if event["iccid"] == line.iccid] == opened


@pytest.mark.long
async def test_a_package_that_ends_in_three_days_is_told_once_for_each_end(both: LineEventStage) -> None:
    line, package = both.package()
    package.expires = int(both.fleet.clock.now()) + 3 * DAY + HOUR
    await both.look_at(line)
    assert await both.told("package_ending") == []
    await both.sync(after=HOUR)
    told = {
        "type": "line.package_ending",
        "iccid": line.iccid,
        "package_id": package.id,
        "template_id": package.template_id,
        "ends": moment(package.expires),
    }
    assert await both.told("package_ending") == [told]
    await both.look_at(line)
    await both.sync(after=HOUR)
    assert await both.told("package_ending") == [told]
    package.expires += HOUR
    await both.look_at(line)
    assert await both.told("package_ending") == [told, {**told, "ends": moment(package.expires)}]


@pytest.mark.long
async def test_thresholds_of_a_package_without_an_intent_are_told_once_each(both: LineEventStage) -> None:
    line, package = both.package()
    limit = package.data_limit or 0
    package.data_used = 0
    await both.look_at(line)
    before = len(await both.told("package_used"))
    for percent in (49, 50, 81, 70, 85, 100):
        package.data_used = -(-limit * percent // 100)
        await both.look_at(line)
        await both.sync()
    told = (await both.told("package_used"))[before:]
    assert [event["threshold_percent"] for event in told] == [50, 80, 100]
    assert told[0] == {
        "type": "line.package_used",
        "iccid": line.iccid,
        "package_id": package.id,
        "template_id": package.template_id,
        "threshold_percent": 50,
        "used_bytes": -(-limit * 50 // 100),
        "limit_bytes": limit,
    }


@pytest.mark.long
async def test_a_push_of_use_makes_its_threshold_known_at_once(stage: LineEventStage) -> None:
    line, package = stage.package()
    limit = package.data_limit or 0
    package.data_used = limit * 7 // 10
    await stage.look_at(line)
    before = len(await stage.told("package_used"))
    package.data_used = -(-limit * 8 // 10)
    used = {"unitsBefore": limit * 7 // 10, "unitsAfter": package.data_used, "totalUnits": limit, "usageType": "DATA"}
    push = {"subscriberPrepaidPackage": {**used, "subscriberPackageId": package.id, "subscriberId": line.id}}
    await stage.push(push)
    await stage.sync(after=1)
    await stage.push({**push, "again": True})
    await stage.sync()
    assert [event["threshold_percent"] for event in (await stage.told("package_used"))[before:]] == [80]


@pytest.mark.long
async def test_a_crossing_that_an_intent_tells_is_told_by_no_line_of_the_same_organisation(stage: LineEventStage) -> None:
    """The organisation of the intent has its line in its own fleet; the reseller has it, too, and no intent."""
    said = await stage.fleet.http.post(INTENTS, json={"plan": "nordic-1gb-30d"}, headers={"Idempotency-Key": "intent"})
    assert (said.status_code, said.json()["status"]) == (201, "succeeded"), said.text
    line = next(each for each in stage.fleet.network.lines.values() if each.iccid == said.json()["esim"]["iccid"])
    await stage.sync()
    await stage.look_at(line)
    package = line.packages[0]
    package.data_used = (package.data_limit or 0) * 6 // 10
    await stage.look_at(line)
    assert await stage.told("package_used", organisation=stage.fleet.who.organisation) == []
    assert [event["threshold_percent"] for event in await stage.told("package_used")] == [50]


@pytest.mark.long
async def test_what_is_kept_to_tell_once_goes_with_its_fleet(both: LineEventStage) -> None:
    line, package = both.package()
    package.data_used = package.data_limit or 0
    both.attach(line, "FR")
    await both.look_at(line)
    store, organisation = both.fleet.world.store, both.who.organisation
    (fleet,) = await store.read(current_fleets, organisation=organisation)

    def kept(connection: Connection) -> dict[str, bool]:
        tables = (FLEET_BASELINE, *TABLES_OF_NEWS)
        return {table.name: bool(connection.all(Query(int, sa.select(table.c.fleet).where(table.c.fleet == fleet)))) for table in tables}

    assert await store.read(kept) == dict.fromkeys(("fleet_baseline", "fleet_line_baseline", "fleet_country", "fleet_crossing"), True)
    await store.write(set_connection, organisation=organisation, mode=None, account_id=None, own_token=None)
    chore = retention_chore(store, both.fleet.clock, both.fleet.reports.append)
    await chore.run()
    assert set((await store.read(kept)).values()) == {False}


@pytest.mark.long
async def test_a_first_sync_tells_nothing_until_every_line_was_read(stage: LineEventStage) -> None:
    """A line cannot be read at first; meanwhile another one is changed by us, and a third one by somebody else."""
    who, http = await stage.fleet.beside(account=SIBLING)
    stage.fleet.trouble("listSubscriberPrepaidPackages", code=100, times=None)
    await stage.fleet.sync()
    lines = stage.fleet.network.lines_of(SIBLING)
    said = await http.put(f"/v1/subscribers/{lines[0].iccid}/status", json={"status": "SUSPENDED"})
    assert said.status_code == 200
    stage.set_status_elsewhere(lines[1], "SUSPENDED")
    await stage.sync()
    stage.fleet.world.sandbox.faults.clear()
    await stage.sync()
    assert await stage.told(organisation=who.organisation) == []
    stage.set_status_elsewhere(lines[2], "INACTIVE")
    await stage.sync()
    assert [event["after"] for event in await stage.told("status_changed", organisation=who.organisation)] == ["INACTIVE"]


@pytest.mark.long
async def test_what_happened_in_a_gap_is_a_new_baseline_and_our_own_calls_are_told(both: LineEventStage) -> None:
    line, other, package = both.fleet.line(), both.fleet.line(1), both.package(2)[1]
    package.data_used = package.data_limit or 0
    both.set_status_elsewhere(line, "SUSPENDED")
    both.move_elsewhere(other, SIBLING)
    both.attach(other, "FR")
    both.fleet.clock.advance(7 * HOUR)
    await both.push(place(line.iccid, 208, 1, moment(both.fleet.clock.now())))
    await both.set_status(other, "SUSPENDED")
    await both.fleet.sync()
    told = [{"type": "line.status_changed", "iccid": other.iccid, "before": "ACTIVE", "after": "SUSPENDED"}]
    assert await both.told() == told
    await both.sync()
    assert await both.told() == told
    both.set_status_elsewhere(line, "ACTIVE")
    await both.sync()
    assert [event["after"] for event in await both.told("status_changed")] == ["SUSPENDED", "ACTIVE"]


async def test_another_connection_begins_with_a_baseline_of_its_own(stage: LineEventStage) -> None:
    organisation = stage.fleet.who.organisation
    stage.set_status_elsewhere(stage.fleet.line(), "SUSPENDED")
    await stage.fleet.world.store.write(set_connection, organisation=organisation, mode=None, account_id=None, own_token=None)
    await stage.sync()
    await stage.fleet.world.store.write(set_connection, organisation=organisation, mode="managed", account_id=8101, own_token=None)
    await stage.sync()
    await stage.sync()
    assert await stage.told(organisation=organisation) == []


def test_every_type_of_lines_has_an_example_about_a_line() -> None:
    found = {name: each for name, each in EVENT_TYPES.items() if name.startswith("line.")}
    assert list(found) == [
        "line.status_changed",
        "line.entered_country",
        "line.problem_opened",
        "line.problem_closed",
        "line.package_ending",
        "line.package_used",
        "line.moved",
    ]
    for each in found.values():
        assert each.line == "iccid"
        assert set(each.example) == set(each.data.__annotations__)
