"""A service that makes reports of a thin composite, its replicas, and an organisation that schedules them."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import sqlalchemy as sa

from clients.webhooks.sender import WebhookSender
from operations.intelligence.schedule_reports import ScheduleRuns
from operations.ledger.event_rights import ChooserRights
from registry.caller import Tier
from registry.limits import Limits
from storage.deliveries import DeliveryTable
from storage.engine.sql import Connection, Query
from storage.engine.store import open_store
from storage.events import EventTable
from storage.schedules import IntelligenceReportTable
from storage.webhook_endpoints import WebhookEndpointTable
from tests.databases import migrated_sqlite
from tests.deliveries.post_office import LOOPBACK, QUICK
from tests.schedules.thin import SCRIPT, SHEETS, THIN, Script
from tests.world import CountingIds, Credentials, SettableClock, World, open_world
from transports.worker.worker import Worker

REPORT, ENDPOINT = IntelligenceReportTable.table, WebhookEndpointTable.table
EVENT, DELIVERY = EventTable.table, DeliveryTable.table
Body = dict[str, Any]
SCHEDULES = "/v1/intelligence/schedules"
DAILY: Body = {"composite": "fleet_health", "cron": "0 6 * * *", "timezone": "Europe/Berlin"}


class StoredReport(NamedTuple):
    fire_ms: int | None
    state: str
    tries: int


KEPT = Query(StoredReport, sa.select(*(REPORT.c[name] for name in StoredReport._fields)).order_by(REPORT.c.id))


class Name(NamedTuple):
    name: str


HIDDEN = Query(Name, sa.select(ENDPOINT.c.id.label("name")).where(ENDPOINT.c.schedule.is_not(None)).order_by(ENDPOINT.c.id))
SENT_TO = Query(
    Name,
    sa.select(ENDPOINT.c.url.label("name"))
    .join_from(ENDPOINT, DELIVERY, DELIVERY.c.endpoint_id == ENDPOINT.c.id)
    .where(DELIVERY.c.event_id == sa.bindparam("event")),
)
EVENTS = Query(Name, sa.select(EVENT.c.id.label("name")).order_by(EVENT.c.id))


def all_named(connection: Connection, *, query: Query[Name], **binds: str) -> list[str]:
    return [row.name for row in connection.all(query, **binds)]


def all_kept(connection: Connection) -> list[StoredReport]:
    """Every report there is, in the order in which they began."""
    return connection.all(KEPT)


@dataclass(slots=True)
class Bureau:
    """One organisation, its API client, and as many replicas as a test wants."""

    world: World
    caller: Credentials
    http: httpx.AsyncClient
    sender: WebhookSender
    url: str
    stack: AsyncExitStack
    replicas: list[ScheduleRuns] = field(default_factory=list[ScheduleRuns])

    @property
    def clock(self) -> SettableClock:
        return self.world.clock

    def replica(self, clock: SettableClock | None = None) -> ScheduleRuns:
        """One more process, with a connection and ids of its own; its clock may be another."""
        store, ids = open_store(self.url), CountingIds(self.clock)
        ids.count = (len(self.replicas) + 1) << 40
        self.stack.push_async_callback(store.aclose)
        made = ScheduleRuns(replace(self.world.pipeline.deps, store=store, ids=ids, clock=clock or self.clock), SHEETS)
        self.replicas.append(made)
        return made

    async def create(self, **wanted: object) -> Body:
        answer = await self.http.post(SCHEDULES, json={**DAILY, **wanted})
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def report(self, schedule: Body, **query: str) -> Body:
        """The newest report, or the one that is asked for."""
        answer = await self.http.get(f"{SCHEDULES}/{schedule['id']}/report", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def run(self, schedule: Body) -> Body:
        """A report that was asked for."""
        answer = await self.http.post(f"{SCHEDULES}/{schedule['id']}/run")
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def kept(self) -> list[StoredReport]:
        return await self.world.store.read(all_kept)

    async def hidden(self) -> str:
        """The id of the newest endpoint of a schedule."""
        return (await self.world.store.read(all_named, query=HIDDEN))[-1]

    async def endpoints_of(self, event: str) -> list[str]:
        return await self.world.store.read(all_named, query=SENT_TO, event=event)

    async def events(self) -> list[str]:
        return await self.world.store.read(all_named, query=EVENTS)

    async def post(self) -> int:
        """Deliver what is due; how many attempts were made."""
        worker = Worker(
            store=self.world.store,
            keyring=self.world.pipeline.deps.keyring,
            sender=self.sender,
            clock=self.clock,
            ids=self.world.ids,
            report=print,
            rights=ChooserRights(self.world.pipeline.deps.internal_calls.operations_in),
        )
        return await worker.step()


@asynccontextmanager
async def open_bureau(folder: Path, url: str | None = None) -> AsyncGenerator[Bureau]:
    """Over a new SQLite file, or over the migrated database at `url`."""
    url = url or migrated_sqlite(folder)
    SCRIPT.__init__()
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(open_world(folder, THIN, url=url, limits=Limits(burst_enabled=False)))
        world.pipeline.deps = replace(world.pipeline.deps, webhook_exempt=LOOPBACK)
        caller = await world.caller(Tier.PRO, mode="managed", account=8101)
        sender = WebhookSender(world.clock, exempt=LOOPBACK, limits=QUICK)
        stack.push_async_callback(sender.aclose)
        http = await stack.enter_async_context(world.client(caller.secret))
        yield Bureau(world, caller, http, sender, url, stack)
        assert world.faults == []


def script() -> Script:
    return SCRIPT
