"""An account of many more lines than the charging system lists at once: what a page of it costs, and that no line is lost."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from operations.caches.account_parts import AccountParts
from operations.upstream.account_lines import read_line_page
from operations.upstream.connection import upstream_of_organisation
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from tests.accounts.stage import AccountsStage, open_accounts_stage
from tests.world import NOON

ACCOUNT, CAP, PATH = 8101, 100, "/v1/subscribers"
FIRST_TIME, KNOWN = 12, 2


@pytest.fixture(scope="module")
def network() -> SimulatedNetwork:
    """1140 lines in account 8101, of which one answer lists 100; each test has a copy of its own."""
    world = build_world(1, int(NOON), history_days=0, lines=1400)
    world.row_cap = CAP
    return SimulatedNetwork(world, wall=lambda: NOON)


@pytest.fixture
async def stage(tmp_path: Path, network: SimulatedNetwork) -> AsyncGenerator[AccountsStage]:
    async with open_accounts_stage(tmp_path, network.fork()) as stage:
        yield stage


@pytest.fixture
async def whole(tmp_path: Path, network: SimulatedNetwork) -> AsyncGenerator[AccountsStage]:
    """The same account at a network that lists all of its lines in one answer."""
    sandbox = network.fork()
    async with open_accounts_stage(tmp_path, sandbox) as stage:
        stage.network.row_cap = 5000
        yield stage


def expected(stage: AccountsStage) -> list[int]:
    return sorted(line.id for line in stage.network.lines_of(ACCOUNT))


async def listed(stage: AccountsStage, **query: Any) -> tuple[list[int], str | None, int]:
    """The lines of a page, the cursor of the next one, and how many upstream calls it took."""
    before = len(stage.world.sandbox.calls)
    said = await stage.managed.get(PATH, params={"fields": "subscriberId", **query})
    assert said.status_code == 200, said.text
    assert "incomplete" not in said.json()
    rows = [row["subscriberId"] for row in said.json()["data"]]
    more = "Link" in said.headers
    return rows, str(rows[-1]) if more else None, len(stage.world.sandbox.calls) - before


async def walked(stage: AccountsStage, *, limit: int, most: int, **query: Any) -> list[int]:
    """All pages of a list, each of which takes `most` upstream calls at most."""
    found, cursor = list[int](), "0"
    while cursor is not None:
        rows, cursor, calls = await listed(stage, limit=limit, starting_after=cursor, **query)
        found += rows
        assert calls <= most, (calls, rows)
    return found


async def learn(stage: AccountsStage) -> None:
    """Pages until the parts of the account are known."""
    await listed(stage, limit=2, starting_after=str(expected(stage)[-3]))


@pytest.mark.long
async def test_a_page_of_two_takes_twelve_calls_at_first_and_two_later(stage: AccountsStage) -> None:
    lines = expected(stage)
    for turn in range(7):
        rows, cursor, calls = await listed(stage, limit=2)
        assert (rows, cursor) == (lines[:2], str(lines[1]))
        assert calls <= (FIRST_TIME if turn < 5 else KNOWN), turn


@pytest.mark.long
async def test_every_page_of_two_takes_two_calls_once_the_parts_are_known(stage: AccountsStage) -> None:
    await learn(stage)
    await each_page_is_cheap(stage, KNOWN)


async def each_page_is_cheap(stage: AccountsStage, most: int) -> None:
    """Pages from all over the account, of two lines each; with them every place where a part may end."""
    lines = expected(stage)
    for place in sorted({*range(0, len(lines) - 2, 149), *range(98, len(lines) - 2, 200)}):
        rows, _, calls = await listed(stage, limit=2, starting_after=str(lines[place]))
        assert rows == lines[place + 1 : place + 3]
        assert calls <= most, place


@pytest.mark.long
async def test_what_is_known_of_an_account_outlives_the_process(stage: AccountsStage) -> None:
    await learn(stage)
    world, lines = stage.world, expected(stage)
    deps = world.pipeline.deps
    upstream = replace(await upstream_of_organisation(deps, stage.operator), parts=AccountParts(deps.store, deps.clock))
    before = len(stage.world.sandbox.calls)
    page = await read_line_page(upstream, ACCOUNT, after=lines[600], count=2)
    assert [row.get("subscriberId") for row in page.rows] == lines[601:603]
    assert len(stage.world.sandbox.calls) - before <= KNOWN


@pytest.mark.long
async def test_ids_that_do_not_follow_the_iccids_are_listed_in_order_and_as_cheaply(stage: AccountsStage) -> None:
    lines = list(stage.network.lines_of(ACCOUNT))
    for line, other in zip(lines, reversed(lines[len(lines) // 2 :]), strict=False):
        line.imsis[-1].iccid, other.imsis[-1].iccid = other.imsis[-1].iccid, line.imsis[-1].iccid
    await learn(stage)
    await each_page_is_cheap(stage, KNOWN)


@pytest.mark.long
async def test_lines_that_come_are_on_their_page_and_those_that_go_are_not(stage: AccountsStage) -> None:
    await learn(stage)
    stranger = next(line for line in stage.network.lines_of(8103))
    gone = list(stage.network.lines_of(ACCOUNT))[700]
    stranger.account_id, gone.account_id = ACCOUNT, 8103
    stage.world.clock.advance(31)
    assert await walked(stage, limit=200, most=100) == expected(stage)
    gone.account_id = ACCOUNT
    stage.world.clock.advance(31)
    assert await walked(stage, limit=200, most=100) == expected(stage)


@pytest.mark.long
async def test_lines_that_were_moved_by_us_are_listed_at_once(stage: AccountsStage) -> None:
    line = next(line for line in stage.network.lines_of(8103) if len(line.imsis) == 1)
    move = {"rangeType": "ICCID", "rangeStart": line.iccid, "rangeEnd": line.iccid, "destAccount": ACCOUNT}
    await stage.own.get(PATH, params={"limit": 2, "accountId": ACCOUNT, "starting_after": str(expected(stage)[-3])})
    said = await stage.own.post("/v1/accounts/8103/move-subscribers", json=move)
    assert said.status_code == 200, said.text
    found = (await stage.own.get(PATH, params={"limit": 1, "accountId": ACCOUNT, "starting_after": str(line.id - 1)})).json()["data"]
    assert [row["subscriberId"] for row in found] == [line.id]


@pytest.mark.long
async def test_a_part_that_grew_beyond_one_answer_is_read_in_smaller_ones(stage: AccountsStage) -> None:
    await learn(stage)
    stage.network.row_cap = CAP // 4
    lines = expected(stage)
    stage.world.clock.advance(31)
    found = list[int]()
    for start in (0, 400, 900):
        rows, _, _ = await listed(stage, limit=150, starting_after=str(lines[start]))
        found += rows
        assert rows == lines[start + 1 : start + 151]
    assert len(found) == 450


@pytest.mark.long
async def test_a_filter_reads_on_until_its_page_is_full_and_loses_none(stage: AccountsStage) -> None:
    lines = list(stage.network.lines_of(ACCOUNT))
    for line in lines:
        line.statuses[-1].status = "ACTIVE"
    few = [lines[place] for place in (3, 41, 500, 501, 900, 1139)]
    for line in few:
        line.statuses[-1].status = "SUSPENDED"
    assert await walked(stage, limit=2, most=60, status="SUSPENDED") == sorted(line.id for line in few)
    for line in few:
        line.name = "Somebody of one firm"
    assert await walked(stage, limit=4, most=60, q="of one firm") == sorted(line.id for line in few)


@pytest.mark.long
async def test_a_list_that_is_not_in_the_order_of_ids_is_not_taken_for_the_beginning(stage: AccountsStage) -> None:
    """The network lists other lines first, in order, and the lowest id is only found by the parts."""
    lowest = next(iter(stage.network.lines_of(ACCOUNT)))
    hidden = stage.network.lines.pop(lowest.id)
    hidden.id = 1
    stage.network.lines[1] = hidden  # a world lists lines in the order in which they came
    assert (await listed(stage, limit=2))[0] == expected(stage)[:2]
    assert await walked(stage, limit=300, most=100) == expected(stage)


@pytest.mark.long
async def test_what_fails_while_the_parts_are_learned_does_not_fail_the_page(stage: AccountsStage) -> None:
    for fault in (NetworkFault("listSubscriber", has_more=True), NetworkFault("listSubscriber", code=7, times=4)):
        stage.world.sandbox.faults.add(fault)
    assert (await listed(stage, limit=2))[0] == expected(stage)[:2]


@pytest.mark.long
async def test_a_number_that_the_network_does_not_search_for_reads_until_the_page_is_full(stage: AccountsStage) -> None:
    await learn(stage)
    lines = expected(stage)
    prefix = next(iter(stage.network.lines_of(ACCOUNT))).iccid[:13]
    for q in (prefix[:8], prefix):
        rows, cursor, calls = await listed(stage, limit=2, q=q)
        assert rows == lines[:2] and cursor == str(lines[1])
        assert calls <= 1 + 5, "its own search, and some parts"
    assert await walked(stage, limit=500, most=60, q=prefix) == lines


@pytest.mark.long
async def test_pages_of_a_long_list_that_are_asked_for_at_once_share_one_answer(whole: AccountsStage) -> None:
    lines, found = expected(whole), dict[int, list[int]]()
    assert (await listed(whole, limit=2)) == (lines[:2], str(lines[1]), 1)
    before = len(whole.world.sandbox.calls)

    async def read_page(place: int) -> None:
        found[place] = (await listed(whole, limit=3, starting_after=str(lines[place])))[0]

    async with anyio.create_task_group() as group:
        for place in range(0, 1000, 50):
            group.start_soon(read_page, place)
    assert found == {place: lines[place + 1 : place + 4] for place in range(0, 1000, 50)}
    assert len(whole.world.sandbox.calls) - before <= 2, "one that was under way, and one for all who asked meanwhile"
