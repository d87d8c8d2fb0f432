"""Seeded episodes of the whole service over failing ports; `python3 ./run simulate` runs more of them and replays one."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness.invariants import ENDS, LIMIT_REACHED
from tests.simulation import planted
from tests.simulation.crash_points import POINTS
from tests.simulation.episode import Episode, EpisodeStage, Verdict, build_stage, run_episode
from tests.simulation.main import known_seeds
from tests.simulation.payments import PAYMENT_FAULTS
from tests.simulation.sales_checker import OrderEnd
from tests.simulation.shoppers import RETURN
from tests.simulation.store import STORE_FAULTS
from tests.simulation.upstream_faults import WEIGHTS

pytestmark = pytest.mark.long

ROOT = Path(__file__).absolute().parents[2]
SEEDS = 80
"""Of each run; an episode makes about 120 calls. `python3 ./run simulate` plays as many as it is told, from any first seed."""
TWICE = 10
# Selling episodes behind the first ones, for the ends that come seldom.
RARE = (271, 274, 280, 286)


@pytest.fixture(scope="module")
def stage() -> EpisodeStage:
    return build_stage()


@dataclass
class Beginning:
    """The first episodes, which several tests ask about, and everything that happened in some of them."""

    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    met: Counter[str] = field(default_factory=Counter[str])


@pytest.fixture(scope="module")
def beginning(stage: EpisodeStage) -> Beginning:
    begun = Beginning()

    def look(episode: Episode) -> None:
        outside = episode.outside
        begun.met.update(outside.upstream_faults.counts | outside.store_faults.counts)
        begun.met["open breaker"] += sum(sum(breaker.opened.values()) > 0 for breaker in outside.breakers)
        begun.met.update(record.key.key for record in episode.history.records if record.kind == "crash")
        if episode.agents_did is not None:
            begun.met.update(ends_of_agents(episode))
        begun.met.update(row.state for row in ([] if episode.ending is None else episode.ending.rows))
        if episode.market is not None:
            begun.met.update(episode.market.counts)
            begun.met.update(end for row in episode.market.rows for end in ends_of(row))
            calls = [record for record in episode.history.records if record.operation == RETURN]
            begun.met.update(f"returned: {record.kind}" for record in calls)

    begun.verdicts += [run_episode(stage, seed, look) for seed in range(SEEDS)]
    for seed in RARE:
        run_episode(stage, seed, look)
    return begun


def failures(verdicts: list[Verdict]) -> list[str]:
    """Every broken promise, with the command that shows how it came to it."""
    return [f"{line}\n  replay: python3 ./run simulate --seed {verdict.seed}" for verdict in verdicts for line in verdict.broken]


def test_every_seed_that_ever_failed_holds_now(stage: EpisodeStage) -> None:
    assert failures([run_episode(stage, seed) for seed in known_seeds()]) == []


def test_none_of_the_first_seeds_breaks_a_promise(beginning: Beginning) -> None:
    assert failures(beginning.verdicts) == []
    assert len(beginning.verdicts) == SEEDS


def test_one_seed_has_one_history(stage: EpisodeStage, beginning: Beginning) -> None:
    once = [verdict.digest for verdict in beginning.verdicts[:TWICE]]
    assert [run_episode(stage, seed).digest for seed in range(TWICE)] == once
    assert len(set(once)) == len(once)


def test_another_process_with_another_order_of_sets_has_the_same_history(stage: EpisodeStage) -> None:
    command = [sys.executable, "-P", "-m", "tests.simulation.main", "--seed", "12"]
    environment = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1", "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert run_episode(stage, 12).digest in told.stdout


def test_the_episodes_meet_every_fault_every_crash_point_and_every_end_of_a_row(beginning: Beginning) -> None:
    """Else the promises would hold because nothing happens."""
    assert {*WEIGHTS, "outage", *STORE_FAULTS, *POINTS, *ENDS} - beginning.met.keys() == {"released"}  # nobody frees what is ours past us
    assert beginning.met["open breaker"] > 5


def test_the_episodes_that_sell_meet_every_fault_of_payments_and_every_end_of_a_sale(beginning: Beginning) -> None:
    assert {*PAYMENT_FAULTS, "late word", "lost word", "second word"} - beginning.met.keys() == set()
    wanted = {f"order {end}" for end in ("ready", "failed", "pending_payment", "rolled_back")} | {
        f"top-up {end}" for end in ("ready", "failed")
    }
    wanted |= {"refund done", "refund failed", "returned: released", "returned: refused"}
    assert wanted - beginning.met.keys() == set()


def test_the_episodes_meet_every_end_of_a_limit_of_money(beginning: Beginning) -> None:
    wanted = {"an agent is refused", "a limit is used up", "a limit has room", "a lost call stays counted"}
    assert wanted - beginning.met.keys() == set()


def ends_of_agents(episode: Episode) -> list[str]:
    """What agents met, in words."""
    did, refused = episode.agents_did, any(record.detail == LIMIT_REACHED for record in episode.history.records)
    found = ["an agent is refused"] if refused else []
    for (organisation, day), cents in [] if did is None else did.counted.items():
        found.append("a limit is used up" if cents == episode.agents[organisation].limit else "a limit has room")
        found += ["a lost call stays counted"] if did is not None and cents > did.due[organisation, day] else []
    return found


def ends_of(row: OrderEnd) -> list[str]:
    """How a sale ended, in words."""
    kind = "order" if row.top_up_of is None else "top-up"
    return [f"{kind} {row.seen}", f"{kind} {row.ledger}", f"refund {row.refund}"]


def test_the_planted_bugs_fit_the_tree() -> None:
    """One test of all, since of the cases of a test a run tries some: `patched` names the one that does not fit."""
    for patch in planted.planted_bugs():
        assert all(text != (ROOT / file).read_text() for file, text in planted.patched(patch, ROOT).items()), patch.name


def test_a_planted_bug_is_found() -> None:
    """The one that is found soonest; `python3 ./run simulate --planted` shows them all."""
    found = planted.find(planted.PATCHES / "retry_on_timeout.patch", seeds=100)
    assert found is not None
    assert found[1].endswith(("2 dispatches", " 2 times"))  # a draw, or the taking back of one
