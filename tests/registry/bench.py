"""The machine on a bench: the real pipeline over a real store, asked without a door."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson

from operations.changes.requests.approval_requests import ApprovalRequests
from operations.deps import Deps
from registry.answer import answer_call
from registry.call import Call, Reply, Surface
from registry.caller import Caller, Tier
from registry.catalogue import AnyOperation, Catalogue, Toolset
from registry.errors import Unauthorized
from registry.limits import Limits
from registry.pipeline import Pipeline
from registry.policy import quota_period
from registry.ports import SessionClaims, SharedSecrets
from registry.rate_limits import RateLimiter
from storage.engine.store import Store
from storage.journal import StoreJournal
from storage.quota import QuotaBlocks
from storage.replicas import renew_replica
from storage.upstream_connections import set_connection
from tests.registry import ledgers, things
from tests.registry.ledgers import AuditRow, ClaimRow
from tests.world import Credentials, SettableClock, World, open_world

CATALOGUE = Catalogue([Toolset("things", "Things.", (things,))])
CALM = Limits(burst_enabled=False)
BENCH_SECRETS = SharedSecrets(internal="internal-secret", storefront="storefront-secret")


class StubSessions:
    """An identity provider whose tokens say `session.SUBJECT.ORGANISATION`, where `-` names no organisation."""

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        kind, subject, organisation = token.split(".")
        if kind != "session":
            raise Unauthorized("The session is not one of ours", presented=True)
        return SessionClaims(subject, None if organisation == "-" else organisation)


@dataclass(frozen=True, slots=True)
class BenchAnswer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> dict[str, object]:
        return orjson.loads(self.body)

    @property
    def code(self) -> object:
        return self.json.get("code")


@dataclass(slots=True)
class BenchReplica:
    """One process of several over one database."""

    pipeline: Pipeline[Deps]
    journal: StoreJournal
    blocks: QuotaBlocks


@dataclass(slots=True)
class Bench:
    world: World

    @property
    def store(self) -> Store:
        return self.world.store

    @property
    def clock(self) -> SettableClock:
        return self.world.clock

    async def ask(
        self,
        operation: AnyOperation,
        who: Credentials | str | None = None,
        /,
        *,
        key: str | None = None,
        token: str | None = None,
        surface: Surface = "http",
        caller: Caller | None = None,
        at: BenchReplica | None = None,
        client: str = "192.0.2.1",
        **arguments: object,
    ) -> BenchAnswer:
        call = Call(
            operation,
            surface,
            self.world.ids.new("req_"),
            credential=who.secret if isinstance(who, Credentials) else who,
            caller=caller,
            arguments=arguments,
            idempotency_key=key,
            confirm_token=token,
            client=client,
        )
        return await self.answer(call, at)

    async def answer(self, call: Call, at: BenchReplica | None = None) -> BenchAnswer:
        """One call that a test has built itself."""
        return said(await answer_call(at.pipeline if at else self.world.pipeline, call, self._report))

    async def token(self, operation: AnyOperation, who: Credentials, /, **arguments: Any) -> str:
        challenge = await self.ask(operation, who, **arguments)
        assert challenge.status == 202, challenge
        return str(challenge.json["confirm_token"])

    async def connected(self, tier: Tier = Tier.PRO) -> Credentials:
        return await self.world.caller(tier, mode="managed", account=7)

    async def connect(self, organisation: str) -> None:
        await self.store.write(set_connection, organisation=organisation, mode="managed", account_id=7, own_token=None)

    async def counters(self) -> dict[str, int]:
        return await self.store.read(things.counters)

    async def audited(self) -> list[AuditRow]:
        await self.world.journal.flush()
        return await self.store.read(ledgers.audited)

    async def claimed(self) -> list[ClaimRow]:
        return await self.store.read(ledgers.claimed)

    async def called(self, who: Credentials, *replicas: BenchReplica) -> int:
        """Calls charged: the stored total without what a process has leased and not used."""
        total = (await self.store.read(ledgers.used)).get(who.organisation, 0)
        period = quota_period(self.clock.now())
        blocks = [self.world.blocks, *(replica.blocks for replica in replicas)]
        return total - sum(each.unspent(who.organisation, period) for each in blocks)

    async def leave(self, who: Credentials, calls: int, tier: Tier) -> None:
        """Let the organisation have so many calls left today."""
        limit = self.world.pipeline.rate_limiter.limits.tiers[tier].calls_per_day
        period = quota_period(self.clock.now()).name
        await self.store.write(ledgers.set_used, organisation=who.organisation, period=period, used=limit - calls)

    async def replica(self) -> BenchReplica:
        """Another process over the same database."""
        of = self.world.pipeline
        blocks = QuotaBlocks(self.store, of.rate_limiter.limits.quota_block)
        name = self.world.ids.new("rpl_")
        journal = StoreJournal(self.store, keyring=of.deps.keyring, blocks=blocks, clock=self.clock, replica=name)
        await self.store.write(renew_replica, replica=name, now=self.clock.now())
        pipeline = Pipeline(
            catalogue=CATALOGUE,
            deps=of.deps,
            clock=self.clock,
            ids=of.ids,
            directory=of.directory,
            journal=journal,
            quota=blocks,
            sessions=of.sessions,
            secrets=of.secrets,
            rate_limiter=RateLimiter(of.rate_limiter.limits, of.site, self.clock),
            site=of.site,
            approvals=ApprovalRequests(of.deps),
        )
        return BenchReplica(pipeline, journal, blocks)

    async def at_once(self, count: int, operation: AnyOperation, who: Credentials, /, **asked: Any) -> list[BenchAnswer]:
        """The same call so many times in parallel."""
        answers: list[BenchAnswer] = []

        async def one() -> None:
            answers.append(await self.ask(operation, who, **asked))

        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(one)
        return answers

    def _report(self, call: Call, error: BaseException) -> None:
        self.world.faults.append((call.request_id, call.operation.id, error))


def said(reply: Reply) -> BenchAnswer:
    return BenchAnswer(reply.status, reply.body, reply.headers)


def statuses(answers: list[BenchAnswer]) -> dict[int, int]:
    found: dict[int, int] = {}
    for each in answers:
        found[each.status] = found.get(each.status, 0) + 1
    return found


def sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@asynccontextmanager
async def open_bench(
    folder: Path, url: str | None = None, *, limits: Limits = CALM, secrets: SharedSecrets = BENCH_SECRETS
) -> AsyncGenerator[Bench]:
    """A bench over the migrated database at `url`, or over a new SQLite file."""
    things.GATES.clear()
    async with open_world(folder, CATALOGUE, url=url, limits=limits, secrets=secrets, sessions=StubSessions()) as world:
        yield Bench(world)
