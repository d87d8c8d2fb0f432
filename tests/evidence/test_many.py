"""Many lost answers of one account are settled like few, and what cannot be says why."""

from pathlib import Path

import pytest

from operations.ledger.evidence import FEW_CANDIDATES, OBSTACLE_NOT_EXAMINED, OBSTACLE_REASONS, obstacle_reason
from operations.ledger.reconciliation import Reconciliation, ReconciliationLimits
from storage.backlog import measure_backlog
from tests.evidence.crooked_road import CrookedRoad
from tests.evidence.issuing import OTHER_TEMPLATE, Issuing
from tests.network_facts import ACCOUNT, HOUR, MINUTE

MANY = FEW_CANDIDATES + 5


def shelve(issuing: Issuing, free: int) -> None:
    used = [line for line in issuing.network.lines_of(ACCOUNT) if line.sim.status != "FREE"]
    for line in used[:free]:
        line.sim.status, line.sim.affected_at = "FREE", None
        line.packages.clear()


async def lose_many(issuing: Issuing) -> list[str]:
    """More draws than were once looked into, each carried out, each of a window of its own."""
    shelve(issuing, MANY)
    keys = [f"days-{days}" for days in range(1, MANY + 1)]
    for days, key in enumerate(keys, 1):
        await issuing.lose(key, drawn=True, validityPeriod=days)
    return keys


async def why(issuing: Issuing, key: str) -> str | None:
    return (await issuing.row(key)).obstacle


@pytest.mark.long
async def test_more_lost_answers_than_fifty_of_one_account_are_all_settled_each_with_the_line_of_its_window(issuing: Issuing) -> None:
    keys = await lose_many(issuing)
    await issuing.lose("undrawn", drawn=False, validityPeriod=300)
    assert (await issuing.look(), [(key, await why(issuing, key)) for key in keys if await issuing.state(key) != "issued"]) == (MANY, [])
    rows = [await issuing.row(key) for key in keys]
    assert [issuing.line(row.iccid or "").packages[-1].period_days for row in rows] == list(range(1, MANY + 1))
    assert {row.state for row in rows} == {"issued"}
    assert await issuing.work(16 * MINUTE) == 1
    assert await issuing.state("undrawn") == "failed"


@pytest.mark.long
async def test_of_a_large_account_a_turn_goes_on_with_what_the_one_before_has_read(issuing: Issuing, road: CrookedRoad) -> None:
    keys = await lose_many(issuing)
    road.stuck = frozenset(issuing.line(iccid).id for iccid in issuing.drawn()[-4:])

    def slowly(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        issuing.world.clock.advance(30)  # one turn is a step
        return rows

    road.bend = slowly
    worker = Reconciliation(issuing.world.pipeline.deps, issuing.reports.append, ReconciliationLimits(row=1.0, turn=0.0))
    assert await worker.step() == 0
    read = road.asked
    assert [await why(issuing, key) for key in keys].count("slow") == 1
    road.stuck = frozenset()
    assert await worker.step() == 1
    assert road.asked - read < MANY // 2  # what was not read, and the line that is found once more


@pytest.mark.long
async def test_windows_that_one_key_has_are_settled_beside_equal_keys_and_those_say_that_they_are_equal(issuing: Issuing) -> None:
    for key in ("equal-1", "equal-2"):
        await issuing.lose(key, drawn=True, validityPeriod=7)
    await issuing.lose("unique", drawn=True, validityPeriod=8)
    await issuing.lose("undrawn", drawn=False, validityPeriod=9)
    assert await issuing.look() == 1
    assert await issuing.state("unique") == "issued"
    assert await issuing.work(16 * MINUTE) == 1
    assert await issuing.state("undrawn") == "failed"  # each line of seven days is one of the two keys that asked for seven
    assert [await why(issuing, key) for key in ("equal-1", "equal-2")] == ["several_lines", "several_lines"]
    assert await issuing.work(25 * HOUR, every=9 * HOUR) == 2
    assert [await issuing.state(key) for key in ("equal-1", "equal-2")] == ["manual_reconciliation_required"] * 2


async def test_one_line_and_two_equal_keys_prove_no_failure_of_a_third_window(issuing: Issuing) -> None:
    await issuing.lose("equal-1", drawn=True, validityPeriod=7)
    await issuing.lose("equal-2", drawn=False, validityPeriod=7)
    await issuing.lose("other", drawn=False, validityPeriod=9)
    assert await issuing.work(HOUR, every=20 * MINUTE) == 0
    assert [await why(issuing, key) for key in ("equal-1", "other")] == ["equal_keys", "similar_lines"]


@pytest.mark.long
async def test_the_proof_of_failure_goes_on_when_workers_are_replaced(issuing: Issuing) -> None:
    await issuing.lose("order", drawn=False)
    for _ in range(4):
        for later in (30, 210):  # three and a half minutes of each
            assert await issuing.look(later=later) == 0
        issuing.steady.clear()
    assert await issuing.state("order") == "outcome_unknown"
    assert await issuing.work(2 * MINUTE) == 1
    assert await issuing.state("order") == "failed"


@pytest.mark.long
async def test_workers_that_never_look_twice_prove_no_failure_in_fifteen_minutes(issuing: Issuing) -> None:
    """Nobody's clock has shown that time passed: each has read its own once."""
    await issuing.lose("order", drawn=False)
    for _ in range(4):
        issuing.steady.clear()
        assert await issuing.look(later=5 * MINUTE) == 0
    assert await issuing.state("order") == "outcome_unknown"


@pytest.mark.long
async def test_two_workers_who_look_by_turns_do_not_count_the_same_minutes_twice(issuing: Issuing) -> None:
    await issuing.lose("order", drawn=False)
    workers = [issuing.worker(), issuing.worker()]
    for number in range(6):  # a quarter of an hour but for the last look
        assert await workers[number % 2].step() == 0
        issuing.world.clock.advance(150)
    assert await issuing.state("order") == "outcome_unknown"
    assert sum([await worker.step() for worker in workers]) == 1


async def test_what_hinders_is_counted_by_its_reason(issuing: Issuing) -> None:
    await issuing.lose("order-1", drawn=True)
    await issuing.lose("order-2", drawn=False)
    await issuing.lose("order-3", drawn=False, template=OTHER_TEMPLATE)
    await issuing.look()
    found = await issuing.world.store.read(measure_backlog, now_ms=0)
    assert found.obstacles == {"equal_keys": 2, "waiting": 1}


async def test_how_far_a_turn_came_is_told_without_names(issuing: Issuing) -> None:
    told: list[str] = []
    await issuing.lose("order-1", drawn=True)
    await issuing.lose("order-2", drawn=False, validityPeriod=9)
    await Reconciliation(issuing.world.pipeline.deps, issuing.reports.append, progress=told.append).step()
    assert told == ["account 8101: of 2 issuances of unknown outcome 1 was settled (issued 1), 1 stays open (waiting 1)"]


def test_every_reason_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs/issuance.md").read_text()
    rows = {f"| `{code}` | {text} |" for code, text in [*OBSTACLE_REASONS.items(), (OBSTACLE_NOT_EXAMINED, obstacle_reason(None))]}
    assert {row for row in rows if row not in guide} == set()
