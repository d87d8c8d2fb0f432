"""What histories of fleets are played on: a small network, a database with its tenants, and processes that can die."""

from asyncio import Task
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio

from clients.http import HttpReply, Outbound, OutboundFailed
from clients.ocs.client import OcsPool
from operations.fleet.sync import FleetSync
from registry.errors import StoreUnavailable
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from simulators.server import AnswerLost
from storage.sealing import OWN_TOKEN_FIELD, Keyring, new_key_setting
from storage.upstream_connections import set_connection
from tests.copies import Original
from tests.harness.tenant_stage import found_tenant
from tests.network_facts import OWN_TOKEN
from tests.simulation.clock import SimClock, SimIds
from tests.simulation.process import Process
from tests.simulation.replica import OUTBOUND, WIRE, Outside, SimulatedReplica
from tests.simulation.store import SimDisk, empty_image
from tests.simulation.tenants import Still
from tests.world import NOON

ACCOUNTS = (8101, 8102)
OWN_ACCOUNTS = frozenset({8101, 8102, 8103, 8104})
"""Of the token's reseller; the small network has the first two."""
DAY = 86_400
KEPT_OF_ACCOUNT = {8101: 7, 8102: 4}
"""Lines of the small network, by account."""
ZONE_NETWORKS = 8
"""Networks that a zone of the small network has at most: each fleet reads the zones again whenever its answers are a minute old."""
NEW_DAYS = 6
"""Lines of the small network are said to be no older."""


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


def build_history_stage(*, small: bool) -> HistoryStage:
    """`small`: with few lines, most of them young, so that a history takes a twentieth of a second."""
    ids = SimIds(Still(), Random(7))
    setting = new_key_setting(ids.bytes)
    disk, now = SimDisk(empty_image()), Still().now()
    made = [(account, disk.transact(found_tenant, ids=ids, account=account, now=now)) for account in ACCOUNTS]
    organisation, secret = disk.transact(found_tenant, ids=ids, account=8103, now=now)
    sealed = Keyring(setting, ids.bytes).seal(OWN_TOKEN, org_id=organisation, field=OWN_TOKEN_FIELD)
    disk.transact(set_connection, organisation=organisation, mode="own", account_id=None, own_token=sealed)
    managed = tuple(FleetTenant(*named, frozenset({account})) for account, named in made)
    network = small_network() if small else build_world(1, int(NOON), history_days=10, lines=30)
    return HistoryStage(disk, setting, managed, FleetTenant(organisation, secret, OWN_ACCOUNTS), Original(network))


def small_network() -> World:
    world = build_world(1, int(NOON), history_days=5, lines=30)
    for account in list(world.accounts):
        lines, kept = list(world.lines_of(account)), KEPT_OF_ACCOUNT.get(account, 0)
        for line in lines[: len(lines) - kept]:  # the last one of each is in stock
            del world.lines[line.id]
        if not kept:
            del world.accounts[account]
    for zone in world.zones.values():
        zone.network_ids = zone.network_ids[:ZONE_NETWORKS]
    for line in world.lines.values():
        if line.activated_at is not None:
            line.activated_at = max(line.activated_at, int(NOON) - NEW_DAYS * DAY)
            line.sim.affected_at = max(line.sim.affected_at or 0, line.activated_at)
            line.cdrs = [cdr for cdr in line.cdrs if cdr.at >= line.activated_at]
    world.forget()
    return world


class NetworkOutbound(Outbound):
    """The way of one process to the network: each call and each answer takes a while of virtual time."""

    def __init__(self, network: SimulatedNetwork, process: Process, clock: SimClock, rng: Random) -> None:
        super().__init__(OUTBOUND)
        self._system, self._process, self._clock, self._rng = network, process, clock, rng

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = 0) -> HttpReply:
        """One exchange. A process that died meanwhile hears nothing; what it sent may have arrived."""
        del keep
        self._process.check()
        await anyio.sleep(self._rng.random() * 0.2)
        world, parts = self._system.world, urlsplit(url)
        assert world is not None
        run_world_to(world, int(self._clock.now()))  # here, since the network itself would do it in a thread
        try:
            answer = await self._system.handle(method, parts.path, parts.query, headers, content)
        except AnswerLost:
            raise OutboundFailed("network") from None
        if self._rng.random() < 0.5:
            await anyio.sleep(self._rng.random() * 0.3)
        self._process.check()
        return HttpReply(answer.status, answer.headers, answer.body, False)


class ChoreWatch(NamedTuple):
    """Where it is noted what a chore raised, and what it reported."""

    broken: list[str]
    reports: list[str]


class FleetWorker:
    """A process that serves calls and keeps the fleets, from its start to its death."""

    def __init__(self, outside: Outside, network: SimulatedNetwork, name: str, watch: ChoreWatch, *, keeps_names: bool) -> None:
        clock = SimClock(outside.loop)
        self.replica = replica = SimulatedReplica(outside, clock, name)
        pool = OcsPool(NetworkOutbound(network, replica.process, clock, outside.rng), WIRE, clock)
        replica.pipeline.deps = replace(replica.deps, ocs=pool, ocs_token=OWN_TOKEN, keeps_names=keeps_names)
        self.sync = FleetSync(replica.pipeline.deps, watch.reports.append)
        self._watch = watch
        self._step: Task[None] | None = None

    @property
    def works(self) -> bool:
        return self._step is not None and not self._step.done()

    def begin_step(self) -> None:
        """The chore, as the worker does it; what it raises is looked at."""
        if not self.works:
            self._step = self.replica.process.spawn(self._guarded_step())

    async def _guarded_step(self) -> None:
        try:
            await self.sync.step()
        except Exception as error:
            if not is_outage(error):
                self._watch.broken.append(f"the chore failed: {error!r}")

    async def end_step(self) -> None:
        while self.works:
            await anyio.sleep(1)


def is_outage(error: BaseException) -> bool:
    """Whether nothing but the store was away."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_outage(each) for each in error.exceptions)
    return isinstance(error, StoreUnavailable)
