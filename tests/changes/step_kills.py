"""Death at every step of the sending of a plan: before and behind each commit, and before and behind each call to the network.

`python -m tests.changes.step_kills --count 1000` plays so many deaths; `--seed 7 --step 12` plays one and tells it.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import anyio

from tests.changes.change_worker import Steps
from tests.changes.plan_draws import UNKNOWN_ICCIDS
from tests.changes.plan_episode import Disturbances, PlanEpisode
from tests.changes.random_plans import EVERYBODY, PlanVerdict, SimulatedPlayer, plan_stage
from tests.simulation.loop import SimLoop

QUIET = Disturbances()


class StepVerdict(NamedTuple):
    """What came of a plan whose process died at the step `fatal`, and how many steps its sending takes."""

    verdict: PlanVerdict
    steps: int
    fatal: int | None


def run_to_step(seed: int, fatal: int | None) -> StepVerdict:
    """One plan of a seed; with `fatal` its process dies there, and another one goes on."""
    rng, steps = Random(f"step {seed}"), Steps(fatal)
    loop = SimLoop(rng)
    try:
        player = SimulatedPlayer(plan_stage(), loop, rng, steps=steps)
        episode = PlanEpisode(player, rng, player.accounts, EVERYBODY, QUIET)

        async def play() -> None:
            await player.begin()
            plan = await episode.plan()
            if plan is not None and plan["counts"]["planned"]:
                await episode.send(plan, set())
            player.end()
            await anyio.sleep(1)

        try:
            loop.run_until_complete(play())
        except Exception as error:
            episode.fail(f"the episode broke: {error!r}")
        broken = [*episode.broken, *player.broken, *(f"fault in the background: {error!r}" for error in loop.faults)]
        if fatal is not None and fatal <= steps.number and not player.deaths:
            broken.append("nobody died")
        return StepVerdict(PlanVerdict(seed, broken, episode.told, episode.rows_judged, player.deaths), steps.number, fatal)
    finally:
        loop.close()


class ReadingVerdict(NamedTuple):
    """What came of a plan of many lines whose reading was broken off at a step: its digest and its rows."""

    verdict: PlanVerdict
    steps: int
    digest: str
    rows: list[dict[str, Any]]


def run_reading(seed: int, fatal: int | None) -> ReadingVerdict:
    """A plan of more lines than are read at once, whose days count from its beginning; with `fatal` its process dies there."""
    rng, steps = Random(f"reading {seed}"), Steps(fatal)
    loop, pages = SimLoop(rng), list[dict[str, Any]]()
    try:
        player = SimulatedPlayer(plan_stage(), loop, rng, steps=steps)
        episode = PlanEpisode(player, rng, player.accounts, EVERYBODY, QUIET)
        lines = [iccid for iccid, state in episode.states.items() if state["account"] in player.accounts] + [*UNKNOWN_ICCIDS[:220]]
        change = {"action": "set_package_expiry", "validityDays": 90}

        async def play() -> None:
            await player.begin()
            begun = await episode.ask("plan_changes", {"change": change, "lines": {"iccids": lines}}, key="plan")
            player.sending()
            page = await episode.settled(begun.body["id"], {"planned"})
            steps.counting = False
            if page is not None:
                pages.append({**page, "rows": await episode.rows(page["id"])})
            player.end()
            await anyio.sleep(1)

        loop.run_until_complete(play())
        verdict = PlanVerdict(seed, [*episode.broken, *player.broken], episode.told, episode.rows_judged, player.deaths)
        digest: str = pages[0]["digest"] if pages else ""
        rows: list[dict[str, Any]] = pages[0]["rows"] if pages else []
        return ReadingVerdict(verdict, steps.number, digest, rows)
    finally:
        loop.close()


def every_death(first: int) -> Iterator[StepVerdict]:
    """The plans of all seeds from `first` on, each with a death at each of its steps."""
    seed = first
    while True:
        whole = run_to_step(seed, None)
        yield whole
        for fatal in range(1, whole.steps + 1):
            yield run_to_step(seed, fatal)
        seed += 1


def some_deaths(count: int) -> Iterator[StepVerdict]:
    """So many deaths, each of another plan, at a step that the seed says."""
    seed = found = 0
    while found < count:
        whole = run_to_step(seed, None)
        if whole.steps:
            found += 1
            yield run_to_step(seed, 1 + Random(seed).randrange(whole.steps))
        seed += 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.changes.step_kills", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many deaths")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--seed", type=int, help="play this one, and tell what happens")
    parser.add_argument("--step", type=int, help="the step of the death")
    given = parser.parse_args(arguments)
    logging.getLogger("clients.ocs").setLevel(logging.ERROR)
    if given.seed is not None:
        found = run_to_step(given.seed, given.step)
        sys.stdout.writelines(f"{line}\n" for line in [*found.verdict.told, f"{found.steps} steps", *found.verdict.broken])
        return int(bool(found.verdict.broken))
    began, deaths, failed = time.perf_counter(), 0, 0
    for found in every_death(given.first):
        deaths += found.verdict.deaths
        if found.verdict.broken:
            failed += 1
            named = f"--seed {found.verdict.seed} --step {found.fatal}"
            sys.stdout.write(f"{named}: " + "\n    ".join(each[:600] for each in found.verdict.broken[:4]) + "\n")
            sys.stdout.flush()
        if deaths >= given.count:
            break
    sys.stdout.write(f"{deaths} deaths, {failed} failed, {time.perf_counter() - began:.1f} s\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
