"""A whole service in one process for tests: real pipeline, real SQLite store, HTTP door; the clock and the ids are ours.

async with open_world(tmp_path, CATALOGUE) as world:
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as http:
        answer = await http.get("/v1/plans")
    world.clock.advance(120)
"""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import cast

import httpx

from clients.mail.letter import Letter
from clients.payments.records import AccountKind
from operations.caches.answers import ReadCache
from operations.caches.event_watch import EventWatch
from operations.caches.stock import StockSnapshots
from operations.caches.usage import UsageCache
from operations.catalogue import CATALOGUE
from operations.changes.requests.approval_requests import ApprovalRequests
from operations.deps import Build, Deps
from operations.intelligence.verdicts.judge import LineJudge
from operations.secret_tokens import new_api_key
from registry.answer import InternalCalls
from registry.caller import UNRESTRICTED, Restrictions, Role, Tier
from registry.catalogue import Catalogue
from registry.ids import base32
from registry.limits import Limits
from registry.pipeline import Pipeline
from registry.ports import Sessions, SharedSecrets, Site
from registry.rate_limits import RateLimiter
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from simulators.processor.simulated_processor import SimulatedProcessor
from storage.api_keys import insert_key, revoke_key, write_restrictions
from storage.connect_accounts import attach_connect_account
from storage.directory import StoreDirectory
from storage.engine.store import Store, open_store
from storage.journal import StoreJournal
from storage.organisations import add_member, create_organisation, set_tier
from storage.people import create_person
from storage.quota import QuotaBlocks
from storage.replicas import renew_replica
from storage.sealing import OWN_TOKEN_FIELD, Keyring, new_key_setting
from storage.upstream_connections import set_connection
from tests.copies import Original
from tests.databases import migrated_sqlite
from tests.direct import Direct
from tests.mail_catcher import MailCatcher
from tests.membership_rows import leave
from transports.http.door import HttpDoor, InnerApplication
from transports.http.request import HttpRules
from transports.logs import RequestLine
from transports.payments import SIMULATED_PROCESSOR_KEY, simulated_processor
from transports.upstream import SIMULATED_OCS_TOKEN, deliver_in_process, simulated_pool
from transports.worker.mailer import Mailer

NOON = 1_800_014_400.0  # 2027-01-15T12:00:00Z
HOST = "reseller.test"
ORIGIN = "https://console.test"
BASE = httpx.URL(f"http://{HOST}/")
SITE = Site(
    base_url=f"https://{HOST}",
    upgrade_url=f"https://{HOST}/upgrade",
    connect_url=f"https://{HOST}/connect",
    docs_url=f"https://{HOST}/docs",
    mcp_url=f"https://{HOST}/mcp",
    sign_in_url=f"https://{HOST}/auth/sign-in",
)


class SettableClock:
    """Wall and monotonic time that move when a test says so."""

    def __init__(self, now: float = NOON) -> None:
        self.wall, self.steady = now, 1000.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


class CountingIds:
    """The same names in every run: the clock's milliseconds and a count."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock, self.count = clock, 0

    def new(self, prefix: str) -> str:
        self.count += 1
        return prefix + base32((int(self._clock.now() * 1000) << 80) | self.count)

    def secret(self, prefix: str) -> str:
        return prefix + base32(int.from_bytes(self.bytes(17)) >> 6)

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return hashlib.shake_256(b"test %d" % self.count).digest(count)

    def fraction(self) -> float:
        return 0.5


@dataclass(frozen=True, slots=True)
class Credentials:
    """A person in an organisation, and the API key they made."""

    organisation: str
    person: str
    key_id: str
    secret: str


@dataclass(slots=True)
class World:
    """The service, and what a test does behind its back."""

    door: HttpDoor
    pipeline: Pipeline[Deps]
    store: Store
    clock: SettableClock
    ids: CountingIds
    journal: StoreJournal
    blocks: QuotaBlocks
    sandbox: SimulatedNetwork
    """The simulated charging system behind it; organisations of account 8101 have a fleet there."""
    payments: SimulatedProcessor
    """The simulated payment processor behind it."""
    lines: list[RequestLine] = field(default_factory=list[RequestLine])
    """The request log."""
    postman: Mailer | None = None
    """Takes mails to the catcher when a test asks for its letters."""
    faults: list[tuple[str, str, BaseException]] = field(default_factory=list[tuple[str, str, BaseException]])
    """Request id, operation and exception of every fault of ours."""

    def client(self, secret: str | None = None, **headers: str) -> httpx.AsyncClient:
        """An HTTP client of the door; a fault of ours is an answer, as it is over a network."""
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        transport = httpx.ASGITransport(app=self.door, raise_app_exceptions=False)
        return Direct(transport=transport, base_url=BASE, headers=headers)

    async def letters(self) -> list[Letter]:
        assert self.postman is not None and isinstance(self.postman.transport, MailCatcher)
        await self.postman.deliver()
        return self.postman.transport.letters

    async def network(self) -> Network:
        await self.sandbox.handle("GET", "/control/state")
        assert self.sandbox.world is not None
        return self.sandbox.world

    async def organisation(
        self,
        tier: Tier = Tier.PRO,
        *,
        name: str = "Reseller",
        mode: str | None = None,
        account: int | None = None,
        service_own: bool = False,
        token: str | None = None,
    ) -> str:
        """A new organisation; with a mode it is connected to the upstream, with a token by one of its own."""
        id = self.ids.new("org_")
        now = self.clock.now()
        await self.store.write(
            create_organisation, id=id, name=name, tier=tier, now=now, mode=mode, account_id=account, service_own=service_own
        )
        if token is not None:
            sealed = self.pipeline.deps.keyring.seal(token, org_id=id, field=OWN_TOKEN_FIELD)
            await self.store.write(set_connection, organisation=id, mode="own", account_id=None, own_token=sealed)
        return id

    async def person(self, *, subject: str | None = None) -> str:
        """A new person without an organisation."""
        id = self.ids.new("usr_")
        await self.store.write(create_person, id=id, now=self.clock.now(), subject=subject)
        return id

    async def join(self, person: str, organisation: str, role: Role = Role.ADMIN) -> None:
        await self.store.write(add_member, person=person, organisation=organisation, role=role, now=self.clock.now())

    async def leave(self, person: str, organisation: str) -> None:
        await self.store.write(leave, person=person, organisation=organisation)

    async def move_to(self, tier: Tier, organisation: str) -> None:
        await self.store.write(set_tier, organisation=organisation, tier=tier)

    async def key(
        self, person: str, organisation: str | None, *, expires_at: int | None = None, restrictions: Restrictions = UNRESTRICTED
    ) -> tuple[str, str]:
        """A new API key: its id and its secret."""
        key, id, now = new_api_key(self.ids), self.ids.new("key_"), self.clock.now()
        await self.store.write(
            insert_key,
            id=id,
            digest=key.digest,
            prefix=key.prefix,
            organisation=organisation,
            person=person,
            name="test",
            now=now,
            expires_at=expires_at,
            restrictions=write_restrictions(restrictions),
        )
        return id, key.secret

    async def revoke(self, caller: Credentials) -> None:
        await self.store.write(revoke_key, key=caller.key_id, organisation=caller.organisation, now=self.clock.now())

    async def caller(
        self,
        tier: Tier = Tier.PRO,
        role: Role = Role.ADMIN,
        *,
        organisation: str | None = None,
        mode: str | None = None,
        account: int | None = None,
        service_own: bool = False,
        token: str | None = None,
    ) -> Credentials:
        """A new person with a key, in a new organisation or in the given one."""
        organisation = organisation or await self.organisation(tier, mode=mode, account=account, service_own=service_own, token=token)
        person = await self.person()
        await self.join(person, organisation, role)
        key_id, secret = await self.key(person, organisation)
        return Credentials(organisation, person, key_id, secret)

    async def connect_payments(self, caller: Credentials, *, kind: AccountKind = "express", active: bool = True) -> str:
        """An account of the caller's organisation at the payment processor, ready to be paid; its events are told."""
        processor, now = self.pipeline.deps.payments, self.clock.now()
        if kind == "express":
            made = await processor.create_account(key=self.ids.new("key_"), email="owner@reseller.test", country="US", metadata={})
            account = made.id
        else:
            account = str((await self.ask_payments("POST", "accounts", {"kind": kind}))["id"])
        if active:
            await self.ask_payments("POST", f"accounts/{account}", {"do": "enable"})
        await self.store.write(
            attach_connect_account,
            organisation=caller.organisation,
            account=account,
            kind=kind,
            status="active" if active else "pending",
            as_of=now,
            now=now,
        )
        await self.settle_payments()
        return account

    async def charge(
        self,
        account: str,
        amount: int,
        currency: str,
        fee: int = 0,
        metadata: Mapping[str, str] | None = None,
        outcome: str = "succeeded",
    ) -> str:
        """Somebody pays into an account at the processor; the service knows of it when `settle_payments` has told it. The charge's id."""
        wanted: dict[str, object] = {
            "account": account,
            "amount": amount,
            "currency": currency,
            "fee": fee,
            "metadata": metadata or {},
            "outcome": outcome,
        }
        return str((await self.ask_payments("POST", "charges", wanted))["id"])

    async def settle_payments(self) -> list[int]:
        """Everything that happened at the processor is told to the door; what each telling was answered."""
        answers: list[int] = []
        while told := await self.payments.deliver(partial(deliver_in_process, self.door)):
            answers += told
        return answers

    async def ask_payments(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
        """The processor's control API (simulators/processor/control.py)."""
        return cast("dict[str, object]", await self.payments.control(method, path, body))


@cache
def pristine(seed: int, start: int, history_days: int) -> Original[Network]:
    """A simulated network that every test gets a copy of."""
    return Original(build_world(seed, start, history_days=history_days))


def new_sandbox(clock: SettableClock, history_days: int = 3) -> SimulatedNetwork:
    """A network whose history ends at the test's beginning, and whose clock is the test's."""
    start = int(clock.now())
    return SimulatedNetwork(lambda: pristine(1, start, history_days).copy(), wall=clock.now, following=True, sleep=no_sleep)


async def no_sleep(seconds: float) -> None:
    """Delays of the simulated network take no time; what waits for them is tested where they are real."""
    del seconds


def new_payments(clock: SettableClock) -> SimulatedProcessor:
    """A payment processor that believes the test's clock."""
    return SimulatedProcessor(
        wall=clock.now,
        pages_url=f"https://{HOST}/sandbox/payments",
        key=SIMULATED_PROCESSOR_KEY,
        webhook_secret="whsec_dGVzdHMgb2YgdGhlIHJlc2VsbGVyIHNlcnZpY2U=",
        webhook_url=f"http://{HOST}/v1/operator-billing/payments-webhook",
    )


def make_deps(
    store: Store,
    keyring: Keyring,
    clock: SettableClock,
    ids: CountingIds,
    secrets: SharedSecrets,
    sandbox: SimulatedNetwork | None = None,
    payments: SimulatedProcessor | None = None,
    *,
    replica: str = "rpl_test",
) -> Deps:
    """The outside world of the handlers."""
    network = sandbox or new_sandbox(clock)
    return Deps(
        store=store,
        keyring=keyring,
        clock=clock,
        ids=ids,
        site=SITE,
        secrets=secrets,
        build=Build("1.0.0", "0123abc"),
        webhook_exempt=(),
        wake_worker=lambda: None,
        post=lambda: None,
        toolsets=tuple(CATALOGUE.names()),
        ocs=simulated_pool(lambda: network, clock),
        payments=simulated_processor(payments or new_payments(clock)),
        platform_fee_bps=100,
        reads=ReadCache(clock),
        stock=StockSnapshots(store, clock, ids),
        replica=replica,
        weeks=UsageCache(),
        watch=EventWatch(store),
        internal_calls=InternalCalls(),
        judge=LineJudge(),
        rate_limiter=RateLimiter(Limits(), SITE, clock),  # of what the worker writes; that of the calls is the caller's choice
        ocs_token=SIMULATED_OCS_TOKEN,
    )


@asynccontextmanager
async def open_world(
    folder: Path,
    catalogue: Catalogue,
    *,
    url: str | None = None,
    limits: Limits | None = None,
    secrets: SharedSecrets | None = None,
    sessions: Sessions | None = None,
    rules: HttpRules | None = None,
    inner: InnerApplication | None = None,
    sandbox: SimulatedNetwork | None = None,
    payments: SimulatedProcessor | None = None,
    replica: int = 0,
) -> AsyncGenerator[World]:
    """A service over a new SQLite file in the folder, or over the migrated database at `url`.

    `replica`: which of several over one database it is, since each makes ids of its own.
    """
    clock = SettableClock()
    ids = CountingIds(clock)
    store = open_store(url or migrated_sqlite(folder))
    secrets, limits = secrets or SharedSecrets(), limits or Limits()
    keyring = Keyring(new_key_setting(ids.bytes), ids.bytes)
    ids.count += replica << 32
    blocks = QuotaBlocks(store, limits.quota_block)
    journal = StoreJournal(store, keyring=keyring, blocks=blocks, clock=clock, replica=ids.new("rpl_"))
    await store.write(renew_replica, replica=journal.replica, now=clock.now())
    sandbox, payments = sandbox or new_sandbox(clock), payments or new_payments(clock)
    deps = make_deps(store, keyring, clock, ids, secrets, sandbox, payments, replica=journal.replica)
    pipeline = Pipeline(
        catalogue=catalogue,
        deps=deps,
        clock=clock,
        ids=ids,
        directory=StoreDirectory(store),
        journal=journal,
        quota=blocks,
        sessions=sessions,
        secrets=secrets,
        rate_limiter=RateLimiter(limits, SITE, clock, deps.rate_limiter.buckets),
        site=SITE,
        approvals=ApprovalRequests(deps),
    )
    lines: list[RequestLine] = []
    faults: list[tuple[str, str, BaseException]] = []
    door = HttpDoor(
        pipeline,
        rules=rules or HttpRules(hosts=frozenset({HOST, "127.0.0.1"}), origins=frozenset({ORIGIN})),
        log=lines.append,
        fault=lambda *fault: faults.append(fault),
        inner=inner,
    )
    postman = Mailer(store=store, keyring=keyring, clock=clock, ids=ids, transport=MailCatcher(), report=lambda text: None)
    deps.internal_calls.open(pipeline, lambda call, error: faults.append((call.request_id, call.operation.id, error)))
    try:
        yield World(door, pipeline, store, clock, ids, journal, blocks, sandbox, payments, lines, postman, faults)
    finally:
        await deps.ocs.aclose()
        await deps.payments.aclose()
        await store.aclose()
