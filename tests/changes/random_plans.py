"""Seeded random plans on planted networks, each applied in the middle of trouble, judged by the network, and undone.

`python -m tests.changes.random_plans --count 5000` plays many; `--seed 7` plays one and tells it.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple, cast

import anyio

from operations.secret_tokens import NewApiKeySecret, new_api_key
from simulators.network.simulated_network import SimulatedNetwork
from storage.api_keys import insert_key, revoke_key
from storage.engine.sql import Connection
from tests.changes.change_worker import ChangeWorker, StepFaults, Steps
from tests.changes.plan_episode import Disturbances, EpisodeAnswer, PlanEpisode, draw_disturbances
from tests.fleet.history_stage import ChoreWatch, FleetTenant, HistoryStage, build_history_stage
from tests.simulation.crash_points import CrashPoints
from tests.simulation.loop import SimLoop
from tests.simulation.provider import ModelNetwork
from tests.simulation.receivers import Receivers
from tests.simulation.replica import Outside
from tests.simulation.upstream_faults import UpstreamFaults
from tests.world import NOON

EVERYBODY = (8101, 8102, 8103, 8201)
OWN_ACCOUNTS = (8101, 8102, 8103, 8104)
KILLED_SHARE, TWO_WORKERS_SHARE, STORE_FAULT_SHARE = 0.3, 0.4, 0.15


class SimulatedPlayer:
    """An episode on virtual time: one process or two, which die now and then."""

    def __init__(self, stage: HistoryStage, loop: SimLoop, rng: Random, *, quiet: bool = False, steps: Steps | None = None) -> None:
        self.loop, self.rng, self._stage = loop, rng, stage
        stage.disk.renew()
        self._network = SimulatedNetwork(stage.network.copy(), wall=lambda: NOON + loop.time(), following=True, offset=0.0)
        self.tenant: FleetTenant = stage.own if rng.random() < 0.5 else stage.managed[0]
        self.accounts = OWN_ACCOUNTS if self.tenant is stage.own else (8101,)
        self.secret = self.tenant.secret
        self.broken: list[str] = []
        self.reports: list[str] = []
        self.steps = steps or Steps()
        self.deaths = 0
        self._killing = not quiet and steps is None and rng.random() < KILLED_SHARE
        rate = 0.02 if not quiet and steps is None and rng.random() < STORE_FAULT_SHARE else 0.0
        self._faults = StepFaults(rng, rate, self.steps)
        self.outside = Outside(
            loop=loop,
            rng=rng,
            disk=stage.disk,
            provider=ModelNetwork(lambda: 0.0, {}, (), rng),
            receivers=Receivers(rng, 0.0),
            store_faults=self._faults,
            upstream_faults=UpstreamFaults(rng, 0.0),
            points=CrashPoints({}),
            keyring=stage.keyring,
            slow_reads=rng.random() < 0.5,
            reports=self.reports,
            bugs=self.broken,
        )
        count = 2 if rng.random() < TWO_WORKERS_SHARE else 1
        self._made = 0
        self.workers = [self._worker() for _ in range(count)]

    @property
    def network(self) -> SimulatedNetwork:
        return self._network

    def _worker(self) -> ChangeWorker:
        self._made += 1
        return ChangeWorker(self.outside, self._network, f"w{self._made}", ChoreWatch(self.broken, self.reports), self.steps)

    async def begin(self) -> None:
        for worker in self.workers:
            await worker.replica.renew()

    async def revive(self) -> None:
        """Another process takes the place of each that died."""
        for place, worker in enumerate(self.workers):
            if not worker.alive:
                self.deaths += 1
                self.workers[place] = self._worker()
                await self.workers[place].replica.renew()

    async def ask(
        self, operation: str, arguments: Mapping[str, Any], *, key: str | None = None, confirm: str | None = None
    ) -> EpisodeAnswer:
        await self.revive()
        said = await self.rng.choice(self.workers).replica.call(1, operation, self.secret, dict(arguments), key=key, confirm=confirm)
        return EpisodeAnswer(said.status, said.body)

    async def begin_work(self) -> None:
        await self.revive()
        for worker in self.workers:
            worker.begin_step()
        await anyio.sleep(self.rng.random() * 1.5)

    def sending(self) -> None:
        self.steps.counting = True

    async def work(self) -> None:
        await self.revive()
        for worker in self.workers:
            worker.begin_step()
        if self._killing and self.rng.random() < 0.7:
            await anyio.sleep(self.rng.random() * 2)
            self.rng.choice(self.workers).replica.process.crash()
        for worker in self.workers:
            await worker.end_step()

    async def pass_time(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def heal(self) -> None:
        self._killing = False
        self._faults.rate = 0.0

    async def revoke_key(self) -> None:
        """From now on another key of the same person asks."""
        now, ids = int(NOON + self.loop.time()), self.workers[0].replica.ids
        self.secret = self._stage.disk.transact(replace_key, organisation=self.tenant.organisation, key=new_api_key(ids), now=now)

    def end(self) -> None:
        for worker in self.workers:
            worker.replica.process.crash()


def replace_key(connection: Connection, *, organisation: str, key: NewApiKeySecret, now: int) -> str:
    """Ends the key of an organisation's one person, who has another one from now on; its secret."""
    found = connection.driver.execute("select id, person_id from api_key where organisation_id = :owner", {"owner": organisation})
    ((old, person),) = cast("list[tuple[str, str]]", found.fetchall())
    revoke_key(connection, key=old, organisation=organisation, now=now)
    insert_key(
        connection, id="key_of_later", digest=key.digest, prefix=key.prefix, organisation=organisation, person=person, name="later", now=now
    )
    return key.secret


class PlanVerdict(NamedTuple):
    seed: int
    broken: list[str]
    told: list[str]
    rows: Counter[str]
    deaths: int


@cache
def plan_stage() -> HistoryStage:
    return build_history_stage(small=False)


def run_plan(seed: int, wanted: Disturbances | None = None) -> PlanVerdict:
    """From the seed to the verdict."""
    rng = Random(f"changes {seed}")
    loop = SimLoop(rng)
    try:
        player = SimulatedPlayer(plan_stage(), loop, rng)
        episode = PlanEpisode(player, rng, player.accounts, EVERYBODY, wanted or draw_disturbances(rng))

        async def play() -> None:
            await player.begin()
            await episode.run()
            player.end()
            await anyio.sleep(1)

        try:
            loop.run_until_complete(play())
        except Exception as error:
            episode.fail(f"the episode broke: {error!r}")
        broken = [*episode.broken, *player.broken, *(f"fault in the background: {error!r}" for error in loop.faults)]
        return PlanVerdict(seed, broken, [*episode.told, *player.reports], episode.rows_judged, player.deaths)
    finally:
        loop.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.changes.random_plans", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many plans")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--seed", type=int, help="play this one, and tell what happens")
    given = parser.parse_args(arguments)
    logging.getLogger("clients.ocs").setLevel(logging.ERROR)  # answers that nobody can read are ordered here
    if given.seed is not None:
        verdict = run_plan(given.seed)
        sys.stdout.writelines(f"{line}\n" for line in [*verdict.told, *(f"BROKEN {line}" for line in verdict.broken)])
        return int(bool(verdict.broken))
    began, failed, rows, deaths = time.perf_counter(), 0, Counter[str](), 0
    for seed in range(given.first, given.first + given.count):
        verdict = run_plan(seed)
        rows += verdict.rows
        deaths += verdict.deaths
        failed += bool(verdict.broken)
        if verdict.broken:
            sys.stdout.write(f"seed {seed}: " + "\n    ".join(each[:600] for each in verdict.broken[:4]) + "\n")
            sys.stdout.flush()
    spent = time.perf_counter() - began
    sys.stdout.write(f"{given.count} plans, {failed} failed, {deaths} processes died, {spent:.1f} s\n{dict(rows.most_common())}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
