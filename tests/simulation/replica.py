"""One run of the service in an episode: the real pipeline, ledger, journal, client and worker over simulated ports."""

from asyncio import AbstractEventLoop, Task
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio
import orjson

from clients.circuit_breaker import CircuitBreaker
from clients.http import Outbound, OutboundLimits
from clients.ocs.client import OcsPool
from clients.ocs.link import OcsSettings
from clients.payments.client import ProcessorClient, ProcessorSettings
from operations.caches.answers import ReadCache
from operations.caches.event_watch import EventWatch
from operations.caches.stock import StockSnapshots
from operations.caches.usage import UsageCache
from operations.catalogue import CATALOGUE
from operations.changes.requests.approval_requests import ApprovalRequests
from operations.deps import Build, Deps
from operations.intelligence.verdicts.judge import LineJudge
from operations.ledger.event_rights import ChooserRights
from operations.storefronts.sales.checkout import BegunCheckout, begin_order, begin_top_up
from registry.answer import InternalCalls, answer_call
from registry.call import Call, Reply
from registry.errors import NotFound, StoreUnavailable
from registry.limits import Limits
from registry.pipeline import Pipeline
from registry.ports import SharedSecrets, Site
from registry.rate_limits import RateLimiter
from storage.directory import StoreDirectory
from storage.journal import StoreJournal
from storage.orders import find_order
from storage.quota import QuotaBlocks
from storage.replicas import renew_replica
from storage.sealing import Keyring
from storage.storefronts import Storefront, StorefrontPlan
from tests.simulation.clock import SimClock, SimIds
from tests.simulation.crash_points import CrashPoints
from tests.simulation.payments import Payments
from tests.simulation.process import Process
from tests.simulation.provider import ModelNetwork
from tests.simulation.receivers import Receivers, SimSender
from tests.simulation.road import CALLER, SimRoad
from tests.simulation.store import SimDisk, SimStore, StoreFaults
from tests.simulation.upstream_faults import UpstreamFaults
from transports.worker.chores import reconciliation_chore, recovery_chore, shop_chores
from transports.worker.worker import Worker

SITE = Site(
    "https://sim.invalid",
    "https://sim.invalid/up",
    "https://sim.invalid/connect",
    "https://sim.invalid/docs",
    "https://sim.invalid/mcp",
    "https://sim.invalid/sign-in",
)
WIRE = OcsSettings(url="http://ocs.sim.invalid/main/v1")
LIMITS = Limits(burst_enabled=False)
OUTBOUND = OutboundLimits(total_seconds=WIRE.total_seconds)
TOKEN = "simulated-token"
NO_PAYMENTS = ProcessorClient(ProcessorSettings(key="", webhook_secrets=()), Outbound())
"""Where nothing is sold."""
SIMULATED_SHOP_KEY = "storefront-key-of-the-simulation"
WEBHOOK = "operator_billing_payments_webhook"
RENEW_SECONDS = 10.0
WORK_SECONDS = 8.0


@dataclass(slots=True)
class Outside:
    """What the replicas of an episode share, and what survives them."""

    loop: AbstractEventLoop
    rng: Random
    disk: SimDisk
    provider: ModelNetwork
    receivers: Receivers
    store_faults: StoreFaults
    upstream_faults: UpstreamFaults
    points: CrashPoints
    keyring: str
    slow_reads: bool
    reports: list[str]
    bugs: list[str]
    payments: Payments | None = None
    """Where something is sold."""
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """The number in the history that stands for an order of a shop, which nobody calls for."""
    breakers: list[CircuitBreaker] = field(default_factory=list[CircuitBreaker])
    """Of every process there was."""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    status: int
    body: dict[str, Any]
    raw: bytes
    replayed: bool


class SimulatedReplica:
    """A process, from start to crash."""

    def __init__(self, outside: Outside, clock: SimClock, name: str) -> None:
        loop, self.outside, self.clock = outside.loop, outside, clock
        self._joined = False
        self._loops: list[Task[None]] = []
        self.process = process = Process(loop, name)
        self.ids = ids = SimIds(clock, Random(outside.rng.getrandbits(64)))
        self.store = store = SimStore(
            loop,
            outside.disk,
            process,
            outside.rng,
            outside.store_faults,
            slow_reads=outside.slow_reads,
            points=outside.points,
            calls=outside.calls,
        )
        keyring = Keyring(outside.keyring, ids.bytes)
        blocks = QuotaBlocks(store, LIMITS.quota_block)
        self.journal = StoreJournal(store, keyring=keyring, blocks=blocks, clock=clock, replica=ids.new("rpl_"))
        sender = SimSender(loop, clock, process, outside.receivers)
        report = outside.reports.append
        road = SimRoad(loop, outside.provider, process, outside.upstream_faults, outside.points)
        secrets = SharedSecrets(storefront=SIMULATED_SHOP_KEY)
        pays = outside.payments
        deps = Deps(
            store=store,
            keyring=keyring,
            clock=clock,
            ids=ids,
            site=SITE,
            secrets=secrets,
            build=Build("1.0.0", "sim"),
            webhook_exempt=(),
            wake_worker=unheard,
            post=unheard,
            toolsets=(),
            ocs=OcsPool(Outbound(OUTBOUND, transport=road), WIRE, clock),
            payments=NO_PAYMENTS if pays is None else pays.client(loop, process, outside.points),
            reads=ReadCache(clock),
            stock=StockSnapshots(store, clock, ids),
            replica=self.journal.replica,
            weeks=UsageCache(),
            watch=EventWatch(store),
            internal_calls=InternalCalls(),
            judge=LineJudge(in_threads=False),
            rate_limiter=RateLimiter(Limits(), SITE, clock),
            ocs_token=TOKEN,
        )
        self.deps = deps
        outside.breakers.append(deps.ocs.system.breaker)
        rights = ChooserRights(deps.internal_calls.operations_in)
        chores = [
            recovery_chore(deps),
            reconciliation_chore(deps, report),
            *([] if pays is None else shop_chores(deps, report)),
        ]
        self.worker = Worker(store=store, keyring=keyring, sender=sender, clock=clock, ids=ids, report=report, rights=rights, chores=chores)
        self.pipeline = Pipeline(
            catalogue=CATALOGUE,
            deps=deps,
            clock=clock,
            ids=ids,
            directory=StoreDirectory(store),
            journal=self.journal,
            quota=blocks,
            sessions=None,
            secrets=secrets,
            rate_limiter=RateLimiter(LIMITS, SITE, clock),
            site=SITE,
            approvals=ApprovalRequests(deps),
        )

    async def call(
        self, number: int, operation: str, secret: str, arguments: dict[str, Any], *, key: str | None = None, confirm: str | None = None
    ) -> ClientAnswer:
        """One call by a client outside, who has numbered it; Gone when the process dies before it has answered."""
        call = Call(
            operation=CATALOGUE.operations[operation],
            surface="http",
            request_id=self.ids.new("req_"),
            credential=secret,
            arguments=arguments,
            idempotency_key=f'"{key}"' if key is not None and number % 4 == 3 else key,  # in quotes it is the same key
            confirm_token=confirm,
        )
        reply = await self.process.request(self._numbered(number, call))
        raw = orjson.dumps(reply.refusal.body(call.request_id)) if reply.refusal else reply.body
        return ClientAnswer(reply.status, orjson.loads(raw), raw, "Idempotent-Replayed" in reply.headers)

    async def hear(self, body: bytes, headers: Mapping[str, str]) -> int:
        """The processor's webhook; the status that it is answered with."""

        async def whole(limit: int) -> bytes:
            del limit
            return body

        operation, request_id = CATALOGUE.operations[WEBHOOK], self.ids.new("req_")
        call = Call(operation=operation, surface="http", request_id=request_id, headers=headers, read_body=whole)
        return (await self.process.request(answer_call(self.pipeline, call, self._bug))).status

    async def sell(self, shop: Storefront, plan: StorefrontPlan, language: str, order: str | None) -> BegunCheckout:
        """As the shop's page begins an order, or a top-up of one."""
        return await self.process.request(self._sell(shop, plan, language, order))

    async def _sell(self, shop: Storefront, plan: StorefrontPlan, language: str, order: str | None) -> BegunCheckout:
        deps, now = self.deps, self.clock.now()
        if order is None:
            return await begin_order(deps, shop=shop, plan=plan, language=language, now=now)
        row = await self.store.read(find_order, order=order)
        if row is None:
            raise NotFound("there is no such order")
        return await begin_top_up(deps, order=row, plan=plan, language=language, now=now)

    @property
    def ready(self) -> bool:
        return self.process.alive and self._joined

    async def live(self) -> None:
        """Join the others, then renew the lease and do the worker's rounds, until the process dies."""
        self.process.spawn(self._live())
        await self.process.died

    async def _live(self) -> None:
        while not self._joined:
            await self._guarded(self._books)
            await anyio.sleep(1)
        self._loops = [
            self.process.spawn(self._again(self._books, RENEW_SECONDS)),
            self.process.spawn(self._again(self.worker.step, WORK_SECONDS)),
        ]

    async def renew(self) -> None:
        """Renew the lease, and write what is buffered."""
        await self._guarded(self._books)

    async def work(self) -> None:
        await self._guarded(self.worker.step)

    def rest(self) -> None:
        """Live on, and do nothing by itself any more."""
        for loop in self._loops:
            loop.cancel()

    async def _again(self, work: Callable[[], Awaitable[object]], seconds: float) -> None:
        while True:
            await self._guarded(work)
            await anyio.sleep(seconds * (0.5 + 0.5 * self.outside.rng.random()))

    async def _numbered(self, number: int, call: Call) -> Reply:
        CALLER.set(number)
        return await answer_call(self.pipeline, call, self._bug)

    async def _books(self) -> None:
        await self.store.write(renew_replica, replica=self.journal.replica, now=self.clock.now())
        self._joined = True
        await self.journal.flush()

    async def _guarded(self, work: Callable[[], Awaitable[object]]) -> None:
        """The store may be unavailable; nothing else may go wrong."""
        try:
            await work()
        except StoreUnavailable as error:
            self.outside.reports.append(f"{self.process.name}: {error}")

    def _bug(self, call: Call, error: BaseException) -> None:
        """A fault of ours: the episode fails."""
        self.outside.bugs.append(f"{call.operation.id}: {type(error).__name__}: {error}")


def unheard() -> None:
    """The worker is not woken: it looks by itself every few seconds."""
