"""The composition root: settings become a store, ledgers, clients, dependencies and the pipeline."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import quote

import anyio

from clients.http import Outbound
from clients.mail.letter import ConsoleMail, MailTransport
from clients.mail.smtp import SmtpMail, smtp_settings
from clients.model.client import ModelClient
from clients.model.port import ModelSettings
from clients.outside_system import OutsideSystem
from clients.webhooks.sender import WebhookSender
from operations.caches.answers import ReadCache
from operations.caches.event_watch import EventWatch
from operations.caches.stock import StockSnapshots
from operations.caches.usage import UsageCache
from operations.catalogue import CATALOGUE
from operations.changes.requests.approval_requests import ApprovalRequests
from operations.demo import Demo, detach_demo_payee, ensure_demo
from operations.demo_life import BUYER_MAIL_DOMAIN
from operations.deps import Build, Deps
from operations.intelligence.verdicts.judge import LineJudge
from operations.ledger.event_rights import ChooserRights
from operations.ledger.issuance_events import log_lost_issuances
from operations.people.organisation_events import end_simulated_connections
from operations.people.session_tokens import LOGIN_SCOPES, token_issuer
from registry.answer import InternalCalls
from registry.clock import Clock, SystemClock
from registry.errors import StoreUnavailable
from registry.ids import Ids, SystemIds
from registry.limit_lease import LimitLease
from registry.limits import Limits
from registry.pipeline import Pipeline
from registry.ports import SharedSecrets, Site
from registry.rate_limits import RateLimiter
from storage.claims import forget_claims
from storage.deliveries import open_listener
from storage.directory import StoreDirectory
from storage.engine.database_url import is_sqlite_url, sqlite_path
from storage.engine.migrate import ensure_current
from storage.engine.sqlite_file import keep_reserve, spend_reserve
from storage.engine.store import Store, open_store
from storage.journal import StoreJournal
from storage.limit_ledger import StoreLimitLedger
from storage.quota import QuotaBlocks
from storage.reconciliation import held_issuances
from storage.rekey import rebind_esims
from storage.replicas import REPLICA_LEASE_SECONDS, end_replica, renew_replica, running_keys
from storage.sealing import Keyring
from transports.keyring import checked_keyring, refuse_key_conflict, refuse_key_conflict_at
from transports.mcp.settings import McpSettings
from transports.payments import DEMO_PAYEE, PaymentConnection, open_payments
from transports.readiness import Readiness
from transports.sessions import sessions_of
from transports.settings import MCP_EVENTS_DRAFT, BadSettings, Settings, normal_base_url
from transports.settings_files import make_data_directory
from transports.upstream import DEMO_ACCOUNT, SPARE_ACCOUNTS, UpstreamConnection, open_upstream, simulated_receivers
from transports.version import VERSION, build_sha
from transports.worker.chores import (
    adaptation_chore,
    alerts_chore,
    approvals_chore,
    change_chores,
    event_chore,
    fleet_chore,
    mail_chore,
    overdue_chore,
    reconciliation_chore,
    recovery_chore,
    report_chores,
    shop_chores,
)
from transports.worker.mailer import Mailer
from transports.worker.partitions import Partitions
from transports.worker.retention import retention_chore
from transports.worker.worker import Worker

BUFFER_FLUSH_SECONDS = 0.5


@dataclass(slots=True)
class Service:
    """One process of the service, before any door is opened."""

    settings: Settings
    pipeline: Pipeline[Deps]
    directory: StoreDirectory
    journal: StoreJournal
    blocks: QuotaBlocks
    limits: LimitLease
    worker: Worker
    mailer: Mailer
    outbound: Outbound
    sender: WebhookSender
    upstream: UpstreamConnection
    payments: PaymentConnection
    systems: Sequence[OutsideSystem]
    """The outside systems that requests wait for."""
    report: Callable[[str], None]
    readiness: Readiness
    keyring_text: str = field(repr=False)
    renewed: float = 0.0
    rows_wait: bool = False
    """The last flush found no store, and that was reported."""

    @property
    def store(self) -> Store:
        return self.pipeline.deps.store

    @property
    def clock(self) -> Clock:
        return self.pipeline.clock

    @property
    def ids(self) -> Ids:
        return self.pipeline.ids

    @property
    def site(self) -> Site:
        return self.pipeline.site

    async def start(self, *, seed: bool) -> Demo | None:
        """Say that this process lives; with `seed`, give an empty database its demo data where that is switched on."""
        try:
            await self.renew_lease()
        except StoreUnavailable as failure:
            if not has_spent_reserve(self.settings, failure, self.report):
                raise
            await self.renew_lease()
        others = [each for each in await self.store.read(running_keys, now=self.clock.now()) if each.id != self.journal.replica]
        try:
            # Once more, now that the others see this process: of two that start at once with different keyrings one is refused.
            refuse_key_conflict(self.pipeline.deps.keyring, others, self.clock.now())
        except BadSettings:
            await self.store.write(end_replica, replica=self.journal.replica, now=self.clock.now())
            raise
        left = await rebind_esims(self.store, self.pipeline.deps.keyring)
        if left:
            self.report(
                f"{left} eSIMs of orders cannot be opened with this keyring, and their rows hold an old id: put the missing key back"
            )
        if self.upstream.simulation is None and await self.store.write(end_simulated_connections, ids=self.ids, now=self.clock.now()):
            self.report(
                "the demo organisation's account was simulated, so it is not connected any more: `reseller org connect` connects it"
            )
        if self.payments.sandbox is None and await self.store.write(detach_demo_payee, payee=DEMO_PAYEE, now=self.clock.now()):
            self.report("the demo's account at the payment processor was simulated, so it has none any more: /auth/payments connects one")
        if not (seed and self.settings.with_demo):
            return None
        # A real charging system has no demo account, nor has a real processor: there the organisation is connected by hand.
        account = None if self.upstream.simulation is None else DEMO_ACCOUNT
        payee = None if self.payments.sandbox is None else DEMO_PAYEE
        return await ensure_demo(self.store, self.ids, self.clock, account=account, payee=payee)

    def keep_room(self) -> None:
        """Reserves disk space for the next start, where the database is a file."""
        if is_sqlite_url(self.settings.store_url):
            keep_reserve(sqlite_path(self.settings.store_url))

    async def begin_network(self, operations: Sequence[str]) -> None:
        """A simulated network of this process begins anew: it is told which eSIMs the ledger gave away, and remembers nothing else.

        So the stored answers of these operations, which changed something else there, tell of nothing.
        """
        if self.upstream.simulation is None:
            return
        self.upstream.issued[:] = await self.store.read(held_issuances)
        if self.settings.embedded:
            await self.store.write(forget_claims, operations=operations)

    async def write_buffers(self) -> None:
        """Write what is buffered, every half second, until cancelled: at most a second of it can be lost."""
        while True:
            await anyio.sleep(BUFFER_FLUSH_SECONDS)
            await self.flush()

    async def renew_lease(self) -> None:
        """Stores that this process lives, and which encryption keys it knows now. Raises StoreUnavailable."""
        keyring = self.pipeline.deps.keyring
        if gained := keyring.learn():
            self.report(f"the keyring's file has gained key {', '.join(gained)}, which opens from now on")
        await self.store.write(renew_replica, replica=self.journal.replica, now=self.clock.now(), key_ids=keyring.key_ids)
        self.renewed = self.clock.monotonic()

    async def flush(self) -> None:
        """Write what is buffered, and renew the lease in time."""
        try:
            await self.journal.flush()
            await self.directory.flush()
            if self.clock.monotonic() - self.renewed > REPLICA_LEASE_SECONDS / 3:
                await self.renew_lease()
            self.rows_wait = False
        except StoreUnavailable as error:
            if not self.rows_wait:
                self.report(f"the store is unavailable, buffered rows wait: {error.message}")
            self.rows_wait = True

    async def stop(self) -> None:
        """Write what is left, send what is due, give leased quota back, close everything."""
        await self.flush()
        try:
            await self.mailer.deliver()
            await self.blocks.drain()
            await self.limits.aclose()
            await self.store.write(end_replica, replica=self.journal.replica, now=self.clock.now())
        except StoreUnavailable as error:
            self.report(f"the store is unavailable at shutdown: {error.message}")
        await self.mailer.transport.aclose()
        await self.sender.aclose()
        await self.outbound.aclose()
        await self.upstream.aclose()
        await self.payments.aclose()
        if self.pipeline.deps.model is not None:
            await self.pipeline.deps.model.aclose()
        await self.store.aclose()


def site_of(settings: Settings, base_url: str) -> Site:
    base = normal_base_url(settings.base_url or base_url)
    own = settings.own_identity
    return Site(
        base_url=base,
        upgrade_url=settings.upgrade_url or (f"{base}/auth/upgrade" if own else f"{base}/docs"),
        connect_url=settings.connect_url or (f"{base}/auth/onboarding" if own else f"{base}/docs/setup"),
        docs_url=f"{base}/docs",
        mcp_url=f"{base}/mcp",
        sign_in_url=f"{base}/auth/sign-in" if own else settings.auth_sign_in_url or settings.auth_issuer,
    )


def shared_secrets(settings: Settings, ids: Ids) -> SharedSecrets:
    """Credentials that are settings. A simulated network in this process pushes with one that only this process knows."""
    bridge = settings.bridge_webhook_secret.get_secret_value()
    if not bridge and not settings.ocs_url:
        bridge = "whsec_" + base64.b64encode(ids.bytes(24)).decode()
    return SharedSecrets(
        internal=settings.internal_api_key.get_secret_value(),
        storefront=settings.storefront_api_key.get_secret_value(),
        bridge=bridge,
    )


def open_keys_and_store(settings: Settings, clock: Clock, ids: Ids, report: Callable[[str], None]) -> tuple[str, Keyring, Store]:
    """The keys and the database, migrated where it is ours alone. On a full disk a SQLite file is opened in the room kept for that."""
    make_data_directory(settings, report)
    try:
        return open_migrated_store(settings, clock, ids, report)
    except StoreUnavailable as failure:
        if not has_spent_reserve(settings, failure, report):
            raise
        return open_migrated_store(settings, clock, ids, report)


def has_spent_reserve(settings: Settings, failure: StoreUnavailable, report: Callable[[str], None]) -> bool:
    """Whether the disk was full, and there is a little room now."""
    if not (is_sqlite_url(settings.store_url) and spend_reserve(sqlite_path(settings.store_url), failure)):
        return False
    report("the disk is full: this start uses the room that was kept for it, so that reads are answered; free some room")
    return True


def open_migrated_store(settings: Settings, clock: Clock, ids: Ids, report: Callable[[str], None]) -> tuple[str, Keyring, Store]:
    text, keyring = checked_keyring(settings, ids, report)
    ensure_current(settings.store_url)
    refuse_key_conflict_at(settings.store_url, keyring, clock.now())
    return text, keyring, open_store(settings.store_url, pool=settings.database_pool, report=report)


def make_deps(
    settings: Settings,
    store: Store,
    keyring: Keyring,
    clock: Clock,
    ids: Ids,
    upstream: UpstreamConnection,
    payments: PaymentConnection,
    secrets: SharedSecrets,
    rate_limiter: RateLimiter,
    replica: str,
    *,
    apart: bool,
    wake_worker: "LateCallback",
    wake_mailer: "LateCallback",
) -> Deps:
    return Deps(
        store=store,
        keyring=keyring,
        clock=clock,
        ids=ids,
        site=rate_limiter.site,
        secrets=secrets,
        build=Build(VERSION, build_sha(settings.build_sha)),
        webhook_exempt=settings.webhook_allow_nets,
        webhook_private=settings.webhook_private,
        wake_worker=wake_worker,
        post=wake_mailer,
        toolsets=tuple(CATALOGUE.names()),
        own_identity=settings.own_identity,
        signup_tier=settings.signup_tier,
        spare_accounts=() if upstream.simulation is None else SPARE_ACCOUNTS,
        ocs=upstream.pool,
        payments=payments.processor,
        platform_fee_bps=settings.fee_bps,
        reads=ReadCache(clock),
        stock=StockSnapshots(store, clock, ids),
        replica=replica,
        weeks=UsageCache(),
        watch=EventWatch(store),
        internal_calls=InternalCalls(),
        judge=LineJudge(),
        rate_limiter=rate_limiter,
        draws=upstream.simulation is None or not apart,
        network_instance="" if upstream.simulation is None else replica,
        keeps_names=settings.env != "production",
        ocs_token=upstream.token,
    )


def build_service(
    settings: Settings,
    base_url: str,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    report: Callable[[str], None] = print,
    apart: bool = False,
) -> Service:
    """Open the store (migrating an embedded one) and wire everything to it. `apart`: no door of this process issues anything."""
    clock = clock or SystemClock()
    ids, wake_worker, wake_mailer = ids or SystemIds(clock), LateCallback(), LateCallback()
    keyring_text, keyring, store = open_keys_and_store(settings, clock, ids, report)
    site = site_of(settings, base_url)
    secrets, replica = shared_secrets(settings, ids), ids.new("rpl_")
    limits = LimitLease(StoreLimitLedger(store), replica, clock)
    set_limits = replace(
        Limits(), tiers=settings.tiers, burst_enabled=settings.burst_limit, approval_seconds=settings.approval_hours * 3600
    )
    pace = RateLimiter(set_limits, site, clock, limits.buckets)
    outbound, sender = Outbound(ca_file=settings.ca_file), open_sender(settings, clock)
    blocks, directory = QuotaBlocks(store, pace.limits.quota_block), StoreDirectory(store)
    journal = StoreJournal(store, keyring=keyring, blocks=blocks, clock=clock, replica=replica, log_lost=partial(log_lost_issuances, ids))
    upstream = open_upstream(settings, clock, f"{site.base_url}/v1/webhooks/bridge4ip?token={quote(secrets.bridge, safe='')}", limits)
    payments = open_payments(settings, clock, ids, site.base_url, report)
    late = {"wake_worker": wake_worker, "wake_mailer": wake_mailer}
    deps = make_deps(settings, store, keyring, clock, ids, upstream, payments, secrets, pace, replica, apart=apart, **late)
    deps = replace(deps, model=(model := open_model(settings, clock)), callbacks=sender)
    systems = (upstream.pool.system, payments.system, *(() if model is None else (model.system,)))
    for system in systems:
        system.report = report
    simulation = upstream.simulation
    begun: Callable[[], bool] = (lambda: True) if simulation is None else (lambda: simulation.begun is not None)
    worker = make_worker(settings, deps, sender, report, looks=deps.draws, begun=begun)
    wake_worker.bind(worker.wake)
    mailer = Mailer(store=deps.store, keyring=deps.keyring, clock=deps.clock, ids=deps.ids, transport=open_mail(settings), report=report)
    wake_mailer.bind(mailer.wake)
    pipeline = Pipeline(
        catalogue=CATALOGUE,
        deps=deps,
        clock=clock,
        ids=ids,
        directory=directory,
        journal=journal,
        quota=blocks,
        sessions=sessions_of(settings, outbound, deps),
        secrets=secrets,
        rate_limiter=deps.rate_limiter,
        site=site,
        approvals=ApprovalRequests(deps),
    )
    deps.internal_calls.open(
        pipeline, lambda call, error: report(f"{call.operation.id}: {call.request_id}: {type(error).__name__}: {error}")
    )
    parts = (worker, mailer, outbound, sender, upstream, payments, systems)
    readiness = Readiness(deps, report)
    return Service(settings, pipeline, directory, journal, blocks, limits, *parts, report, readiness, keyring_text)


class LateCallback:
    """A callback that is made after the objects that call it; before `bind` a call does nothing."""

    def __init__(self) -> None:
        self._callback: Callable[[], None] | None = None

    def __call__(self) -> None:
        if self._callback is not None:
            self._callback()

    def bind(self, callback: Callable[[], None]) -> None:
        """From now on a call calls `callback`."""
        self._callback = callback


def make_worker(
    settings: Settings, deps: Deps, sender: WebhookSender, report: Callable[[str], None], *, looks: bool, begun: Callable[[], bool]
) -> Worker:
    """The worker with its chores; whether it runs here is the process's choice.

    `looks`: it can see what was drawn, which a network that is simulated in another process does not tell. `begun`: whether the charging
    system is to be asked without being needed: one that is simulated here is made when somebody asks for it.
    """
    return Worker(
        store=deps.store,
        keyring=deps.keyring,
        sender=sender,
        clock=deps.clock,
        ids=deps.ids,
        report=report,
        chores=[
            retention_chore(deps.store, deps.clock, report, settings.history_days),
            recovery_chore(deps),
            event_chore(deps),
            overdue_chore(deps),
            mail_chore(deps),
            Partitions(deps.store, deps.clock, report).chore(),
            *(
                [reconciliation_chore(deps, report), adaptation_chore(deps, report), *shop_chores(deps, report), *report_chores(deps)]
                if looks
                else []
            ),
            *([fleet_chore(deps, report, begun), *change_chores(deps, report, begun), approvals_chore(deps, report)] if looks else []),
            *([alerts_chore(deps, report, begun)] if looks else []),
        ],
        rights=ChooserRights(deps.internal_calls.operations_in),
        listener=open_listener(settings.store_url, report),
        lease_seconds=settings.delivery_lease_seconds,
    )


def mcp_settings(service: Service, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> McpSettings:
    """The settings of the MCP door. Replicas with one keyring seal with the same keys."""
    given = service.settings.mcp_state_keys.get_secret_value() or service.keyring_text
    keys = tuple(hashlib.sha256(b"mcp-state|" + key.strip().encode()).digest() for key in given.split(",") if key.strip())
    return McpSettings(
        version=VERSION,
        state_keys=keys,
        allowed_hosts=tuple(sorted(hosts)),
        allowed_origins=tuple(sorted(origins)),
        authorization_servers=(service.settings.auth_issuer or token_issuer(service.site),),
        scopes=LOGIN_SCOPES if service.settings.own_identity else (),
        edge=service.settings.mcp_edge,
        events=service.settings.mcp_events == MCP_EVENTS_DRAFT,
    )


def open_sender(settings: Settings, clock: Clock) -> WebhookSender:
    """Nothing is connected before the first webhook. A demo has a receiver of its own, which is in this process."""
    return WebhookSender(
        clock,
        exempt=settings.webhook_allow_nets,
        private=settings.webhook_private,
        ca_file=settings.ca_file,
        simulated=simulated_receivers() if settings.with_demo else {},
    )


def open_mail(settings: Settings) -> MailTransport:
    """Nothing is connected before the first mail."""
    address = settings.smtp_url.get_secret_value()
    if address:
        return SmtpMail(smtp_settings(address, settings.mail_from), SystemClock(), ca_file=settings.ca_file)
    return ConsoleMail(unshown=BUYER_MAIL_DOMAIN)


def open_model(settings: Settings, clock: Clock) -> ModelClient | None:
    """Nothing is connected before the first call."""
    if not settings.model_url:
        return None
    system = OutsideSystem("model", clock, most_waiting=settings.most_waiting)
    reached = ModelSettings(settings.model_url, settings.model_name, settings.model_key.get_secret_value(), settings.ca_file)
    return ModelClient(reached, clock, system)
