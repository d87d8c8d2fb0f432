"""Seeded histories of two fleets: others change the network behind our back, we call, listings are cut, calls fail, workers die.

`python -m tests.fleet.histories --count 2000` plays many; `--seed 7` plays one and tells it. At the end of each nothing fails any more,
days go by, and then the read model must be what the network is, row by row.
"""

import argparse
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, NamedTuple

import anyio

from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from storage.engine.sql import Connection
from storage.upstream_connections import set_connection
from tests.fleet.foreign_changes import ForeignChanges
from tests.fleet.history_stage import ACCOUNTS, ChoreWatch, FleetTenant, FleetWorker, HistoryStage, build_history_stage
from tests.fleet.own_calls import OWN_CALLS, LineView, OwnCall, SupplyFields, supply
from tests.fleet.truth import current_fleets, model_differences, stored_fleet
from tests.simulation.crash_points import CrashPoints
from tests.simulation.loop import SimLoop
from tests.simulation.process import Gone
from tests.simulation.provider import ModelNetwork
from tests.simulation.receivers import Receivers
from tests.simulation.replica import ClientAnswer, Outside
from tests.simulation.store import StoreFaults
from tests.simulation.upstream_faults import UpstreamFaults
from tests.world import NOON

HEALING_JUMPS = (1000.0, 9 * 3600.0, 1000.0)
"""Seconds: after these what failed, what was used, and what series have made has been due."""
LAST_JUMP = 8.2 * 86_400.0
"""And then also days of use that have ended, and packages that nothing was told of."""
HEALING_ROUNDS = 60
UNLISTED = ("lists did not show every line", "have not been listed yet")
FAILING_METHODS = ("*", "listSubscriber", "getSingleSubscriber", "listSubscriberPrepaidPackages", "subscriberUsageOverPeriod")
FAULTS = (
    NetworkFault("*", code=100),
    NetworkFault("*", code=3),
    NetworkFault("*", status=503),
    NetworkFault("*", drop_before=True),
    NetworkFault("*", drop_after=True),
    NetworkFault("*", empty=True),
)


class FleetHistory:
    """One history."""

    def __init__(self, stage: HistoryStage, loop: SimLoop, rng: Random, acts: int) -> None:
        self.loop, self.rng, self._acts = loop, rng, acts
        stage.disk.renew()
        self._stage = stage
        world = stage.network.copy()
        self.network = SimulatedNetwork(world, wall=lambda: NOON + loop.time(), following=True, offset=0.0)
        self.tenants = stage.managed if rng.random() < 0.6 else (stage.own,)
        for other in {*stage.managed, stage.own} - {*self.tenants}:
            stage.disk.transact(set_connection, organisation=other.organisation, mode=None, account_id=None, own_token=None)
        self.keeps_names = rng.random() < 0.7
        self.broken: list[str] = []
        self.reports: list[str] = []
        self.told: list[str] = []
        self.calls = 0
        self.outside = Outside(
            loop=loop,
            rng=rng,
            disk=stage.disk,
            provider=ModelNetwork(lambda: 0.0, {}, (), rng),
            receivers=Receivers(rng, 0.0),
            store_faults=StoreFaults(rng, 0.02 if rng.random() < 0.2 else 0.0, ("busy", "full", "commit_unheard")),
            upstream_faults=UpstreamFaults(rng, 0.0),
            points=CrashPoints({}),
            keyring=stage.keyring,
            slow_reads=rng.random() < 0.5,
            reports=self.reports,
            bugs=self.broken,
        )
        self.others = ForeignChanges(self.network, rng, ACCOUNTS)
        self.workers = [self.new_worker(f"w{number}") for number in range(2)]

    def new_worker(self, name: str) -> FleetWorker:
        return FleetWorker(self.outside, self.network, name, ChoreWatch(self.broken, self.reports), keeps_names=self.keeps_names)

    @property
    def world(self) -> World:
        world = self.network.world
        assert world is not None
        return world

    async def run(self) -> list[str]:
        for worker in self.workers:
            await worker.replica.renew()
        for _ in range(self._acts):
            name, act = self.rng.choice(ACTS)
            self.tell(name)
            await act(self)
            if self.rng.random() < 0.3:
                await anyio.sleep(self.rng.random() * 3)
        await self.heal()
        self.judge()
        for worker in self.workers:
            worker.replica.process.crash()
        await anyio.sleep(1)
        return self.broken

    def tell(self, text: str) -> None:
        self.told.append(f"{self.loop.time():10.1f}  {text}")

    async def foreign(self) -> None:
        for _ in range(1 + self.rng.randrange(4)):
            run_world_to(self.world, int(NOON + self.loop.time()))
            await self.others.change()
            self.tell(f"foreign: {self.others.told[-1] if self.others.told else ''}")

    async def pass_time(self) -> None:
        await anyio.sleep(self.rng.choice((5.0, 120.0, 400.0, 3600.0, 9 * 3600.0, 30 * 3600.0, 50 * 3600.0)) * (0.5 + self.rng.random()))

    async def sync(self) -> None:
        """A worker does its chore, perhaps while others go on; sometimes both do."""
        for worker in self.workers if self.rng.random() < 0.3 else [self.rng.choice(self.workers)]:
            worker.begin_step()
        if self.rng.random() < 0.6:
            for worker in self.workers:
                await worker.end_step()

    async def kill(self) -> None:
        """A worker dies in the middle of what it does, and another takes its place."""
        number = self.rng.randrange(2)
        self.workers[number].begin_step()
        await anyio.sleep(self.rng.random() * 2)
        self.workers[number].replica.process.crash()
        self.workers[number] = self.new_worker(f"w{number}.{len(self.told)}")
        await self.workers[number].replica.renew()

    async def fail(self) -> None:
        """The network fails for a while, or answers with less than there is."""
        rng = self.rng
        fault = replace(rng.choice(FAULTS), method=rng.choice(FAILING_METHODS), times=1 + rng.randrange(12))
        if rng.random() < 0.3:
            fault = NetworkFault("listSubscriber", has_more=True, times=fault.times)
        self.network.faults.add(fault)
        self.tell(f"fault {fault.method} {fault.kinds}")

    async def cut(self) -> None:
        """From now on lists are short, or long again."""
        self.world.row_cap = self.rng.choice((3, 5, 8, 1000, 1000))

    async def call(self) -> None:
        """A call of ours that writes, and a look at once."""
        tenant, worker = self.rng.choice(self.tenants), self.rng.choice(self.workers)
        lines = [line for account in tenant.accounts for line in self.world.lines_of(account) if line.status != "END_OF_LIFE"]
        if not lines:
            return
        line = self.rng.choice(lines)
        fits = partial(self.others.fitting, line)
        view = LineView(self.rng, self.world, line, fits(recurring=False), fits(recurring=True))
        asked = self.rng.choice(OWN_CALLS)(view)
        if asked is None:
            return
        self.tell(f"call {asked.operation} {asked.arguments}")
        try:
            said = await self.ask(worker, tenant, asked.operation, asked.arguments)
            if said.status == 202:
                said = await self.ask(worker, tenant, asked.operation, asked.arguments, confirm=said.body["confirm_token"])
            self.tell(f"said {said.status}")
            if said.status >= 500:
                self.others.untold.add(line.id)
            if 200 <= said.status < 300:
                await self.look_for(self.rng.choice(self.workers), tenant, line, asked)
        except Gone:
            self.others.untold.add(line.id)
            self.tell("gone")

    async def ask(
        self, worker: FleetWorker, tenant: FleetTenant, operation: str, arguments: dict[str, Any], confirm: str | None = None
    ) -> ClientAnswer:
        self.calls += 1
        return await worker.replica.call(self.calls, operation, tenant.secret, arguments, confirm=confirm)

    async def look_for(self, worker: FleetWorker, tenant: FleetTenant, line: Line, done: OwnCall) -> None:
        """What was just changed is found by its own filters, counted, and shown."""
        if "text" in done.filters and "name" in done.fields and not self.keeps_names:
            return  # it is looked for live
        filters = {"text": line.iccid, **done.filters}
        counted = await self.ask(worker, tenant, "query_fleet", {**filters, "countOnly": True})
        wanted = dict(done.fields)
        shown = await self.ask(worker, tenant, "query_fleet", {**filters, "fields": list(wanted) or ["data_left"]})
        if counted.status != 200 or shown.status != 200:
            if {counted.status, shown.status} - {200, 502, 503}:
                self.broken.append(f"query_fleet answered {counted.body} {shown.body}")
            return
        if counted.body["as_of"] is None or any(reason in str(counted.body["incomplete"]) for reason in UNLISTED):
            return  # nothing has been listed yet, or not everything, and the answer says so
        if isinstance(done.fields, SupplyFields):
            wanted = supply(line, int(NOON + self.loop.time()))
        rows = shown.body["data"]
        if done.fields.get("name") is not None and not self.keeps_names:
            del wanted["name"]
        unsure = counted.body["incomplete"] is not None and shown.body["incomplete"] is not None
        if counted.body["count"] != 1 or len(rows) != 1:
            if not unsure or not isinstance(done.fields, SupplyFields):
                self.broken.append(f"after {done.operation} of {line.id}: count {counted.body}, page {shown.body}")
        elif any(rows[0].get(name) != value for name, value in wanted.items()) and not unsure:
            self.broken.append(f"after {done.operation} of {line.id}: {shown.body}, not {wanted}")

    async def query(self) -> None:
        """A page as anybody asks for it: fresh now and then."""
        tenant, worker = self.rng.choice(self.tenants), self.rng.choice(self.workers)
        arguments = {"fresh": True, "limit": 20} if self.rng.random() < 0.5 else {"limit": 5}
        try:
            said = await self.ask(worker, tenant, "query_fleet", arguments)
        except Gone:
            return
        if said.status not in (200, 502, 503):
            self.broken.append(f"query_fleet answered {said.body}")

    async def heal(self) -> None:
        """Nothing fails any more, no line does anything by itself, and days go by."""
        self.tell("heal")
        self.network.faults.clear()
        self.outside.store_faults.rate = 0.0
        world = self.world
        run_world_to(world, int(NOON + self.loop.time()))
        world.row_cap = 1000
        for line in world.lines.values():
            line.persona = line.persona._replace(kind="stock", active_share=0.0, sessions=0.0)
        world.forget()
        for jump in HEALING_JUMPS:
            await anyio.sleep(jump)
            await self.settle()
        self.judge(untold=self.others.untold)
        await anyio.sleep(LAST_JUMP)
        await self.settle()

    async def settle(self) -> None:
        """Both workers do their chore until nothing is due."""
        for _ in range(HEALING_ROUNDS):
            for worker in self.workers:
                worker.begin_step()
                await worker.end_step()
            if not self._stage.disk.transact(anything_due, now=NOON + self.loop.time()):
                return
            await anyio.sleep(5)
        self.broken.append("the workers do not come to an end")

    def judge(self, untold: AbstractSet[int] = frozenset()) -> None:
        """Compares every fleet with the network; of the lines `untold` the packages may differ."""
        run_world_to(self.world, int(NOON + self.loop.time()))
        for tenant in self.tenants:
            fleets = self._stage.disk.transact(current_fleets, organisation=tenant.organisation)
            if len(fleets) != 1:
                self.broken.append(f"{tenant.organisation} has the fleets {fleets}")
                continue
            stored = self._stage.disk.transact(stored_fleet, fleet=fleets[0])
            found = model_differences(stored, self.world, tenant.accounts, NOON + self.loop.time())
            self.broken += [text for text in found if not any(text.startswith(f"line {id}: its packages") for id in untold)]


def anything_due(connection: Connection, *, now: float) -> bool:
    """Whether a fleet could be read now."""
    rows = connection.driver.execute("select count(*) from fleet_sync where ended = 0 and due <= :now", {"now": now}).fetchall()
    return rows[0][0] != 0


ACTS: tuple[tuple[str, Callable[[FleetHistory], Awaitable[None]]], ...] = (
    *[("foreign", FleetHistory.foreign)] * 6,
    *[("time", FleetHistory.pass_time)] * 4,
    *[("sync", FleetHistory.sync)] * 5,
    ("kill", FleetHistory.kill),
    ("fail", FleetHistory.fail),
    ("cut", FleetHistory.cut),
    *[("call", FleetHistory.call)] * 5,
    ("query", FleetHistory.query),
)


class HistoryVerdict(NamedTuple):
    seed: int
    broken: list[str]
    told: list[str]
    seconds: float


def run_history(stage: HistoryStage, seed: int, *, small: bool = True) -> HistoryVerdict:
    """From the seed to the verdict."""
    rng = Random(f"fleet {seed}")
    loop = SimLoop(rng)
    try:
        history = FleetHistory(stage, loop, rng, 5 + rng.randrange(9) if small else 12 + rng.randrange(25))
        broken = loop.run_until_complete(history.run())
        broken += [f"fault in the background: {error!r}" for error in loop.faults]
        return HistoryVerdict(seed, broken, history.told, loop.time())
    finally:
        loop.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many histories")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--seed", type=int, help="play this one, and tell what happens")
    parser.add_argument("--long", action="store_true", help="longer histories of larger fleets: each takes a second")
    given = parser.parse_args(arguments)
    logging.getLogger("clients.ocs").setLevel(logging.ERROR)  # unreadable answers are ordered here
    stage, began, failed = build_history_stage(small=not given.long), time.perf_counter(), 0
    if given.seed is not None:
        verdict = run_history(stage, given.seed, small=not given.long)
        sys.stdout.writelines(f"{line}\n" for line in [*verdict.told, *(f"BROKEN {line}" for line in verdict.broken)])
        return int(bool(verdict.broken))
    for seed in range(given.first, given.first + given.count):
        verdict = run_history(stage, seed, small=not given.long)
        failed += bool(verdict.broken)
        if verdict.broken:
            sys.stdout.write(f"seed {seed}: " + "\n    ".join(verdict.broken[:5]) + "\n")
            sys.stdout.flush()
    spent = time.perf_counter() - began
    sys.stdout.write(f"{given.count} histories, {failed} failed, {spent:.1f} s\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
