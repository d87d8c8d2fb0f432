"""What must not be told or done: of fleets that have ended, by clocks that were wrong, to keys that see some lines alone."""

import base64
from collections import Counter

import anyio
import orjson
import pytest

from storage.fleet_lines import mark_lines
from storage.fleet_problem_lists import ProblemFilter, ProblemList, list_problems
from storage.fleet_readings import next_lines
from storage.fleet_search import NOTHING_KNOWN, FleetBounds
from storage.fleets import claim_next_fleet
from storage.upstream_connections import set_connection
from tests.fleet.stage import SYNC_STATUS, ReadModelStage
from tests.network_facts import SIBLING

MINUTE, HOUR, MONTH = 60.0, 3600.0, 30 * 86_400.0
PROBLEMS = "/v1/fleet/problems"


@pytest.mark.long
async def test_no_problem_of_a_former_connection_is_told_and_none_of_its_lines_read(both: ReadModelStage) -> None:
    await both.count()
    await both.sync()
    store, organisation, now, former = both.world.store, both.who.organisation, both.clock.now(), (await both.stored()).id

    async def listed() -> ProblemList:
        return await store.read(
            list_problems, fleet=former, bounds=FleetBounds(), wanted=ProblemFilter(), after=None, most=50, first=0, now=now
        )

    assert (await listed()).lines > 0
    await store.write(set_connection, organisation=organisation, mode="managed", account_id=SIBLING, own_token=None)
    found = await listed()
    assert (found.page, found.problems, found.sums, found.lines, found.known) == ([], [], [], 0, NOTHING_KNOWN)
    assert (await store.read(next_lines, fleet=former, now=now + MONTH, most=50)).lines == []


@pytest.mark.long
async def test_a_turn_whose_fleet_ends_meanwhile_asks_for_no_line_twice(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    await stage.pass_time(8 * 86_400)

    async def replace() -> None:
        stage.sleep.act = None
        await stage.world.store.write(
            set_connection, organisation=stage.who.organisation, mode="managed", account_id=SIBLING, own_token=None
        )

    stage.trouble("listSubscriberPrepaidPackages", delay=1.0)
    stage.sleep.act = replace
    before = len(stage.calls("listSubscriberPrepaidPackages"))
    with anyio.fail_after(20):
        await stage.sync()
    asked = Counter(repr(payload) for payload in stage.calls("listSubscriberPrepaidPackages")[before:])
    assert max(asked.values()) == 1


@pytest.mark.long
async def test_a_clock_that_was_a_month_ahead_once_does_not_stop_the_model(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    stage.clock.advance(MONTH)
    await stage.sync()
    stage.clock.advance(-MONTH)
    stage.line().statuses[-1].status = "SUSPENDED"
    assert (await stage.status())["status"] == "catching_up"
    stage.clock.advance(6 * MINUTE)
    assert await stage.count(status="SUSPENDED") == 1  # where no worker runs, a question reads the fleet
    await stage.sync()
    assert await stage.count(status="SUSPENDED") == 1
    assert (await stage.status())["listed_at"] == "2027-01-15T12:06:00Z"


async def test_the_lease_of_a_process_that_died_before_the_clock_went_back_is_taken(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    stage.clock.advance(6 * MINUTE)
    store, now, instance = stage.world.store, stage.clock.now(), stage.world.pipeline.deps.network_instance
    assert await store.write(claim_next_fleet, token="lse_dead", now=now, until=now + 30.0, instance=instance) is not None
    stage.clock.advance(-2 * HOUR)
    stage.line().statuses[-1].status = "SUSPENDED"
    await stage.sync()
    assert await stage.count(status="SUSPENDED") == 1


async def test_a_key_for_some_lines_learns_nothing_of_the_others(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    http = await stage.restricted(iccids=(stage.line(0).iccid,))
    unlisted = ["8988303700009999999"]
    await stage.world.store.write(mark_lines, iccids=unlisted, now=stage.clock.now(), by=stage.who.organisation)
    stage.trouble("listSubscriber", code=3, times=None)
    seen = await stage.query(http=http, countOnly=True)
    assert (seen["count"], [one for one in (seen["incomplete"] or {"reasons": []})["reasons"] if "A call of yours" in one]) == (1, [])
    told = (await http.get(SYNC_STATUS)).json()
    assert (told["lines"], told["calls_made"], told["listing_seconds"]) == (1, None, None)
    assert (await stage.status())["calls_made"] > 1


CRAFTED = (
    ["subscriber_id", 2**63, 1],
    ["subscriber_id", 1, 2**63],
    ["subscriber_id", True, 1],
    ["subscriber_id", 1e300, 1],
    ["iccid", "8988\x00303", 1],
    ["iccid", "no digits", 1],
    ["data_left", 1e308, 1],
    ["data_left", 1.5, 1],
    ["last_used", 1e308, 1],
    ["last_used", 1.0, True],
    ["-last_used", 1.0, 1],
)


@pytest.mark.long
async def test_a_crafted_cursor_is_refused(both: ReadModelStage) -> None:
    for parts in CRAFTED:
        cursor = base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")
        said = await both.query(sort=str(parts[0]).removeprefix("-"), starting_after=cursor, answers=400)
        assert said["param"] == "starting_after", parts


async def test_the_country_code_000_is_no_networks(stage: ReadModelStage) -> None:
    said = await stage.query(network="000-00", answers=400)
    assert (said["param"], "000-00" in said["error"]) == ("network", True)


async def test_the_sums_of_problems_are_those_of_the_cause_that_was_asked_for(stage: ReadModelStage) -> None:
    stage.line(3).statuses[-1].status = "SUSPENDED"
    whole = (await stage.http.get(PROBLEMS)).json()["data"]
    for cause, told in whole["causes"].items():
        one = (await stage.http.get(PROBLEMS, params={"cause": cause})).json()["data"]
        assert (one["causes"], one["lines_with_problems"]) == ({cause: told}, told["lines"])
        assert one["money_a_month"] == told["money_a_month"]
    assert len(whole["causes"]) > 1


@pytest.mark.long
async def test_a_line_that_has_used_up_everything_has_less_than_any_data_left(stage: ReadModelStage) -> None:
    line = next(line for line in stage.network.lines_of(8101) if line.status == "ACTIVE" and line.packages)
    for package in line.packages:
        package.data_used = package.data_limit or 0
    await stage.count()
    await stage.sync()
    exhausted = set(await stage.iccids(packageState="exhausted", limit=50))
    assert line.iccid in exhausted
    assert exhausted <= set(await stage.iccids(leftBelow=1, limit=50))
    assert await stage.count(leftBelow=0) == 0
