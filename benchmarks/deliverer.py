"""`python -m benchmarks.deliverer JSON`: this service's worker in a process of its own, on a backlog; prints a line of JSON."""

import asyncio
import itertools
import json
import sys
import time
from ipaddress import ip_network
from typing import Any, NamedTuple

import sqlalchemy as sa
import uvloop

from clients.http import OutboundLimits, load_network
from clients.webhooks.sender import WebhookSender
from clients.webhooks.signature import WEBHOOK_SECRET_BYTES, new_webhook_secret
from operations.catalogue import CATALOGUE
from operations.ledger.event_rights import ChooserRights
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.deliveries import DELIVERED_STATE, PENDING_STATE, DeliveryTable
from storage.engine.sql import Connection, Query
from storage.engine.store import Store, open_store
from storage.events import NewEvent, emit_event
from storage.sealing import Keyring, webhook_secret_field
from storage.webhook_endpoints import insert_endpoint
from transports.http.server import freeze_memory
from transports.worker.worker import Worker

WARM = 0.5
DELIVERY = DeliveryTable.table
CLOCK = SystemClock()
IDS = SystemIds(CLOCK)
LOOPBACK = (ip_network("127.0.0.0/8"),)


class Count(NamedTuple):
    """How many."""

    found: int


COUNT = Query(Count, sa.select(sa.func.count().label("found")).select_from(DELIVERY).where(DELIVERY.c.state == sa.bindparam("state")))


def main() -> None:
    asked = json.loads(sys.argv[1])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run({"sow": sow, "drain": drain, "bare": bare}[asked.pop("do")](**asked))))


def sender(connections: int) -> WebhookSender:
    """The sender as a server has it after its first call, but that it may reach loopback."""
    load_network(None)
    limits = OutboundLimits(connections=connections, keepalive_seconds=None, connect_seconds=5.0, total_seconds=15.0)
    return WebhookSender(CLOCK, exempt=LOOPBACK, limits=limits)


async def sow(url: str, key: str, organisations: dict[str, list[str]]) -> dict[str, Any]:
    """Register the endpoints of each organisation, sealed secrets and all; answers the secrets."""
    store, keyring = open_store(url), Keyring(key, IDS.bytes)
    secrets: list[str] = []

    def register(connection: Connection) -> None:
        for organisation, urls in organisations.items():
            for each in urls:
                endpoint, secret = IDS.new("we_"), new_webhook_secret(IDS.bytes(WEBHOOK_SECRET_BYTES))
                secrets.append(secret)
                sealed = keyring.seal(secret, org_id=organisation, field=webhook_secret_field(endpoint))
                insert_endpoint(connection, id=endpoint, organisation=organisation, url=each, secret=sealed, now=CLOCK.now())

    await store.write(register)
    await store.aclose()
    return {"secrets": secrets}


def count(connection: Connection, *, state: int) -> int:
    """Deliveries in a state."""
    row = connection.first(COUNT, state=state)
    return row.found if row else 0


async def fill(store: Store, organisations: list[str], data: str, backlog: int) -> None:
    """Events, of all organisations by turns, until so many deliveries wait."""
    turns = itertools.cycle(organisations)

    def some(connection: Connection) -> None:
        for organisation in itertools.islice(turns, 100):
            event = NewEvent(IDS.new("evt_"), organisation, "cni_1", "esim.issued", 0, data, IDS.new("dedup_"), int(CLOCK.now()))
            emit_event(connection, event=event, ids=IDS)

    while await store.read(count, state=PENDING_STATE) < backlog:
        await store.write(some)


async def drain(url: str, key: str, organisations: list[str], data: str, connections: int, seconds: float, backlog: int) -> dict[str, Any]:
    """Deliver for a while from a backlog: what is counted is acknowledged in the database."""
    store, post = open_store(url), sender(connections)
    await fill(store, organisations, data, backlog)
    reports: list[str] = []
    rights, keyring = ChooserRights(CATALOGUE.operations_in), Keyring(key, IDS.bytes)
    worker = Worker(
        store=store, keyring=keyring, sender=post, clock=CLOCK, ids=IDS, report=reports.append, rights=rights, concurrency=connections
    )
    freeze_memory()  # as the server does
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(WARM)
    before, cpu, begun = await store.read(count, state=DELIVERED_STATE), time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    after, used, taken = await store.read(count, state=DELIVERED_STATE), time.process_time() - cpu, time.perf_counter() - begun
    left = await store.read(count, state=PENDING_STATE)
    worker.stop()
    await running
    await post.aclose()
    await store.aclose()
    if reports or left < connections:
        raise SystemExit(f"{left} deliveries were left of the backlog; the worker said {reports[:3]}")
    return {"requests": after - before, "errors": 0, "seconds": taken, "cpu": used}


async def bare(urls: list[str], body: str, connections: int, seconds: float) -> dict[str, Any]:
    """The sender alone, without signature and database: an upper bound."""
    post, content, posted = sender(connections), body.encode(), 0

    async def one(place: int, ends: float) -> None:
        nonlocal posted
        for url in itertools.islice(itertools.cycle(urls), place * 7 % len(urls), None):
            attempt = await post.post(url, content, {"content-type": "application/json"})
            posted += attempt.ok
            if time.perf_counter() > ends:
                return

    async def all_for(how_long: float) -> None:
        ends = time.perf_counter() + how_long
        await asyncio.gather(*(one(place, ends) for place in range(connections)))

    await all_for(WARM)
    posted = 0
    cpu, begun = time.process_time(), time.perf_counter()
    await all_for(seconds)
    found = {"requests": posted, "errors": 0, "seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu}
    await post.aclose()
    return found


if __name__ == "__main__":
    main()
