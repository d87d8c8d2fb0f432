"""What an organisation on the stage has sold, and what documented inputs name of it."""

from typing import Any

import orjson

from clients.payments.records import NewCheckout
from operations.ledger.esims import EsimProfile, seal_esim_profile
from operations.subscribers.inventory import EXAMPLE_ISSUANCE_KEY
from registry.clock import DAY_SECONDS
from storage.issuance import DrawnSim, NewIssuance, begin_issuance, mark_issuance_unknown, mark_issued
from storage.order_queue import OrderEsim, OrderPayment, claim_order, mark_order_ready, pay_order, review_order, send_order
from storage.orders import NewOrder, insert_order, name_session
from storage.storefronts import find_storefront
from tests.contract.fleet import drawn_esim
from tests.contract.shops import plan, shop_by_id
from tests.network_facts import ACCOUNT, TEMPLATE
from tests.world import Credentials, World

Input = dict[str, Any]
DRAW_OPERATION = "issue_esim_from_inventory"
SOLD = orjson.dumps({"slug": "nordic-5gb", "name": "Nordic 5 GB", "data_mb": 5000, "validity_days": 30, "countries": ["NO"]}).decode()


async def slug(world: World, who: Credentials) -> Input:
    made = await shop_by_id(world, who)
    row = await world.store.read(find_storefront, storefront=made["id"], organisation=who.organisation)
    assert row is not None
    return {"storefront": row.slug}


async def order(world: World, who: Credentials) -> Input:
    """A ready order; its profile was installed, so that rolling it back is one write."""
    made, now, store = await plan(world, who), world.clock.now(), world.store
    id, token = world.ids.new("onr_"), world.ids.new("lse_")
    await store.write(insert_order, order=new_order(who, id, made["id"], None, "acct_none", now))
    await store.write(pay_order, order=id, paid=OrderPayment("ada@example.com", "pi_1", 1490, None), now=now)
    await store.write(claim_order, organisation=who.organisation, token=token, now_ms=int(now * 1000))
    await store.write(send_order, order=id, token=token, owner="rpl_staged", now=now)
    line, package = drawn_esim(await world.network())
    of = {"organisation": who.organisation, "key": id}
    await store.write(begin_issuance, row=new_issuance(who, id, "fulfil_storefront_order"), now=now)
    await store.write(mark_issued, **of, drawn=DrawnSim(line.iccid, line.id, line.sim.id, package), now=now)
    keyring, profile = world.pipeline.deps.keyring, EsimProfile(line.iccid, "LPA:1$smdp.sandbox.invalid$K2", "smdp.sandbox.invalid", "K2")
    sealed = seal_esim_profile(profile, keyring=keyring, organisation=who.organisation, intent=id)
    await store.write(mark_order_ready, order=id, esim=OrderEsim(line.iccid, sealed, package), now=now)
    return {"orderId": id}


def new_issuance(who: Credentials, key: str, operation: str) -> NewIssuance:
    """A draw by `operation` under `key` that is about to be sent."""
    return NewIssuance(
        organisation=who.organisation,
        key=key,
        operation=operation,
        claim_key=None,
        principal="worker",
        account_id=ACCOUNT,
        template_id=TEMPLATE,
        validity_days=None,
        period=None,
        intent=None,
        owner="rpl_staged",
        lease="req_staged",
        stock="stk_staged",
    )


async def lost_issuance(world: World, who: Credentials, key: str = EXAMPLE_ISSUANCE_KEY, operation: str = DRAW_OPERATION) -> Input:
    """A draw whose outcome is unknown since long ago, under the key of the documentation; nobody had looked at the stock."""
    then, of = world.clock.now() - 2 * DAY_SECONDS, {"organisation": who.organisation, "key": key}
    await world.store.write(begin_issuance, row=new_issuance(who, key, operation), now=then)
    await world.store.write(mark_issuance_unknown, **of, now=then)
    return {}


async def lost_order(world: World, who: Credentials) -> Input:
    """A paid order that needs review."""
    made, now, store = await plan(world, who), world.clock.now(), world.store
    id, token = world.ids.new("onr_"), world.ids.new("lse_")
    await store.write(insert_order, order=new_order(who, id, made["id"], None, "acct_none", now))
    await store.write(pay_order, order=id, paid=OrderPayment("ada@example.com", "pi_1", 1490, None), now=now)
    await store.write(claim_order, organisation=who.organisation, token=token, now_ms=int(now * 1000))
    await store.write(send_order, order=id, token=token, owner="rpl_staged", now=now)
    await lost_issuance(world, who, id, "fulfil_storefront_order")
    await store.write(review_order, order=id, code="OUTCOME_UNKNOWN", now=now)
    return {"number": id}


async def numbered(world: World, who: Credentials) -> Input:
    """A ready order, by its number."""
    return {"number": (await order(world, who))["orderId"]}


def new_order(who: Credentials, id: str, shop: str, top_up_of: str | None, payee: str, now: float) -> NewOrder:
    return NewOrder(
        id=id,
        top_up_of=top_up_of,
        organisation=who.organisation,
        storefront=shop,
        plan="sfp_staged",
        bought=SOLD,
        template_id=TEMPLATE,
        account_id=None,
        amount=1490,
        currency="EUR",
        language="en",
        payee=payee,
        created=now,
    )


async def top_up(world: World, who: Credentials) -> Input:
    """A ready order, and a top-up of it whose page is open."""
    given, made = await order(world, who), await plan(world, who)
    payee, id, here = await world.connect_payments(who), world.ids.secret("tuc_"), "https://reseller.test/shop"
    await world.store.write(insert_order, order=new_order(who, id, made["id"], given["orderId"], payee, world.clock.now()))
    page = NewCheckout(id, "Nordic 5 GB", 1490, "EUR", 15, here, here, metadata={"order": id})
    session = await world.pipeline.deps.payments.create_checkout(payee, page)
    await world.store.write(name_session, order=id, session=session.id, ends=session.expires_at, look_ms=0)
    return {**given, "sessionId": id}


ORDERS = {
    "list_storefront_buyer_orders": slug,
    "get_storefront_order": order,
    "get_sold_order": numbered,
    "rollback_storefront_order": order,
    "cancel_storefront_order": order,
    "cancel_top_up_checkout": top_up,
    "get_storefront_order_top_up_options": order,
    "get_storefront_order_usage": order,
    "erase_buyer": shop_by_id,
    "renew_storefront_order_access": numbered,
    "settle_issuance": lost_issuance,
    "settle_order": lost_order,
}
