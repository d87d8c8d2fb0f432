"""One episode: a seed decides who calls what, what fails, who dies and when; then all is healed, everything settles, and we judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import anyio
import orjson

from storage.connection import Connection
from storage.outbox import next_due
from tests.simulation.clients import Clients, draw_errands
from tests.simulation.clock import NOON
from tests.simulation.history import Delivery, Ending, History, Told, check
from tests.simulation.loop import SimLoop
from tests.simulation.machines import Machines
from tests.simulation.provider import Dispatch, Provider, Template
from tests.simulation.receivers import Receivers
from tests.simulation.replica import Outside, Replica
from tests.simulation.store import StoreFaults
from tests.simulation.tenants import Tenants, prepare
from tests.simulation.upstream_faults import UpstreamFaults

TEMPLATES = (Template(55010, "Nordic 1GB 30d", 30), Template(55011, "Nordic 3GB 30d", 30))
HEALING_ROUNDS = 400


class Verdict(NamedTuple):
    """How an episode ended."""

    seed: int
    broken: list[str]
    digest: str
    calls: int
    seconds: float
    """Virtual ones."""


@dataclass(slots=True)
class Stage:
    """What an OS process prepares once for all its episodes."""

    apart: Tenants
    together: Tenants


def build_stage() -> Stage:
    """The two prepared worlds."""
    return Stage(prepare(shared_account=False), prepare(shared_account=True))


def run_episode(stage: Stage, seed: int, look: Callable[[Episode], object] | None = None) -> Verdict:
    """From the seed to the verdict; nothing else goes in. `look` is shown the episode when it is over."""
    rng = Random(seed)
    tenants = stage.together if rng.random() < 0.3 else stage.apart
    tenants.disk.renew()
    loop = SimLoop(rng)
    try:
        episode = Episode(loop, rng, tenants)
        broken = loop.run_until_complete(episode.run())
        broken += [f"fault in the background: {error!r}" for error in loop.faults]
        if look is not None:
            look(episode)
        return Verdict(seed, broken, episode.digest(), episode.history.calls, loop.time())
    finally:
        loop.close()


class Episode:
    """The cast and the play."""

    def __init__(self, loop: SimLoop, rng: Random, tenants: Tenants) -> None:
        self._loop, self._rng, self._tenants = loop, rng, tenants
        calm = rng.random() < 0.1
        stock = {tenant.account: 3 + int(rng.random() * 6) for tenant in tenants.all}
        self.outside = Outside(
            loop=loop,
            rng=rng,
            disk=tenants.disk,
            provider=Provider(lambda: NOON + loop.time(), stock, TEMPLATES),
            receivers=Receivers(rng, 0.0 if calm else 0.4 * rng.random()),
            store_faults=StoreFaults(rng, 0.0 if calm else 0.15 * rng.random() ** 2),
            upstream_faults=UpstreamFaults(rng, 0.0 if calm else 0.7 * rng.random()),
            keyring=tenants.keyring,
            slow_reads=rng.random() < 0.5,
            reports=[],
            bugs=[],
        )
        self._crashes = 0 if calm else int(rng.random() * 3)
        self._jumps = 0 if calm else int(rng.random() * 2.5)
        self.history = History()
        self.machines = Machines(self.outside, 1 + int(rng.random() * 2))
        self.errands = draw_errands(rng, tenants.all, 2 + int(rng.random() * 5))
        self.ending: Ending | None = None

    async def run(self) -> list[str]:
        """Play, heal, judge."""
        self.machines.begin()
        clients = Clients(self._rng, self.machines, self.history, self._loop.time)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._trouble)
                for errand in self.errands:
                    group.start_soon(clients.run, errand)
            self.machines.end()
            await self._heal(clients)
        finally:
            self.machines.end()
            await anyio.sleep(1)  # what was cancelled ends
        self.ending = self.outside.disk.transact(self._ending)
        return check(self.ending) + [f"a fault of ours: {bug}" for bug in self.outside.bugs] + self._forged()

    def digest(self) -> str:
        """The same for the same seed."""
        ending, outside = self.ending, self.outside
        after = [] if ending is None else [*ending.told, *sorted(ending.deliveries)]
        return self.history.digest(outside.provider.log, outside.receivers.receipts, outside.reports, after)

    def dispatches(self) -> list[Dispatch]:
        """The upstream's own log, in the episode's seconds."""
        return [entry._replace(at=entry.at - NOON) for entry in self.outside.provider.log]

    async def _trouble(self) -> None:
        await self.machines.trouble(crashes=self._crashes, jumps=self._jumps)

    async def _heal(self, clients: Clients) -> None:
        """Nothing fails any more: a new process settles what is left, however long it takes, and everybody asks once more."""
        outside = self.outside
        outside.store_faults.rate = outside.upstream_faults.rate = outside.receivers.rate = 0.0
        replica = self.machines.all[0].start()
        await self._settle(replica)
        for errand in self.errands:
            await clients.call(errand)
        await self._settle(replica)

    async def _settle(self, replica: Replica) -> None:
        """Until nothing waits any more."""
        for _ in range(HEALING_ROUNDS):
            await replica.process.request(replica.round())
            due = self.outside.disk.transact(next_due)
            if due is None:
                return
            # What is due may wait for a place that a dead process holds until its lease ends.
            await anyio.sleep(max(5.0, due / 1000 - replica.clock.now()))
        self.outside.bugs.append(f"something is still due after {HEALING_ROUNDS} rounds")

    def _forged(self) -> list[str]:
        return [f"{event}: a delivery without its id or signature" for event in self.outside.receivers.forged]

    def _ending(self, connection: Connection) -> Ending:
        """Read by hand: what is on trial does not judge itself."""
        raw = self.outside.disk.raw
        del connection
        told = [
            Told(id, organisation, orjson.loads(data)["iccid"])
            for id, organisation, data in raw.execute("select id, organisation, data from event where type = 'esim.issued' order by id")
        ]
        urls = {url: id for id, url in self._tenants.urls.items()}
        return Ending(
            records=self.history.records,
            log=self.outside.provider.log,
            key_of={errand.days: errand.name for errand in self.errands},
            told=told,
            deliveries=[Delivery(*row) for row in raw.execute("select event_id, endpoint_id, state from delivery")],
            endpoints={tenant.id: list(tenant.endpoints) for tenant in self._tenants.all},
            disabled={id for (id,) in raw.execute("select id from webhook_endpoint where status = 'disabled'")},
            taken={(receipt.event, urls[receipt.url]) for receipt in self.outside.receivers.receipts if receipt.taken},
        )
