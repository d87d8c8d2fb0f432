"""A shop of an operator of account 8101, its orders in every state, and the ways of buyers, of their shop's server and of the operator."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import orjson

from clients.payments.records import NewCheckout
from operations.catalogue import CATALOGUE
from operations.ledger.issuance import IssuanceOrder, draw_esim
from operations.ledger.issuance_targets import FULFIL_ORDER, OrderTarget
from operations.ledger.orders import new_order_token
from operations.ledger.send_once import BackgroundDispatch, DeferredWrites
from operations.upstream.connection import upstream_of_organisation
from registry.caller import Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.checkout import complete_checkout
from storage.order_queue import OrderPayment, claim_order, fail_order, pay_order
from storage.orders import NewOrder, OrderRow, find_order, insert_order, name_session
from storage.storefronts import Storefront, StorefrontPlan, insert_storefront, put_plan
from tests.issuance.road import Road
from tests.issuance.stage import IssuanceStage
from tests.network_facts import ACCOUNT, TEMPLATE
from tests.world import open_world

ORDERS_KEY = "storefront-key-of-the-shops"
SLUG, ADA_MAIL, CARD = "fjord-travel", "ada@example.com", PaymentCard("4242424242424242", email="ada@example.com")
SOLD = {"slug": "nordic-1gb", "name": "Nordic 1 GB", "data_mb": 1000, "validity_days": 30, "countries": ["DK", "NO", "SE"]}


@dataclass(slots=True)
class OrdersShop(IssuanceStage):
    payee: str
    buyer: httpx.AsyncClient
    """Somebody who shows nothing."""
    server: httpx.AsyncClient
    """Who shows the storefront key."""
    row: Storefront = field(init=False)
    plan: StorefrontPlan = field(init=False)

    async def open_another(self, slug: str, *, status: str = "published", organisation: str | None = None) -> Storefront:
        now, id = int(self.world.clock.now()), self.world.ids.new("sf_")
        row = Storefront(id, organisation or self.me.organisation, slug, "Fjord", None, None, None, None, "EUR", status, now, now)
        assert await self.world.store.write(insert_storefront, row=row)
        return row

    async def sell(self, slug: str, *, template: int = TEMPLATE, on_sale: bool = True, place: int = 0) -> StorefrontPlan:
        now = int(self.world.clock.now())
        countries = orjson.dumps(SOLD["countries"]).decode()
        plan = StorefrontPlan(
            id=self.world.ids.new("sfp_"),
            storefront=self.row.id,
            slug=slug,
            name="Nordic 1 GB",
            data_mb=1000,
            validity_days=30,
            countries=countries,
            price_cents=900,
            on_sale=int(on_sale),
            place=place,
            template_id=template,
            account_id=None,
            product=None,
            price_id=None,
            price_mode=None,
            created=now,
            updated=now,
        )
        return await self.world.store.write(put_plan, row=plan)

    async def order(self, *, top_up_of: str | None = None, shop: Storefront | None = None) -> str:
        shop = shop or self.row
        id = self.world.ids.new("onr_") if top_up_of is None else self.world.ids.secret("tuc_")
        new = NewOrder(
            id=id,
            top_up_of=top_up_of,
            organisation=shop.organisation,
            storefront=shop.id,
            plan=self.plan.id,
            bought=orjson.dumps(SOLD).decode(),
            template_id=TEMPLATE,
            account_id=None,
            amount=900,
            currency="EUR",
            language="en",
            payee=self.payee,
            created=self.world.clock.now(),
        )
        await self.world.store.write(insert_order, order=new)
        return id

    async def opener(self, order: str) -> str:
        """What opens an order for somebody who shows nothing."""
        now = self.world.clock.now()
        return await self.world.store.write(new_order_token, ids=self.world.ids, order=order, now=now)

    async def checkout(self, order: str) -> str:
        there = "https://reseller.test/shop/fjord-travel"
        page = NewCheckout(order, "Nordic 1 GB", 900, "EUR", 9, there, there, metadata={"order": order})
        session = await self.world.pipeline.deps.payments.create_checkout(self.payee, page)
        ends = session.expires_at
        assert await self.world.store.write(name_session, order=order, session=session.id, ends=ends, look_ms=0)
        return session.id

    async def pay_at(self, session: str) -> None:
        """The buyer pays on the processor's page; nobody has told us yet."""
        async with self.world.payments.turn(writes=True) as state:
            complete_checkout(state, self.payee, session, CARD)

    async def paid(self, *, email: str | None = ADA_MAIL, top_up_of: str | None = None, shop: Storefront | None = None) -> str:
        id = await self.order(top_up_of=top_up_of, shop=shop)
        assert await self.world.store.write(pay_order, order=id, paid=OrderPayment(email, "pi_1", 900, None), now=self.world.clock.now())
        return id

    async def ready(self, *, email: str | None = ADA_MAIL) -> str:
        id = await self.paid(email=email)
        await self.fulfil(id)
        assert (await self.stored(id)).status == "ready", await self.stored(id)
        return id

    async def fulfil(self, id: str) -> None:
        deps, token = self.world.pipeline.deps, self.world.ids.new("lse_")
        now_ms = int(self.world.clock.now() * 1000)
        row = await self.world.store.write(claim_order, organisation=self.me.organisation, token=token, now_ms=now_ms)
        assert row is not None and row.id == id
        upstream = await upstream_of_organisation(deps, row.organisation)
        errand = BackgroundDispatch(deps, DeferredWrites(), organisation=row.organisation, operation_id=FULFIL_ORDER)
        target = OrderTarget(deps, id, row.organisation, token)
        await errand.run(lambda: draw_esim(errand, upstream, IssuanceOrder(id, ACCOUNT, row.template_id), target))

    async def failed(self, code: str = "no_inventory") -> str:
        id = await self.paid()
        assert await self.world.store.write(fail_order, order=id, code=code, now=self.world.clock.now())
        return id

    async def stored(self, id: str) -> OrderRow:
        row = await self.world.store.read(find_order, order=id)
        assert row is not None
        return row

    async def read(self, id: str) -> dict[str, Any]:
        said = await self.server.get(f"/api/orders/{id}")
        assert said.status_code == 200, said.text
        return said.json()

    async def take_back(self, id: str, *, http: httpx.AsyncClient | None = None) -> httpx.Response:
        return await (http or self.server).delete(f"/api/orders/{id}")


@asynccontextmanager
async def open_orders_shop(
    folder: Path, url: str | None = None, *, key: str = ORDERS_KEY, limits: Limits | None = None, concurrency: int = 8
) -> AsyncGenerator[OrdersShop]:
    """No fault of ours may happen."""
    secrets = SharedSecrets(storefront=key)
    async with open_world(folder, CATALOGUE, url=url, limits=limits or Limits(burst_enabled=False), secrets=secrets) as world:
        road = Road(world.sandbox)
        former = world.pipeline.deps
        world.pipeline.deps = replace(former, ocs=road.pool(world.clock, concurrency))
        me = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        payee = await world.connect_payments(me)
        await world.network()
        async with world.client(me.secret) as http, world.client() as buyer, world.client(ORDERS_KEY) as server:
            shop = OrdersShop(world, road, me, http, payee, buyer, server)
            shop.row = await shop.open_another(SLUG)
            shop.plan = await shop.sell("nordic-1gb")
            yield shop
        await former.ocs.aclose()
        await world.pipeline.deps.ocs.aclose()
        assert world.faults == []
