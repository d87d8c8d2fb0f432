"""A disk that is full, and a database that somebody else holds (docs/security.md): 503, nothing is sent, nothing is half there."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.endurance.disks import Disk, Pages, can_mount, small_disk
from tests.harness.processes import environment, start, stop
from tests.world import World, open_world

DRAW = "affectPackageToSubscriber"
COUNTED = ("claim", "issuance", "intent", "event", "payment_attempt", "charge_refunds", "cdr_event", "cdr_sum", "invoice", "invoice_line")
MOST = 400
WAYS = ["pages", *(["file system"] if can_mount() else [])]
Ask = Callable[["Shop", str], Coroutine[Any, Any, httpx.Response]]


@dataclass(slots=True)
class Shop:
    """The service on a disk, somebody who calls it, and what they can ask for."""

    world: World
    disk: Disk
    http: httpx.AsyncClient
    charge: str
    period: str

    async def post(self, path: str, body: dict[str, Any], key: str | None = None) -> httpx.Response:
        return await self.http.post(path, json=body, headers={} if key is None else {"Idempotency-Key": key})

    def draws(self) -> int:
        return sum(call.method == DRAW for call in self.world.sandbox.calls)

    def refunds(self) -> int:
        return sum(call.path.endswith("/refunds") and call.method == "POST" for call in self.world.payments.calls)

    def rows(self) -> dict[str, int]:
        with closing(sqlite3.connect(f"file:{self.disk.folder / 'service.db'}?mode=ro", uri=True)) as raw:
            return {name: raw.execute(f"select count(*) from {name}").fetchone()[0] for name in COUNTED}

    def verdict(self) -> str:
        with closing(sqlite3.connect(self.disk.folder / "service.db")) as raw:
            return str(raw.execute("pragma integrity_check").fetchone()[0])


async def claim(shop: Shop, key: str) -> httpx.Response:
    return await shop.post("/v1/connectivity/intents", {"plan": "test_eu_1gb"}, key)


async def draw(shop: Shop, key: str) -> httpx.Response:
    body = {"accountId": 8101, "packageTemplateId": 55010, "validityPeriod": 30}
    return await shop.post("/v1/subscribers/issue-from-inventory", body, key)


async def refund(shop: Shop, key: str) -> httpx.Response:
    return await shop.post("/v1/operator-billing/refunds", {"charge": shop.charge, "amount": 1}, key)


async def ingest(shop: Shop, key: str) -> httpx.Response:
    return await shop.post("/v1/cdr/ingest", {"events": [record(f"{key}-{number}", number) for number in range(200)]})


async def invoice(shop: Shop, key: str) -> httpx.Response:
    return await shop.post("/v1/invoices", {"period_id": shop.period, "price_per_gb_cents": 100}, key)


def record(id: str, sim: int) -> dict[str, Any]:
    return {"id": id, "iccid": f"89883030000009{sim:05}", "occurred_at": "2026-12-10T08:00:00Z", "bytes_up": 10, "bytes_down": 90}


WRITES: dict[str, Ask] = {"claim": claim, "draw": draw, "money": refund, "records": ingest, "invoice": invoice}


@pytest.fixture(params=WAYS)
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Shop]:
    async with AsyncExitStack() as stack:
        disk: Disk = stack.enter_context(small_disk()) if request.param == "file system" else Pages(tmp_path)
        yield await stack.enter_async_context(open_shop(disk))


@asynccontextmanager
async def open_shop(disk: Disk) -> AsyncGenerator[Shop]:
    """An operator with stock, a charge that can be refunded, and a month that can be billed."""
    async with open_world(disk.folder, CATALOGUE, limits=Limits(burst_enabled=False)) as world:
        me = await world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
        charge = await world.charge(await world.connect_payments(me), 100_000, "EUR")
        await world.settle_payments()
        async with world.client(me.secret) as http:
            made = Shop(world, disk, http, charge, "")
            assert (await ingest(made, "first")).status_code == 200
            made.period = (await http.get("/v1/invoices/periods")).json()["data"][0]["id"]
            yield made


async def refused(shop: Shop, ask: Ask, key: str) -> httpx.Response:
    """Ask until there is no room for it; a little may be left for something small."""
    for number in range(MOST):
        said = await ask(shop, f"{key}-{number}")
        if said.status_code == 503:
            return said
        assert said.status_code in (200, 201), said.text
    raise AssertionError(f"there is room for {MOST} more")


@pytest.mark.long
async def test_on_a_full_disk_nothing_is_sent_nothing_is_half_written_and_all_goes_on_when_there_is_room(shop: Shop) -> None:
    await shop.disk.fill(shop.world.store)
    await refused(shop, ingest, "fill")
    for name, ask in WRITES.items():
        last = await refused(shop, ask, name)
        key = f"{name}-late"
        rows, draws, refunds = shop.rows(), shop.draws(), shop.refunds()
        said = await ask(shop, key)
        assert (said.status_code, said.json()["code"], said.headers["retry-after"]) == (503, "store_unavailable", "1"), (name, last.text)
        assert (shop.rows(), shop.draws(), shop.refunds()) == (rows, draws, refunds), name
        assert (await shop.http.get("/v1/connectivity/plans")).status_code == 200
    await shop.disk.free(shop.world.store)
    draws, refunds = shop.draws(), shop.refunds()
    for name, ask in WRITES.items():
        answers = [await ask(shop, f"{name}-late") for _ in range(2)]
        assert {said.status_code for said in answers} <= {200, 201}, answers[0].text
    assert (shop.draws(), shop.refunds()) == (draws + 1, refunds + 1)
    await shop.world.journal.flush()
    assert shop.verdict() == "ok"
    assert shop.world.faults == []


if can_mount():

    @pytest.mark.long
    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
    async def test_a_server_that_is_started_on_a_full_disk_answers_reads(how: signal.Signals) -> None:
        with small_disk() as disk:
            data = disk.folder / "data"
            first = start(data, environment())
            stop(first, how)
            disk.fill_up()
            again = start(data, environment())
            try:
                async with httpx.AsyncClient(base_url=again.base_url, headers={"Authorization": f"Bearer {first.api_key}"}) as http:
                    assert (await http.get("/v1/connectivity/products")).status_code == 200
                    assert (await http.get("/v1/connectivity/events")).status_code == 200
            finally:
                stop(again)


@pytest.mark.long
async def test_while_somebody_else_holds_the_database_writes_are_refused_and_reads_are_answered(tmp_path: Path) -> None:
    async with open_shop(Pages(tmp_path)) as shop:
        rows, draws, refunds = shop.rows(), shop.draws(), shop.refunds()
        with closing(sqlite3.connect(tmp_path / "service.db", isolation_level=None)) as other:
            other.execute("begin exclusive")
            asked = asyncio.gather(*(ask(shop, f"{name}-late") for name, ask in WRITES.items()))
            assert (await shop.http.get("/v1/connectivity/plans")).status_code == 200
            said = await asked
            other.execute("rollback")
        assert [(each.status_code, each.headers["retry-after"]) for each in said] == [(503, "1")] * len(WRITES)
        assert (shop.rows(), shop.draws(), shop.refunds()) == (rows, draws, refunds)
        again = [await ask(shop, f"{name}-late") for name, ask in WRITES.items()]
        assert {each.status_code for each in again} <= {200, 201}
        assert (shop.draws(), shop.refunds()) == (draws + 1, refunds + 1)
