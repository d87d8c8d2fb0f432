"""One run of the service in an episode: the real pipeline, ledger, journal, client and worker over simulated ports."""

from asyncio import AbstractEventLoop
from dataclasses import dataclass
from random import Random
from typing import Any

import anyio
import orjson

from clients.http import OutboundLimits
from clients.ocs.pool import OcsPool
from clients.ocs.settings import OcsSettings
from operations.catalogue import CATALOGUE
from operations.deps import Build, Deps
from operations.services.read_cache import ReadCache
from operations.services.stock import StockRoom
from registry.answer import answer
from registry.call import Call
from registry.errors import StoreUnavailable
from registry.limits import Limits
from registry.pipeline import Pipeline
from registry.ports import SharedSecrets, Site
from storage.directory import StoreDirectory
from storage.journal import StoreJournal
from storage.quota import QuotaBlocks
from storage.replicas import renew
from storage.sealing import Keyring
from tests.simulation.clock import SimClock, SimIds
from tests.simulation.process import Process
from tests.simulation.provider import Provider
from tests.simulation.receivers import Receivers, SimSender
from tests.simulation.road import SimOutbound, SimRoad
from tests.simulation.store import SimDisk, SimStore, StoreFaults
from tests.simulation.upstream_faults import UpstreamFaults
from transports.worker import Worker

SITE = Site(
    "https://sim.invalid", "https://sim.invalid/up", "https://sim.invalid/connect", "https://sim.invalid/docs", "https://sim.invalid/mcp"
)
WIRE = OcsSettings(url="http://ocs.sim.invalid/main/v1")
LIMITS = Limits(burst_enabled=False)
OUTBOUND = OutboundLimits(total_seconds=WIRE.total_seconds)
TOKEN = "simulated-token"
RENEW_SECONDS = 10.0


@dataclass(slots=True)
class Outside:
    """What the replicas of an episode share, and what survives them."""

    loop: AbstractEventLoop
    rng: Random
    disk: SimDisk
    provider: Provider
    receivers: Receivers
    store_faults: StoreFaults
    upstream_faults: UpstreamFaults
    keyring: str
    slow_reads: bool
    reports: list[str]
    bugs: list[str]


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as a client sees it."""

    status: int
    body: dict[str, Any]
    raw: bytes
    replayed: bool


class Replica:
    """A process, from start to crash."""

    def __init__(self, outside: Outside, clock: SimClock, name: str) -> None:
        loop, self.outside, self.clock = outside.loop, outside, clock
        self.process = process = Process(loop, name)
        self.ids = ids = SimIds(clock, Random(outside.rng.getrandbits(64)))
        self.store = store = SimStore(loop, outside.disk, process, outside.rng, outside.store_faults, slow_reads=outside.slow_reads)
        keyring = Keyring(outside.keyring, ids.bytes)
        blocks = QuotaBlocks(store, LIMITS.quota_block)
        self.journal = StoreJournal(store, keyring=keyring, blocks=blocks, clock=clock, replica=ids.new("rpl_"))
        sender = SimSender(loop, clock, process, outside.receivers)
        self.worker = Worker(store=store, keyring=keyring, sender=sender, clock=clock, ids=ids, report=outside.reports.append)
        road = SimRoad(loop, outside.provider, process, outside.upstream_faults)
        secrets = SharedSecrets()
        deps = Deps(
            store=store,
            keyring=keyring,
            clock=clock,
            ids=ids,
            site=SITE,
            secrets=secrets,
            build=Build("1.0.0", "sim"),
            webhook_exempt=(),
            wake_worker=self.worker.wake,
            ocs=OcsPool(SimOutbound(road, OUTBOUND), WIRE, clock),
            reads=ReadCache(clock),
            stock=StockRoom(store, clock, ids),
            replica=self.journal.replica,
            ocs_token=TOKEN,
        )
        self.pipeline = Pipeline(
            deps=deps,
            clock=clock,
            ids=ids,
            directory=StoreDirectory(store),
            journal=self.journal,
            quota=blocks,
            sessions=None,
            secrets=secrets,
            limits=LIMITS,
            site=SITE,
        )

    async def call(
        self, operation: str, secret: str, arguments: dict[str, Any], *, key: str | None = None, confirm: str | None = None
    ) -> Said:
        """One call by a client outside; Gone when the process dies before it has answered."""
        call = Call(
            operation=CATALOGUE.operations[operation],
            surface="http",
            request_id=self.ids.new("req_"),
            credential=secret,
            arguments=arguments,
            idempotency_key=key,
            confirm_token=confirm,
        )
        reply = await self.process.request(answer(self.pipeline, call, self._bug))
        raw = orjson.dumps(reply.refusal.body(call.request_id)) if reply.refusal else reply.body
        return Said(reply.status, orjson.loads(raw), raw, "Idempotent-Replayed" in reply.headers)

    async def live(self) -> None:
        """Renew the lease, write what is buffered, and let the worker do its rounds, until the process dies."""
        while True:
            await self._guarded(self._books)
            await self._guarded(self.worker.step)
            await anyio.sleep(RENEW_SECONDS * (0.5 + 0.5 * self.outside.rng.random()))

    async def round(self) -> None:
        """Once all of what a living process does by itself."""
        await self._guarded(self._books)
        await self._guarded(self.worker.step)

    async def _books(self) -> None:
        await self.store.write(renew, replica=self.journal.replica, now=self.clock.now())
        await self.journal.flush()

    async def _guarded(self, work: Any) -> None:
        """The store may be unavailable; nothing else may go wrong."""
        try:
            await work()
        except StoreUnavailable as error:
            self.outside.reports.append(f"{self.process.name}: {error}")

    def _bug(self, call: Call, error: BaseException) -> None:
        """A fault of ours: the episode fails."""
        self.outside.bugs.append(f"{call.operation.id}: {type(error).__name__}: {error}")
