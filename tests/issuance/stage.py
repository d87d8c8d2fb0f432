"""A service with an operator of account 8101, whose stock holds 14 free eSIMs, and what was sent to the network for them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import anyio
import httpx
import sqlalchemy as sa

from operations.caches.answers import ReadCache
from operations.caches.stock import StockSnapshots
from operations.catalogue import CATALOGUE
from operations.changes.requests.approval_requests import ApprovalRequests
from registry.caller import Tier
from registry.limits import Limits
from registry.pipeline import Pipeline
from registry.policy import quota_period
from registry.rate_limits import RateLimiter
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.world_runtime import NetworkCall
from storage.engine.sql import Connection, Query
from storage.issuance import ISSUANCE
from storage.journal import StoreJournal
from storage.quota import QuotaBlocks, read_quota_used
from storage.replicas import renew_replica
from tests.connectivity.requests import INTENTS
from tests.issuance.road import Road
from tests.network_facts import ACCOUNT, DELETE, DRAW, TEMPLATE
from tests.world import HOST, Credentials, World, open_world
from transports.http.door import HttpDoor
from transports.http.request import HttpRules

INVENTORY_PATH = "/v1/subscribers/issue-from-inventory"
PLAN_SLUG = "nordic-1gb-30d"
FREE_ESIMS = 14
ISSUANCE_WRITES = frozenset({DRAW, DELETE, "changeSimStatus"})


class Held(NamedTuple):
    """A row of the ledger, in short."""

    organisation: str
    key: str
    state: str
    iccid: str | None
    held: str | None
    replied: str | None


LEDGER = Query(Held, sa.select(*(ISSUANCE.c[name] for name in Held._fields)).order_by(ISSUANCE.c.dispatched, ISSUANCE.c.key))


def read_ledger(connection: Connection) -> list[Held]:
    return connection.all(LEDGER)


@dataclass(slots=True)
class IssuanceStage:
    world: World
    road: Road
    me: Credentials
    http: httpx.AsyncClient

    async def issue(
        self,
        key: str | None = "k",
        *,
        http: httpx.AsyncClient | None = None,
        headers: dict[str, str] | None = None,
        account: int = ACCOUNT,
        template: int = TEMPLATE,
        **body: Any,
    ) -> httpx.Response:
        given = {"accountId": account, "packageTemplateId": template, **body}
        named = {} if key is None else {"X-Idempotency-Key": key}
        return await (http or self.http).post(INVENTORY_PATH, json=given, headers={**named, **(headers or {})})

    async def intend(self, key: str = "k", *, http: httpx.AsyncClient | None = None, plan: str = PLAN_SLUG, **body: Any) -> httpx.Response:
        return await (http or self.http).post(INTENTS, json={"plan": plan, **body}, headers={"Idempotency-Key": key})

    async def ask_to_return(self, key: str = "k", *, token: str | None = None, http: httpx.AsyncClient | None = None) -> httpx.Response:
        """The DELETE of one key, with or without its confirm token."""
        headers = {} if token is None else {"X-Confirm-Token": token}
        segment = quote(key, safe="").replace(".", "%2E")  # clients take `.` and `..` out of a path before they send it
        return await (http or self.http).delete(f"{INVENTORY_PATH}/{segment}", headers=headers)

    async def token(self, key: str = "k", *, http: httpx.AsyncClient | None = None) -> str:
        challenge = await self.ask_to_return(key, http=http)
        assert challenge.status_code == 202, challenge.text
        return challenge.json()["confirm_token"]

    async def give_back(self, key: str = "k", *, http: httpx.AsyncClient | None = None) -> httpx.Response:
        return await self.ask_to_return(key, token=await self.token(key, http=http), http=http)

    def sent(self, method: str = DRAW, since: int = 0) -> list[NetworkCall]:
        return [call for call in self.world.sandbox.calls[since:] if call.method == method]

    def dispatches(self) -> int:
        return len(self.sent())

    def methods(self, since: int) -> list[str]:
        """The methods that reached the network, but for the first ones."""
        return [call.method for call in self.world.sandbox.calls[since:]]

    def trouble(self, *faults: NetworkFault) -> None:
        for fault in faults:
            self.world.sandbox.faults.add(fault)

    async def ledger(self) -> list[Held]:
        return await self.world.store.read(read_ledger)

    async def states(self) -> dict[str, str]:
        return {row.key: row.state for row in await self.ledger()}

    async def line(self, iccid: str) -> Line:
        network = await self.world.network()
        return next(line for line in network.lines.values() if line.iccid == iccid)

    async def free(self, account: int = ACCOUNT) -> int:
        network = await self.world.network()
        return sum(line.sim.status == "FREE" for line in network.lines_of(account))

    async def take_stock_away(self, account: int = ACCOUNT, *, but: int = 0) -> None:
        network = await self.world.network()
        free = [line for line in network.lines_of(account) if line.sim.status == "FREE"]
        for line in free[but:]:
            line.sim.status = "AFFECTED"

    async def charged(self) -> int:
        """Calls charged to the operator today, without those that were only leased."""
        period = quota_period(self.world.clock.now())
        leased = self.world.blocks.unspent(self.me.organisation, period)
        return await self.world.store.read(read_quota_used, organisation=self.me.organisation, period=period.name) - leased

    async def control(self, path: str, body: bytes) -> None:
        answer = await self.world.sandbox.handle("POST", f"/control/{path}", body=body)
        assert answer.status == 200, answer.body

    async def live_on(self, seconds: float) -> None:
        """Time passes, and this process lives."""
        self.world.clock.advance(seconds)
        await self.renew()

    async def renew(self) -> None:
        await self.world.store.write(renew_replica, replica=self.world.journal.replica, now=self.world.clock.now())


def replay_of(answer: httpx.Response) -> tuple[int, bytes, str | None]:
    """What must be the same at every replay, and whether it is one."""
    return answer.status_code, answer.content, answer.headers.get("Idempotent-Replayed")


async def at_once(calls: Sequence[Callable[[], Awaitable[httpx.Response]]]) -> list[httpx.Response]:
    """All calls in parallel; their answers in the order of the calls."""
    answers: dict[int, httpx.Response] = {}

    async def one(place: int, call: Callable[[], Awaitable[httpx.Response]]) -> None:
        answers[place] = await call()

    async with anyio.create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(one, place, call)
    return [answers[place] for place in range(len(calls))]


async def another_process(stage: IssuanceStage) -> World:
    """A second server over the same database and network, with its own name, caches and door."""
    first, of = stage.world, stage.world.pipeline
    blocks = QuotaBlocks(first.store, of.rate_limiter.limits.quota_block)
    name = first.ids.new("rpl_")
    journal = StoreJournal(first.store, keyring=of.deps.keyring, blocks=blocks, clock=first.clock, replica=name)
    await first.store.write(renew_replica, replica=name, now=first.clock.now())
    deps = replace(
        of.deps,
        replica=name,
        reads=ReadCache(first.clock),
        stock=StockSnapshots(first.store, first.clock, first.ids),
        ocs=Road(first.sandbox).pool(first.clock),
    )
    pipeline = Pipeline(
        catalogue=CATALOGUE,
        deps=deps,
        clock=first.clock,
        ids=of.ids,
        directory=of.directory,
        journal=journal,
        quota=blocks,
        sessions=of.sessions,
        secrets=of.secrets,
        rate_limiter=RateLimiter(of.rate_limiter.limits, of.site, first.clock),
        site=of.site,
        approvals=ApprovalRequests(deps),
    )
    faults = first.faults
    door = HttpDoor(
        pipeline,
        rules=HttpRules(hosts=frozenset({HOST})),
        log=first.lines.append,
        fault=lambda *fault: faults.append(fault),
    )
    return World(
        door,
        pipeline,
        first.store,
        first.clock,
        first.ids,
        journal,
        blocks,
        first.sandbox,
        first.payments,
        first.lines,
        first.postman,
        faults,
    )


@asynccontextmanager
async def open_issuance_stage(folder: Path, url: str | None = None, *, concurrency: int = 8) -> AsyncGenerator[IssuanceStage]:
    """No fault of ours may happen."""
    async with open_world(folder, CATALOGUE, url=url, limits=Limits(burst_enabled=False)) as world:
        road = Road(world.sandbox)
        former = world.pipeline.deps
        world.pipeline.deps = replace(former, ocs=road.pool(world.clock, concurrency))
        me = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        await world.network()
        async with world.client(me.secret) as http:
            yield IssuanceStage(world, road, me, http)
        await former.ocs.aclose()
        await world.pipeline.deps.ocs.aclose()
        assert world.faults == []
