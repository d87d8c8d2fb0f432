"""Random plans: applied equals planned or the row says why, nothing else is changed, nothing is sent twice, and undoing restores."""

from collections import Counter
from random import Random

import pytest

from tests.changes.plan_episode import PlanEpisode, draw_disturbances
from tests.changes.random_plans import EVERYBODY, run_plan
from tests.changes.stage import ChangeStage
from tests.changes.stage_player import STAGE_ACCOUNTS, StagePlayer
from tests.changes.step_kills import run_reading, run_to_step, some_deaths

PLANS, PER_TEST = 16, 16
"""`python -m tests.changes.random_plans --count 5000` plays as many as it is told."""
DATABASE_PLANS, PLANS_A_STAGE = 4, 4
DEATHS = 3
"""`python -m tests.changes.step_kills` lets workers die at every step."""
BROKE_ONCE = (2792, 2849, 3421, 3529)
"""A set without its asker that never ended; a row's own package, whose answer came late, that was taken for another call's."""


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, PLANS, PER_TEST), ids=lambda first: f"seeds-{first}-to-{first + PER_TEST - 1}")
def test_after_any_plan_the_network_is_what_the_set_says(first: int) -> None:
    verdicts = [run_plan(seed) for seed in range(first, first + PER_TEST)]
    assert [(f"python -m tests.changes.random_plans --seed {each.seed}", *each.broken) for each in verdicts if each.broken] == []
    rows = sum((each.rows for each in verdicts), Counter[str]())
    assert rows["done "] > PER_TEST


@pytest.mark.cases
@pytest.mark.parametrize("seed", BROKE_ONCE)
def test_a_plan_that_broke_a_promise_once_keeps_it(seed: int) -> None:
    assert run_plan(seed).broken == []


@pytest.mark.long
def test_one_seed_has_one_plan() -> None:
    assert run_plan(0).told == run_plan(0).told


@pytest.mark.long
@pytest.mark.parametrize("part", range(DATABASE_PLANS // PLANS_A_STAGE))
async def test_random_plans_of_two_workers_on_a_real_database(both: ChangeStage, part: int, database_url: str | None) -> None:
    """Mostly on PostgreSQL: on SQLite the plans above are played."""
    broken = list[tuple[int, str]]()
    for seed in range(part * PLANS_A_STAGE, part * PLANS_A_STAGE + (PLANS_A_STAGE if database_url else 2)):
        rng = Random(f"database {seed}")
        wanted = draw_disturbances(rng)._replace(revoked=False)
        episode = PlanEpisode(StagePlayer(both, rng), rng, STAGE_ACCOUNTS, EVERYBODY, wanted)
        await episode.run()
        both.fleet.world.sandbox.faults.clear()
        broken += [(seed, text) for text in episode.broken]
    assert broken == []


@pytest.mark.long
def test_a_death_at_any_step_loses_no_row_and_sends_none_twice() -> None:
    found = list(some_deaths(DEATHS))
    assert [(f"--seed {each.verdict.seed} --step {each.fatal}", *each.verdict.broken) for each in found if each.verdict.broken] == []
    assert sum(each.verdict.deaths for each in found) == DEATHS


@pytest.mark.long
def test_a_death_while_lines_are_read_leaves_the_same_plan() -> None:
    whole = run_reading(7, None)
    assert (whole.verdict.broken, whole.digest != "") == ([], True)
    for fatal in (whole.steps // 7, whole.steps // 2, whole.steps - 3):
        again = run_reading(7, fatal)
        assert (again.verdict.broken, again.verdict.deaths, again.digest, again.rows) == ([], 1, whole.digest, whole.rows)


def test_every_step_is_reached() -> None:
    """A plan has commits and calls, and each of them is a step before it and one behind it."""
    assert run_to_step(0, None).steps > 10
