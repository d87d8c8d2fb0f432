"""What a run is played on: a database at HEAD, three organisations in it with a receiver each, and the servers to be killed."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg

from clients.webhooks.signature import WEBHOOK_SECRET_BYTES, new_webhook_secret
from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from registry.clock import SystemClock
from registry.ids import Ids, SystemIds
from storage.api_keys import insert_key
from storage.endpoint_selections import EndpointSelection, put_selection
from storage.engine.sql import Connection
from storage.engine.store import open_store
from storage.mail_subscriptions import MailChoice, put_mail_choice
from storage.organisations import add_member, create_organisation
from storage.people import create_person, ensure_person
from storage.sealing import Keyring, webhook_secret_field
from storage.webhook_endpoints import insert_endpoint
from tests.databases import migrated_postgres, migrated_sqlite
from tests.harness.caught_mails import CatchingMailServer, catching_mails
from tests.harness.cluster import KEYS
from tests.harness.held_receiver import Receiver, receiving
from tests.harness.killable_servers import ServerForks, Servers
from tests.harness.network_process import NETWORK_TOKEN, NetworkProcess

# Two organisations draw from one account; the third one's stock is soon empty.
DRAWS_FROM = (8101, 8101, 8103)
CALL_SECONDS = 20.0
MAILS_SECONDS = 20.0
MAILS_DUE = "select (select count(*) from mail) + (select count(*) from mail_notice where ended_ms is null and due_ms <= {})"


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organisation, its API key, its account, and its endpoint with whoever listens there; and one that has chosen every type.

    `reader` is an admin who has chosen to be mailed every type at once, at `address`.
    """

    id: str
    secret: str
    account: int
    endpoint: str
    receiver: Receiver
    signed_with: str
    subscriber: str
    subscribed: Receiver
    reader: str
    address: str


@dataclass(slots=True)
class TenantStage:
    network: NetworkProcess
    servers: Servers
    tenants: tuple[Tenant, ...]
    url: str
    since: int
    """The number of the network's last writing call before this stage was there."""
    mails: CatchingMailServer | None = None
    """Where all mails go; None where servers of others send some, too."""

    def client(self) -> httpx.AsyncClient:
        """For calls of the server that runs now, which end with it. There is no TLS, so no certificates are read."""
        return httpx.AsyncClient(base_url=self.servers.url, timeout=CALL_SECONDS, verify=False)

    def rows(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """Read by hand: what is on trial does not judge itself."""
        if self.url.startswith("sqlite"):
            raw = sqlite3.connect(self.url.removeprefix("sqlite:///"))
            try:
                return raw.execute(statement).fetchall()
            finally:
                raw.close()
        with psycopg.connect(self.url, autocommit=True) as admin:
            return admin.execute(statement.encode()).fetchall()

    def number(self, statement: str) -> int:
        return int(self.rows(statement)[0][0])

    async def mails_are_sent(self) -> bool:
        """Until no mail waits, and nobody is to be told anything now. False: that did not come; a mail may wait for a lease to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MAILS_SECONDS):
                while self.number(MAILS_DUE.format(int(self.network.clock.now() * 1000))):
                    await asyncio.sleep(0.02)
                return True
        return False


@asynccontextmanager
async def open_tenant_stage(
    place: Path, network: NetworkProcess, forks: ServerForks, *, postgres: bool
) -> AsyncGenerator[TenantStage | None]:
    """A new database and its people; nothing without PostgreSQL where that is asked for. No server runs yet."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(migrated_postgres()) if postgres else migrated_sqlite(place)
        if url is None:
            yield None
            return
        mails = stack.enter_context(catching_mails())
        stage = await stack.enter_async_context(tenant_stage_on(url, place, network, forks, settings=mails.settings))
        stage.mails = mails
        mails.life = stage.servers.number
        yield stage


@asynccontextmanager
async def tenant_stage_on(
    url: str, place: Path, network: NetworkProcess, forks: ServerForks, *, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[TenantStage]:
    """The same on a database at HEAD that somebody else made; `settings` come on top of those that every server is told."""
    async with AsyncExitStack() as stack:
        receivers = [(stack.enter_context(receiving()), stack.enter_context(receiving())) for _ in DRAWS_FROM]
        tenants = await settle_in(url, receivers)
        servers = Servers(forks, place, network.clock.path, {**server_settings(place, network, url), **(settings or {})})
        stack.push_async_callback(servers.kill)
        await network.look()
        yield TenantStage(network, servers, tenants, url, max(network.log, default=0))


def server_settings(place: Path, network: NetworkProcess, url: str) -> Mapping[str, str]:
    return {
        "SERVICE_DATA": str(place),
        "SERVICE_DATABASE_URL": "" if url.startswith("sqlite") else url,
        "SERVICE_SECRET_KEYS": KEYS,
        "SERVICE_OCS_URL": network.url,
        "SERVICE_OCS_TOKEN": NETWORK_TOKEN,
        "SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8",
        "SERVICE_DEMO": "false",
        "SERVICE_BURST_LIMIT": "false",
        "SERVICE_LOG": "json",
    }


async def settle_in(url: str, receivers: Sequence[tuple[Receiver, Receiver]]) -> tuple[Tenant, ...]:
    store = open_store(url, pool=1)
    ids = SystemIds(SystemClock())
    try:
        made = [
            await store.write(move_in, ids=ids, account=account, receiver=receiver, subscribed=subscribed)
            for account, (receiver, subscribed) in zip(DRAWS_FROM, receivers, strict=True)
        ]
    finally:
        await store.aclose()
    return tuple(made)


def move_in(connection: Connection, *, ids: SystemIds, account: int, receiver: Receiver, subscribed: Receiver) -> Tenant:
    """One of them, with all it needs."""
    organisation, key = found_tenant(connection, ids=ids, account=account)
    endpoint, secret = listen(connection, ids=ids, organisation=organisation, url=receiver.url)
    subscriber, _ = listen(connection, ids=ids, organisation=organisation, url=subscribed.url)
    now = SystemClock().now()
    address = f"{organisation.lower()}@kill.example"
    reader = ensure_person(connection, address=address, id=ids.new("usr_"), now=now)
    add_member(connection, person=reader, organisation=organisation, role=Role.ADMIN, now=now)
    put_mail_choice(connection, choice=MailChoice(organisation, reader, '{"*":"at_once"}', 8, "UTC", "en", int(now)))
    chosen = EndpointSelection(subscriber, organisation, '["*"]', None, "", "local", "local", "", 0)
    put_selection(connection, row=chosen)
    return Tenant(organisation, key, account, endpoint, receiver, secret, subscriber, subscribed, reader, address)


def found_tenant(connection: Connection, *, ids: Ids, account: int, now: float | None = None) -> tuple[str, str]:
    """An organisation with an account, and an API key of its admin."""
    now = SystemClock().now() if now is None else now
    organisation, person, key = ids.new("org_"), ids.new("usr_"), new_api_key(ids)
    create_organisation(connection, id=organisation, name="Tenant", tier=Tier.ENTERPRISE, now=now, mode="managed", account_id=account)
    create_person(connection, id=person, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    insert_key(
        connection,
        id=ids.new("key_"),
        digest=key.digest,
        prefix=key.prefix,
        organisation=organisation,
        person=person,
        name="kill",
        now=now,
    )
    return organisation, key.secret


def listen(connection: Connection, *, ids: Ids, organisation: str, url: str) -> tuple[str, str]:
    """An endpoint for its events, and the secret that they are signed with."""
    endpoint, secret = ids.new("we_"), new_webhook_secret(ids.bytes(WEBHOOK_SECRET_BYTES))
    sealed = Keyring(KEYS, ids.bytes).seal(secret, org_id=organisation, field=webhook_secret_field(endpoint))
    insert_endpoint(connection, id=endpoint, organisation=organisation, url=url, secret=sealed, now=SystemClock().now())
    return endpoint, secret
