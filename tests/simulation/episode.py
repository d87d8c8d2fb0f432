"""One episode: a seed decides who calls what, what fails, who dies and when; then all is healed, everything settles, and we judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import anyio

from storage.engine.sql import Connection
from tests.harness.history import History, Key, Record
from tests.harness.invariants import Ending, broken_promises
from tests.simulation.agents import COUNTED, CURRENCY, AgentEnding, broken_limits, read_agents
from tests.simulation.clients import Clients
from tests.simulation.crash_points import CrashPoint, CrashPoints, draw_points
from tests.simulation.ending import DUE, read_ending
from tests.simulation.errands import draw_errands, give_to_agents
from tests.simulation.loop import SimLoop
from tests.simulation.machines import SimulatedMachines
from tests.simulation.market import Market
from tests.simulation.outsider import Outsider
from tests.simulation.provider import Dispatch, ModelNetwork
from tests.simulation.receivers import Receivers
from tests.simulation.replica import Outside
from tests.simulation.store import StoreFaults
from tests.simulation.tenants import TEMPLATES, Tenants, prepare
from tests.simulation.upstream_faults import UpstreamFaults, draw_outages
from tests.world import NOON

HEALING_ROUNDS = 400
LOOKS = 12
"""How often the healed service looks into what is unknown before it is left alone for nights."""
LOOK_SECONDS, NIGHT_SECONDS = 240.0, 86_400.0
SELLING = 3
"""One episode of so many has shops, buyers and a payment processor."""
AGENTS_ACT, AGENTS_TURN = 3, 2
"""In one episode of so many, which sells nothing, agents with a limit of money do all errands."""
CACHED_SECONDS = 61.0
"""For how long a process may believe a wrong answer to a read."""


class Verdict(NamedTuple):
    seed: int
    broken: list[str]
    digest: str
    calls: int
    seconds: float
    """Virtual ones."""


@dataclass(slots=True)
class EpisodeStage:
    """What an OS process prepares once for all its episodes."""

    apart: Tenants
    together: Tenants


def build_stage() -> EpisodeStage:
    return EpisodeStage(prepare(shared_account=False), prepare(shared_account=True))


def run_episode(stage: EpisodeStage, seed: int, look: Callable[[Episode], object] | None = None) -> Verdict:
    """From the seed to the verdict; nothing else goes in. `look` is shown the episode when it is over."""
    rng = Random(seed)
    tenants = stage.together if rng.random() < 0.5 else stage.apart
    tenants.disk.renew()
    loop = SimLoop(rng)
    try:
        episode = Episode(loop, rng, tenants, seed)
        broken = loop.run_until_complete(episode.run())
        broken += [f"fault in the background: {error!r}" for error in loop.faults]
        if look is not None:
            look(episode)
        return Verdict(seed, broken, episode.digest(), episode.history.calls, loop.time())
    finally:
        loop.close()


class Episode:
    def __init__(self, loop: SimLoop, rng: Random, tenants: Tenants, seed: int) -> None:
        self._loop, self._rng, self._tenants = loop, rng, tenants
        calm = rng.random() < 0.1
        stock = {tenant.account: 2 + int(rng.random() * 6) for tenant in tenants.all}
        self.history = History()
        self.outside = Outside(
            loop=loop,
            rng=rng,
            disk=tenants.disk,
            provider=ModelNetwork(lambda: NOON + loop.time(), stock, TEMPLATES, rng),
            receivers=Receivers(rng, 0.0 if calm else 0.4 * rng.random()),
            store_faults=StoreFaults(rng, 0.0 if calm else 0.15 * rng.random() ** 2),
            upstream_faults=UpstreamFaults(
                rng, 0.0 if calm else 0.8 * rng.random(), outages=[] if calm else draw_outages(Random(f"outage {seed}"))
            ),
            points=CrashPoints({} if calm else draw_points(rng, int(rng.random() * 3)), self._died),
            keyring=tenants.keyring,
            slow_reads=rng.random() < 0.5,
            reports=[],
            bugs=[],
        )
        self._crashes = 0 if calm else int(rng.random() * 2)
        self._jumps = 0 if calm else int(rng.random() * 2.5)
        self.machines = SimulatedMachines(self.outside, 1 + int(rng.random() * 2))
        self.errands = draw_errands(rng, tenants.all, 1 + int(rng.random() * 4))
        self.agents = tenants.agents if seed % AGENTS_ACT == AGENTS_TURN else {}
        if self.agents:
            self.errands = give_to_agents(self.errands, self.agents)
        self.agents_did: AgentEnding | None = None
        self.outsider = Outsider(rng, self.outside.provider, list(stock))
        self.ending: Ending | None = None
        sells = seed % SELLING == 1
        self.market = Market(loop, self.outside, self.machines, self.history, tenants, seed, calm=calm) if sells else None

    async def run(self) -> list[str]:
        self.machines.begin()
        clients = Clients(self._rng, self.machines, self.history, self._loop.time)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._trouble)
                group.start_soon(self.outsider.run)
                for errand in self.errands:
                    group.start_soon(clients.run, errand)
                for visit in [] if self.market is None else self.market.visits:
                    group.start_soon(visit)
            last = await self._heal(clients)
        finally:
            self.machines.end()
            if self.market is not None:
                self.market.end()
            await anyio.sleep(1)  # what was cancelled ends
        self.ending = self.outside.disk.transact(self._ending, clients=clients, last=last)
        broken = broken_promises(self.ending) + ([] if self.market is None else self.market.judge()) + self._overspent(last)
        return broken + [f"a fault of ours: {bug}" for bug in self.outside.bugs] + self._forged()

    def digest(self) -> str:
        """The same for the same seed."""
        ending, outside = self.ending, self.outside
        after = [] if ending is None else [*ending.told, *ending.rows, *sorted(ending.deliveries)]
        after += [] if self.market is None else self.market.told()
        return self.history.digest(outside.provider.log, outside.receivers.receipts, outside.reports, after)

    def dispatches(self) -> list[Dispatch]:
        return [entry._replace(at=entry.at - NOON) for entry in self.outside.provider.log]

    async def _trouble(self) -> None:
        await self.machines.trouble(crashes=self._crashes, jumps=self._jumps)

    async def _heal(self, clients: Clients) -> dict[Key, Record]:
        """Nothing fails any more: old and new processes settle what is left, however long it takes, and everybody asks once more."""
        outside = self.outside
        outside.store_faults.rate = outside.upstream_faults.rate = outside.receivers.rate = 0.0
        outside.upstream_faults.outages = ()
        outside.points.spare()
        self.machines.heal()
        if self.market is not None:
            self.market.heal()
        await self._settle()
        await anyio.sleep(CACHED_SECONDS)
        for errand in self.errands:
            await self.machines.round()
            await clients.final(errand)
        if self.market is not None:
            await self.market.final()
        await self._settle()
        if self.market is not None:
            self.market.tell()
            await self._settle()
        last: dict[Key, Record] = {}
        for errand in self.errands:
            await clients.look(errand)
            last[errand.name] = self.history.records[-1]
        return last

    async def _settle(self) -> None:
        for looks in range(1, HEALING_ROUNDS + 1):
            await self.machines.round()
            due, unknown, busy = self.outside.disk.raw.execute(DUE).fetchone()
            coming = None if self.market is None else self.market.wait
            if due is None and coming is None and not unknown and not busy:
                return
            waits = [NIGHT_SECONDS if looks >= LOOKS else LOOK_SECONDS] if unknown else []
            waits += [] if due is None else [due / 1000 - self.machines.all[0].clock.now()]
            waits += [] if coming is None else [coming]
            # What is due may wait for a place that a dead process holds until its lease ends.
            await anyio.sleep(max(5.0, min(waits, default=30.0)))
        self.outside.bugs.append(f"something is still due after {HEALING_ROUNDS} rounds")

    def _died(self, point: CrashPoint, process: str) -> None:
        self.history.add(self._loop.time(), "crash", 0, process, Key("", point))

    def _overspent(self, last: dict[Key, Record]) -> list[str]:
        if not self.agents:
            return []
        rows = self.outside.disk.raw.execute(COUNTED, (CURRENCY,)).fetchall()
        self.agents_did = read_agents(self.agents, self.history, self.outside.provider.log, rows)
        return broken_limits(self.agents, self.agents_did, last)

    def _forged(self) -> list[str]:
        return [f"{event}: a delivery without its id or signature" for event in self.outside.receivers.forged]

    def _ending(self, connection: Connection, *, clients: Clients, last: dict[Key, Record]) -> Ending:
        del connection
        sold = {} if self.market is None else self.market.wanted
        limited = frozenset(errand.name for errand in self.errands if self.agents)
        return read_ending(self.outside, self._tenants, self.history, self.errands, clients.intents, last, sold, limited)
