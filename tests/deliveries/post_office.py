"""A whole service whose webhooks may reach loopback, its worker, and receivers that understand what they get."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import httpx
import time_machine
from standardwebhooks import Webhook

from clients.http import OutboundLimits
from clients.webhooks.sender import WebhookSender
from operations.catalogue import CATALOGUE
from operations.ledger.event_rights import ChooserRights
from registry.caller import Tier
from registry.limits import Limits
from storage.engine.store import Store
from storage.events import NewEvent, emit_event
from tests.clients.webhooks.networks import parse_networks
from tests.world import CountingIds, Credentials, SettableClock, World, open_world
from transports.worker.chores import Chore
from transports.worker.retention import retention_chore
from transports.worker.worker import Worker, WorkListener

LOOPBACK = parse_networks(["127.0.0.0/8"])
QUICK = OutboundLimits(connections=200, keepalive_seconds=None, connect_seconds=2.0, total_seconds=2.0)
INTENT = "cni_1"


class JitterIds(CountingIds):
    """Ids whose jitter is drawn from a seed."""

    def __init__(self, clock: SettableClock, seed: int) -> None:
        super().__init__(clock)
        self._random = Random(seed)

    def fraction(self) -> float:
        return self._random.random()


@dataclass(frozen=True, slots=True)
class Post:
    headers: dict[str, str]
    body: bytes

    def verified(self, secret: str, now: float) -> object:
        """The event, if the independent library accepts the signature at this time."""
        with time_machine.travel(now, tick=False):
            return Webhook(secret).verify(self.body, self.headers)


def read(raw: bytes) -> Post:
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
    return Post({name.lower(): value for name, value in lines}, body)


@dataclass(slots=True)
class PostOffice:
    """One organisation, its API client, and as many workers as a test wants."""

    world: World
    caller: Credentials
    http: httpx.AsyncClient
    sender: WebhookSender
    reports: list[str] = field(default_factory=list[str])

    @property
    def clock(self) -> SettableClock:
        return self.world.clock

    @property
    def store(self) -> Store:
        return self.world.store

    def worker(
        self,
        *,
        ids: CountingIds | None = None,
        sender: WebhookSender | None = None,
        store: Store | None = None,
        chores: Sequence[Chore] | None = None,
        listener: WorkListener | None = None,
    ) -> Worker:
        """A worker as a process makes it; its wake is the API's."""
        made = Worker(
            store=store or self.store,
            keyring=self.world.pipeline.deps.keyring,
            sender=sender or self.sender,
            clock=self.clock,
            ids=ids or self.world.ids,
            report=self.reports.append,
            rights=ChooserRights(self.world.pipeline.deps.internal_calls.operations_in),
            chores=[retention_chore(store or self.store, self.clock, print)] if chores is None else chores,
            listener=listener,
        )
        self.world.pipeline.deps = replace(self.world.pipeline.deps, wake_worker=made.wake)
        return made

    async def endpoint(self, url: str) -> tuple[str, str]:
        """A new endpoint of the organisation: its id and secret."""
        answer = await self.http.post("/v1/connectivity/webhook_endpoints", json={"url": url})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"], answer.json()["secret"]

    async def stranger(self, url: str) -> str:
        other = await self.world.caller(Tier.FREE)
        async with self.world.client(other.secret) as http:
            answer = await http.post("/v1/connectivity/webhook_endpoints", json={"url": url})
        assert answer.status_code == 201, answer.text
        await self.emit(f"of {other.organisation}", organisation=other.organisation)
        return other.organisation

    async def status(self, endpoint: str) -> str:
        answer = await self.http.get("/v1/connectivity/webhook_endpoints")
        return next(each["status"] for each in answer.json()["data"] if each["id"] == endpoint)

    async def emit(self, dedup: str = "once", intent: str = INTENT, organisation: str | None = None) -> str:
        """An event of the organisation, as issuing an eSIM makes it."""
        event = NewEvent(
            id=self.world.ids.new("evt_"),
            organisation=organisation or self.caller.organisation,
            intent=intent,
            type="esim.issued",
            livemode=0,
            data=f'{{"intent":"{intent}","iccid":"8999012345678901237","plan":"test_é"}}',
            dedup=dedup,
            created=int(self.clock.now()),
        )
        await self.store.write(emit_event, event=event, ids=self.world.ids)
        return event.id

    async def deliveries(self, event: str) -> list[dict[str, object]]:
        answer = await self.http.get(f"/v1/connectivity/events/{event}/deliveries")
        assert answer.status_code == 200, answer.text
        return answer.json()["data"][::-1]

    async def states(self, event: str) -> list[tuple[object, list[object]]]:
        return [(each["state"], [attempt["outcome"] for attempt in each["attempts"]]) for each in await self.deliveries(event)]  # pyright: ignore[reportGeneralTypeIssues]  # decoded JSON


@asynccontextmanager
async def open_post_office(folder: Path, url: str | None = None) -> AsyncGenerator[PostOffice]:
    """A service over a new SQLite file, or over the migrated database at `url`."""
    limits = Limits(burst_enabled=False)
    async with open_world(folder, CATALOGUE, url=url, limits=limits) as world:
        world.pipeline.deps = replace(world.pipeline.deps, webhook_exempt=LOOPBACK)
        caller = await world.caller(Tier.FREE)
        sender = WebhookSender(world.clock, exempt=LOOPBACK, limits=QUICK)
        async with world.client(caller.secret) as http:
            try:
                yield PostOffice(world, caller, http, sender)
            finally:
                await sender.aclose()
        assert world.faults == []
