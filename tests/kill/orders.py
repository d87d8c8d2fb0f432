"""Orders of a shop that were paid while no server ran: their rows as the shop's page and the processor's webhook leave them."""

from typing import NamedTuple

from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.engine.sql import Connection
from storage.engine.store import open_store
from storage.order_queue import OrderPayment, pay_order
from storage.orders import NewOrder, insert_order, name_session
from storage.storefronts import StorefrontPlan
from tests.harness.network_process import Drawn
from tests.harness.tenant_stage import TenantStage
from tests.simulation.shops import SimulatedShop, open_simulated_shop

PRICE = 990


class PaidOrder(NamedTuple):
    """An order, and how the charging system is asked for its eSIM, which nobody else asks for so."""

    id: str
    asks: Drawn


async def open_for_business(stage: TenantStage) -> SimulatedShop:
    tenant, ids, clock = stage.tenants[0], SystemIds(SystemClock()), stage.network.clock
    store = open_store(stage.url, pool=1)
    try:
        return await store.write(open_simulated_shop, ids=ids, organisation=tenant.id, account=tenant.account, now=clock.now())
    finally:
        await store.aclose()


async def paid_order(stage: TenantStage, shop: SimulatedShop) -> PaidOrder:
    """One more, of a template of its own."""
    tenant, now = stage.tenants[0], stage.network.clock.now()
    template = stage.network.next_template(tenant.account)
    assert template is not None
    id = SystemIds(SystemClock()).new("onr_")
    store = open_store(stage.url, pool=1)
    try:
        await store.write(insert_paid, id=id, shop=shop, plan=shop.plans[0], template=template, now=now)
    finally:
        await store.aclose()
    return PaidOrder(id, Drawn(tenant.account, template, None))


def insert_paid(connection: Connection, *, id: str, shop: SimulatedShop, plan: StorefrontPlan, template: int, now: float) -> None:
    order = NewOrder(
        id=id,
        top_up_of=None,
        organisation=shop.storefront.organisation,
        storefront=shop.storefront.id,
        plan=plan.id,
        bought='{"slug":"nordic-1gb","name":"Nordic","data_mb":1000,"validity_days":30,"countries":["NO"]}',
        template_id=template,
        account_id=None,
        amount=PRICE,
        currency="EUR",
        language="en",
        payee=shop.payee,
        created=now,
    )
    insert_order(connection, order=order)
    name_session(connection, order=id, session=f"cs_{id[4:]}", ends=int(now) + 3600, look_ms=int(now + 600) * 1000)
    pay_order(connection, order=id, paid=OrderPayment("buyer@example.test", f"pi_{id[4:]}", PRICE, None), now=now)
