"""A shop of the operator of account 8101, its buyers, who pay at the simulated processor, and the worker that delivers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import httpx

from operations.caches.answers import ReadCache
from operations.caches.stock import StockSnapshots
from operations.catalogue import CATALOGUE
from operations.deps import Deps
from operations.storefronts.sales.checkout import BegunCheckout, begin_order, begin_top_up
from operations.storefronts.sales.order_fulfilment import Fulfilment, review_all_lost_orders
from registry.caller import Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.network.entities import Line, Package
from simulators.network.faults import NetworkFault
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.checkout import complete_checkout
from simulators.processor.state import CheckoutSession
from storage.engine.sql import Connection
from storage.orders import OrderRow, find_order, top_ups_of
from storage.replicas import renew_replica
from storage.storefronts import Storefront, StorefrontPlan, insert_storefront, put_plan
from tests.issuance.road import Road
from tests.network_facts import ACCOUNT
from tests.registry.ledgers import audited
from tests.world import Credentials, World, open_world

NORDIC = 55010
NORDIC_BIG = 55011
EUROPE = 55014
ADD = "affectPackageToSubscriber"
TOP_UPS_KEY = "storefront-key-of-the-tests-0123456789"
SECRETS = SharedSecrets(storefront=TOP_UPS_KEY)
BUYER = "buyer@home.test"
GOOD_CARD = "4242424242424242"
PLANS = (("nordic", NORDIC, 1000), ("nordic-big", NORDIC_BIG, 1990), ("europe", EUROPE, 1290))


class Note(NamedTuple):
    surface: str
    operation: str
    principal: str
    outcome: str
    status: int


def read_notes(connection: Connection) -> list[Note]:
    """Every row but those of calls."""
    rows = [Note(*(getattr(row, name) for name in Note._fields)) for row in audited(connection)]
    return [row for row in rows if row.surface != "http"]


@dataclass(slots=True)
class TopUpShop:
    world: World
    road: Road
    me: Credentials
    payee: str
    shop: Storefront
    plans: dict[str, StorefrontPlan]
    worker: Fulfilment
    http: httpx.AsyncClient
    """With the storefront's key."""
    reports: list[str] = field(default_factory=list[str])

    @property
    def deps(self) -> Deps:
        return self.world.pipeline.deps

    def another_process(self) -> Deps:
        """What a second process over the same database and network reaches the outside with."""
        clock, replica = self.world.clock, self.world.ids.new("rpl_")
        stock = StockSnapshots(self.world.store, clock, self.world.ids)
        return replace(self.deps, replica=replica, reads=ReadCache(clock), stock=stock, ocs=Road(self.world.sandbox).pool(clock))

    async def begin(self, plan: str = "nordic") -> BegunCheckout:
        return await begin_order(self.deps, shop=self.shop, plan=self.plans[plan], language="en", now=self.world.clock.now())

    async def begin_top_up(self, order: str, plan: str = "nordic") -> BegunCheckout:
        row = await self.row(order)
        return await begin_top_up(self.deps, order=row, plan=self.plans[plan], language="en", now=self.world.clock.now())

    async def row(self, order: str) -> OrderRow:
        found = await self.world.store.read(find_order, order=order)
        assert found is not None
        return found

    async def top_ups(self, order: str) -> list[OrderRow]:
        return await self.world.store.read(top_ups_of, order=order)

    def sessions(self) -> list[CheckoutSession]:
        return list(self.world.payments.state.book(self.payee).sessions.values())

    async def pay(self, order: str, card: str = GOOD_CARD) -> None:
        """The buyer pays; the processor tells of it when `told` is awaited."""
        session = (await self.row(order)).session
        assert session is not None
        async with self.world.payments.turn(writes=True) as state:
            complete_checkout(state, self.payee, session, PaymentCard(card, "B. Uyer", BUYER))

    async def told(self) -> None:
        assert set(await self.world.settle_payments()) <= {200}

    async def work(self, steps: int = 3) -> None:
        for _ in range(steps):
            await self.worker.step()

    async def live_on(self, seconds: float) -> None:
        """Time passes, this process lives, and the worker works."""
        self.world.clock.advance(seconds)
        await self.world.store.write(renew_replica, replica=self.world.journal.replica, now=self.world.clock.now())
        await review_all_lost_orders(self.deps)
        await self.work()

    async def buy(self, plan: str = "nordic") -> str:
        begun = await self.begin(plan)
        await self.pay(begun.order)
        await self.told()
        await self.work()
        assert (await self.row(begun.order)).status == "ready"
        return begun.order

    async def top_up(self, order: str, plan: str = "nordic") -> str:
        """A top-up that is paid, and not delivered yet."""
        begun = await self.begin_top_up(order, plan)
        await self.pay(begun.order)
        await self.told()
        return begun.order

    async def buy_both(self) -> tuple[str, str]:
        """An order whose eSIM the buyer has, and a top-up of it that is paid and not delivered yet."""
        order = await self.buy()
        return order, await self.top_up(order)

    async def cancel(self, order: str) -> None:
        answer = await self.http.post(f"/api/orders/{order}/cancel")
        assert answer.status_code == 200, answer.text

    async def roll_back(self, order: str) -> httpx.Response:
        return await self.http.delete(f"/api/orders/{order}")

    async def line(self, order: str) -> Line:
        iccid, network = (await self.row(order)).iccid, await self.world.network()
        return next(line for line in network.lines.values() if line.iccid == iccid)

    async def packages(self, order: str) -> list[Package]:
        return sorted((await self.line(order)).packages, key=lambda package: package.id)

    def added(self) -> int:
        """How many packages the network was asked to put on a line that was named."""
        return sum(call.method == ADD and "accountForSubs" not in str(call.payload) for call in self.world.sandbox.calls)

    def trouble(self, *faults: NetworkFault) -> None:
        for fault in faults:
            self.world.sandbox.faults.add(fault)

    def refunded(self) -> int:
        """What buyers got back, in minor units."""
        return sum(row.amount for row in self.world.payments.state.book(self.payee).refunds.values())

    async def end(self, top_up: str) -> tuple[str, str | None, str | None]:
        """How a top-up stands: its status, why, and its refund."""
        row = await self.row(top_up)
        return row.status, row.code, row.refund

    async def subjects(self) -> list[str]:
        return [letter.subject for letter in await self.world.letters()]

    async def notes(self) -> list[Note]:
        return await self.world.store.read(read_notes)


def new_shop(ids: str, organisation: str, now: int) -> Storefront:
    return Storefront(ids, organisation, "fjord", "Fjord", None, None, None, "help@fjord.test", "EUR", "published", now, now)


def new_plan(id: str, shop: str, slug: str, template: int, price: int, now: int) -> StorefrontPlan:
    return StorefrontPlan(id, shop, slug, slug.title(), 1000, 30, '["NO","SE"]', price, 1, 0, template, None, None, None, None, now, now)


@asynccontextmanager
async def open_counter(folder: Path, url: str | None = None) -> AsyncGenerator[TopUpShop]:
    """No fault of ours may happen."""
    async with open_world(folder, CATALOGUE, url=url, limits=Limits(burst_enabled=False), secrets=SECRETS) as world:
        road, former = Road(world.sandbox), world.pipeline.deps
        world.pipeline.deps = replace(former, ocs=road.pool(world.clock))
        me = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        payee = await world.connect_payments(me)
        await world.network()
        now = int(world.clock.now())
        shop = new_shop(world.ids.new("sf_"), me.organisation, now)
        await world.store.write(insert_storefront, row=shop)
        plans: dict[str, StorefrontPlan] = {}
        for slug, template, price in PLANS:
            plan = new_plan(world.ids.new("sfp_"), shop.id, slug, template, price, now)
            plans[slug] = await world.store.write(put_plan, row=plan)
        reports: list[str] = []
        async with world.client(TOP_UPS_KEY) as http:
            yield TopUpShop(world, road, me, payee, shop, plans, Fulfilment(world.pipeline.deps, reports.append), http, reports)
        await former.ocs.aclose()
        await world.pipeline.deps.ocs.aclose()
        assert world.faults == []
