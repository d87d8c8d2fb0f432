"""Seeded histories of two fleets: others change the network behind our back, we call, listings are cut, calls fail, workers die.

`python -m tests.fleet.histories --count 2000` plays many; `--seed 7` plays one and tells it. At the end of each nothing fails any more,
days go by, and then the read model must be what the network is, row by row.
"""

import argparse
import sys
import time
from asyncio import Task
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, NamedTuple

import anyio
import httpx

from clients.http import Outbound
from clients.ocs.client import OcsPool
from operations.fleet.sync import FleetSync
from registry.errors import StoreUnavailable
from simulators.network.entities import Line, NetworkToken
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from simulators.server import AnswerLost
from storage.engine.sql import Connection
from storage.sealing import OWN_TOKEN_FIELD, Keyring, new_key_setting
from storage.upstream_connections import set_connection
from tests.copies import Original
from tests.fleet.foreign_changes import ForeignChanges
from tests.fleet.own_calls import OWN_CALLS, LineView, OwnCall, SupplyFields, supply
from tests.fleet.truth import current_fleets, model_differences, stored_fleet
from tests.harness.tenant_stage import found_tenant
from tests.network_facts import OWN_TOKEN
from tests.simulation.clock import SimClock, SimIds
from tests.simulation.crash_points import CrashPoints
from tests.simulation.loop import SimLoop
from tests.simulation.process import Gone, Process
from tests.simulation.provider import ModelNetwork
from tests.simulation.receivers import Receivers
from tests.simulation.replica import OUTBOUND, TOKEN, WIRE, ClientAnswer, Outside, SimulatedReplica
from tests.simulation.store import SimDisk, StoreFaults, empty_image
from tests.simulation.tenants import Still
from tests.simulation.upstream_faults import UpstreamFaults
from tests.world import NOON

ACCOUNTS = (8101, 8102)
HEALING_JUMPS = (60.0, 1000.0, 9 * 3600.0, 86_400.0, 86_400.0, 2 * 86_400.0, 4 * 86_400.0, 3 * 86_400.0, 9 * 3600.0)
HEALING_ROUNDS = 60
LONG_AGO = 20 * 86_400
"""Lines that were activated before are said to be so old, but for some: to read ninety days of each takes too long."""
OLD_LINES = (910002, 910015)


class FleetTenant(NamedTuple):
    """An organisation whose fleet is looked at, and its accounts."""

    organisation: str
    secret: str
    accounts: frozenset[int]


@dataclass(frozen=True, slots=True)
class HistoryStage:
    """What a process prepares once: a database with two organisations of one token and one of its own, and a small network."""

    disk: SimDisk
    keyring: str
    managed: tuple[FleetTenant, ...]
    own: FleetTenant
    network: Original[World]


def build_history_stage() -> HistoryStage:
    ids = SimIds(Still(), Random(7))
    setting = new_key_setting(ids.bytes)
    disk = SimDisk(empty_image())
    managed = [
        FleetTenant(*disk.transact(found_tenant, ids=ids, account=account, now=Still().now()), frozenset({account})) for account in ACCOUNTS
    ]
    organisation, secret = disk.transact(found_tenant, ids=ids, account=8103, now=Still().now())
    sealed = Keyring(setting, ids.bytes).seal(OWN_TOKEN, org_id=organisation, field=OWN_TOKEN_FIELD)
    disk.transact(set_connection, organisation=organisation, mode="own", account_id=None, own_token=sealed)
    own = FleetTenant(organisation, secret, frozenset({8101, 8102, 8103, 8104}))
    return HistoryStage(disk, setting, tuple(managed), own, Original(small_network()))


def small_network() -> World:
    """Thirty lines of six accounts, whose history is short."""
    world = build_world(1, int(NOON), history_days=10, lines=30)
    world.tokens[TOKEN] = NetworkToken(TOKEN, 7001)
    for line in world.lines.values():
        if line.activated_at is not None and line.id not in OLD_LINES and line.activated_at < NOON - LONG_AGO:
            line.activated_at = int(NOON) - LONG_AGO
            line.sim.affected_at = max(line.sim.affected_at or 0, line.activated_at)
    return world


class NetworkRoad(httpx.AsyncBaseTransport):
    """The way of one process to the network: each call and each answer takes a while of virtual time."""

    def __init__(self, network: SimulatedNetwork, process: Process, clock: SimClock, rng: Random) -> None:
        self._network, self._process, self._clock, self._rng = network, process, clock, rng

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange. A process that died meanwhile hears nothing; what it sent may have arrived."""
        self._process.check()
        body, url = await request.aread(), request.url
        await anyio.sleep(self._rng.random() * 0.2)
        world = self._network.world
        assert world is not None
        run_world_to(world, int(self._clock.now()))  # here, since the network itself would do it in a thread
        try:
            answer = await self._network.handle(request.method, url.path, url.query.decode(), dict(request.headers.items()), body)
        except AnswerLost:
            raise httpx.ReadError("the connection was closed", request=request) from None
        await anyio.sleep(self._rng.random() * 0.2)
        self._process.check()
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=httpx.ByteStream(answer.body), request=request)


class FleetWorker:
    """A process that serves calls and keeps the fleets, from its start to its death."""

    def __init__(self, history: "FleetHistory", name: str) -> None:
        self._history = history
        clock = SimClock(history.loop)
        self.replica = replica = SimulatedReplica(history.outside, clock, name)
        road = NetworkRoad(history.network, replica.process, clock, history.rng)
        pool = OcsPool(Outbound(OUTBOUND, transport=road), WIRE, clock)
        replica.pipeline.deps = replace(replica.deps, ocs=pool, keeps_names=history.keeps_names)
        self.sync = FleetSync(replica.pipeline.deps, history.reports.append)
        self.step: Task[None] | None = None

    @property
    def works(self) -> bool:
        return self.step is not None and not self.step.done()

    def begin_step(self) -> None:
        """The chore, as the worker does it; what it raises is looked at."""
        if not self.works:
            self.step = self.replica.process.spawn(self._step())

    async def _step(self) -> None:
        try:
            await self.sync.step()
        except Exception as error:
            if not is_outage(error):
                self._history.broken.append(f"the chore failed: {error!r}")

    async def end_step(self) -> None:
        while self.works:
            await anyio.sleep(1)


def is_outage(error: BaseException) -> bool:
    """Whether nothing but the store was away."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_outage(each) for each in error.exceptions)
    return isinstance(error, StoreUnavailable)


class FleetHistory:
    """One history."""

    def __init__(self, stage: HistoryStage, loop: SimLoop, rng: Random, seed: int) -> None:
        self.loop, self.rng, self.seed = loop, rng, seed
        stage.disk.renew()
        self._stage = stage
        world = stage.network.copy()
        self.network = SimulatedNetwork(world, wall=lambda: NOON + loop.time(), following=True, offset=0.0)
        self.tenants = stage.managed if rng.random() < 0.6 else (stage.own,)
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
        self.others = ForeignChanges(self.network, rng, (8101, 8102) if len(self.tenants) > 1 else (8101, 8102, 8103))
        self.workers = [FleetWorker(self, f"w{number}") for number in range(2)]

    @property
    def world(self) -> World:
        world = self.network.world
        assert world is not None
        return world

    async def run(self) -> list[str]:
        for worker in self.workers:
            await worker.replica.renew()
        for _ in range(12 + self.rng.randrange(25)):
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
        self.workers[number] = FleetWorker(self, f"w{number}.{len(self.told)}")
        await self.workers[number].replica.renew()

    async def fail(self) -> None:
        """The network fails for a while, or answers with less than there is."""
        rng = self.rng
        method = rng.choice(("*", "listSubscriber", "getSingleSubscriber", "listSubscriberPrepaidPackages", "subscriberUsageOverPeriod"))
        kind = rng.choice(({"code": 100}, {"code": 3}, {"status": 503}, {"drop_before": True}, {"drop_after": True}, {"empty": True}))
        if rng.random() < 0.3:
            method, kind = "listSubscriber", {"has_more": True}
        self.network.faults.add(NetworkFault(method, times=1 + rng.randrange(12), **kind))
        self.tell(f"fault {method} {kind}")

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
            if 200 <= said.status < 300:
                await self.look_for(self.rng.choice(self.workers), tenant, line, asked)
        except Gone:
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
        if counted.body["as_of"] is None:
            return  # nothing has been listed yet, and the answer says so
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

    def judge(self) -> None:
        run_world_to(self.world, int(NOON + self.loop.time()))
        for tenant in self.tenants:
            fleets = self._stage.disk.transact(current_fleets, organisation=tenant.organisation)
            if len(fleets) != 1:
                self.broken.append(f"{tenant.organisation} has the fleets {fleets}")
                continue
            stored = self._stage.disk.transact(stored_fleet, fleet=fleets[0])
            self.broken += model_differences(stored, self.world, tenant.accounts, NOON + self.loop.time())


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


def run_history(stage: HistoryStage, seed: int) -> HistoryVerdict:
    """From the seed to the verdict."""
    rng = Random(f"fleet {seed}")
    loop = SimLoop(rng)
    try:
        history = FleetHistory(stage, loop, rng, seed)
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
    given = parser.parse_args(arguments)
    stage, began, failed = build_history_stage(), time.perf_counter(), 0
    if given.seed is not None:
        verdict = run_history(stage, given.seed)
        sys.stdout.writelines(f"{line}\n" for line in [*verdict.told, *(f"BROKEN {line}" for line in verdict.broken)])
        return int(bool(verdict.broken))
    for seed in range(given.first, given.first + given.count):
        verdict = run_history(stage, seed)
        failed += bool(verdict.broken)
        if verdict.broken:
            sys.stdout.write(f"seed {seed}: " + "\n    ".join(verdict.broken[:5]) + "\n")
    spent = time.perf_counter() - began
    sys.stdout.write(f"{given.count} histories, {failed} failed, {spent:.1f} s\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
