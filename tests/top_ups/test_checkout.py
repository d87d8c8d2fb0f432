"""Beginning to pay: what is sold is stored first, its price is ours alone, and nobody is sent to a page that we do not know."""

import pytest
from inline_snapshot import snapshot

from clients.payments.records import NewPromotion
from operations.storefronts.sales.checkout import begin_order, begin_top_up, sale_fee
from registry.errors import Conflict, NotFound, OcsError, PaymentsError, Refusal
from simulators.network.faults import NetworkFault
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.checkout import complete_checkout, enter_promotion
from storage.connect_accounts import write_connect_status
from storage.organisations import set_fee_bps
from storage.storefronts import put_plan, write_plan, write_storefront
from tests.top_ups.counter import BUYER, GOOD_CARD, TopUpShop, new_plan

OTHER_SPONSOR = 55038
SHOP = "https://reseller.test/shop/fjord"


async def refused(counter: TopUpShop, plan: str = "nordic") -> tuple[str, str | None]:
    """Why an order is not begun; nothing is stored for it, and the processor not asked."""
    pages = len(counter.sessions())
    with pytest.raises(Conflict) as refusal:
        await counter.begin(plan)
    assert len(counter.sessions()) == pages
    assert (await counter.notes()) == []
    return refusal.value.error_code, refusal.value.message


async def test_an_order_is_stored_and_can_be_paid_on_a_page_of_the_processor(counter: TopUpShop) -> None:
    begun = await counter.begin()
    row, (session,) = await counter.row(begun.order), counter.sessions()
    assert begun.url == f"https://reseller.test/sandbox/payments/checkout/{session.id}"
    kept = {
        name: value for name, value in row._asdict().items() if value is not None and name not in ("organisation", "storefront", "payee")
    }
    assert kept == snapshot(
        {
            "id": "onr_01mcckg2g0000000000000000e",
            "plan": "sfp_01mcckg2g0000000000000000b",
            "bought": '{"slug":"nordic","name":"Nordic","data_mb":1000,"validity_days":30,"countries":["NO","SE"]}',
            "template_id": 55010,
            "amount": 1000,
            "currency": "EUR",
            "language": "en",
            "status": "pending_payment",
            "session": "cs_test_a1NpcsnKkHQzs9GsZ63eYL0XGemaNLwFncFWGGqtW0wTEGEukoSpwEfxIe",
            "session_ends": 1800018000,
            "due_ms": 1800015000000,
            "tries": 0,
            "created": 1800014400.0,
            "updated": 1800014400.0,
        }
    )
    assert (row.organisation, row.storefront, row.payee) == (counter.me.organisation, counter.shop.id, counter.payee)
    assert [line["unit_amount"] for line in session.lines] == [1000]
    assert (session.currency, session.fee_amount, session.metadata, session.intent_metadata, session.promotions) == (
        "eur",
        10,
        {"order": begun.order},
        {"order": begun.order},
        True,
    )
    assert (session.success_url, session.cancel_url) == (f"{SHOP}/orders/{begun.order}", SHOP)
    assert [note[:] for note in await counter.notes()] == [("web", "begin_order", "public", "ok", 201)]


async def test_a_top_up_leads_back_to_the_page_of_its_order_and_fills_in_no_address(counter: TopUpShop) -> None:
    order = await counter.buy()
    begun = await counter.begin_top_up(order, "nordic-big")
    row, session = await counter.row(begun.order), counter.sessions()[-1]
    assert begun.order.startswith("tuc_")
    assert (row.top_up_of, row.amount, row.status, row.session) == (order, 1990, "pending_payment", session.id)
    assert (session.success_url, session.cancel_url) == (f"{SHOP}/orders/{order}", f"{SHOP}/orders/{order}")
    assert (session.email, session.fee_amount, session.metadata) == (None, 20, {"order": begun.order})
    assert (await counter.notes())[-1][:] == ("web", "begin_top_up", "public", "ok", 201)


async def test_price_and_contents_are_those_of_our_row_whatever_is_handed_in(counter: TopUpShop) -> None:
    order = await counter.buy()
    cheap = counter.plans["nordic"]._replace(price_cents=1, template_id=55019, name="All of it", data_mb=10**9)
    yen, now = counter.shop._replace(currency="JPY"), counter.world.clock.now()
    begun = await begin_order(counter.deps, shop=yen, plan=cheap, language="en", now=now)
    top_up = await begin_top_up(counter.deps, order=await counter.row(order), plan=cheap, language="en", now=now)
    for id in (begun.order, top_up.order):
        row = await counter.row(id)
        assert (row.amount, row.currency, row.template_id, row.bought) == (1000, "EUR", 55010, (await counter.row(order)).bought)
    assert [session.fee_amount for session in counter.sessions()] == [10, 10, 10]


async def test_a_price_that_changes_while_somebody_looks_at_the_page_is_the_new_one(counter: TopUpShop) -> None:
    await counter.world.store.write(write_plan, row=counter.plans["nordic"]._replace(price_cents=1500))
    assert (await counter.row((await counter.begin()).order)).amount == 1500


@pytest.mark.parametrize(
    ("amount", "bps", "fee"), [(1000, 0, 0), (1000, 100, 10), (1049, 100, 10), (1050, 100, 11), (50, 100, 1), (49, 100, 0), (1, 5000, 1)]
)
async def test_the_fee_is_rounded_half_up_and_never_above_the_price(amount: int, bps: int, fee: int) -> None:
    assert sale_fee(amount, bps) == fee <= amount


async def test_the_organisations_own_fee_is_taken(counter: TopUpShop) -> None:
    await counter.world.store.write(set_fee_bps, organisation=counter.me.organisation, bps=250)
    await counter.begin()
    assert counter.sessions()[0].fee_amount == 25


async def test_what_is_not_on_sale_cannot_be_begun(counter: TopUpShop) -> None:
    store = counter.world.store
    await store.write(write_plan, row=counter.plans["nordic"]._replace(on_sale=0))
    assert await refused(counter) == snapshot(("not_for_sale", "The shop does not sell this plan any more; nothing was ordered"))
    await store.write(write_storefront, row=counter.shop._replace(status="draft"))
    assert (await refused(counter, "europe"))[0] == "not_for_sale"


async def test_a_shop_that_has_sold_out_says_so_and_takes_no_money(counter: TopUpShop) -> None:
    network = await counter.world.network()
    for line in network.lines_of(8101):
        if line.sim.status == "FREE":
            line.sim.status = "AFFECTED"
    assert await refused(counter) == snapshot(
        ("sold_out", "The shop has no eSIM left for this plan at the moment; nothing was ordered, and nothing is charged")
    )


async def test_a_shop_whose_owner_cannot_be_paid_takes_no_orders(counter: TopUpShop) -> None:
    order = await counter.buy()
    now = counter.world.clock.now()
    await counter.world.store.write(write_connect_status, account=counter.payee, status="pending", as_of=now + 1, now=now)
    with pytest.raises(Conflict) as top_up:
        await counter.begin_top_up(order)
    assert top_up.value.error_code == "shop_not_ready"
    with pytest.raises(Conflict) as refusal:
        await counter.begin()
    assert (refusal.value.error_code, refusal.value.message) == snapshot(
        ("shop_not_ready", "The shop cannot take orders of this plan at the moment; nothing was ordered, and nothing is charged")
    )


async def test_a_template_that_is_gone_is_the_owners_to_mend(counter: TopUpShop) -> None:
    plan = new_plan(counter.world.ids.new("sfp_"), counter.shop.id, "gone", 99_999, 500, 0)
    counter.plans["gone"] = await counter.world.store.write(put_plan, row=plan)
    assert (await refused(counter, "gone"))[0] == "shop_not_ready"


async def test_a_charging_system_that_does_not_answer_is_a_502_and_nothing_is_stored(counter: TopUpShop) -> None:
    counter.trouble(NetworkFault("*", status=503, times=None))
    with pytest.raises(OcsError):
        await counter.begin()
    assert (counter.sessions(), await counter.notes()) == ([], [])


@pytest.mark.cases
@pytest.mark.parametrize(("trouble", "after"), [("error", False), ("timeout", False), ("closed", True), ("garbage", True)])
async def test_an_order_without_a_page_is_an_order_that_nobody_can_pay(counter: TopUpShop, trouble: str, *, after: bool) -> None:
    fault: dict[str, object] = {"path": "/v1/checkout/sessions", "trouble": trouble, "after": after, "times": 9}
    await counter.world.ask_payments("POST", "faults", fault)
    with pytest.raises(PaymentsError):
        await counter.begin()
    notes = await counter.notes()
    assert [(note.surface, note.operation, note.status) for note in notes] == [("web", "begin_order", 502)]
    for session in counter.sessions():  # a page was made, and its answer lost: whoever finds it and pays buys nothing, and is told nothing
        async with counter.world.payments.turn(writes=True) as state:
            complete_checkout(state, counter.payee, session.id, PaymentCard(GOOD_CARD, "B. Uyer", BUYER))
        order = session.metadata["order"]
        await counter.told()
        await counter.work()
        assert (await counter.row(order))[:1] == (order,) and (await counter.row(order)).status == "pending_payment"


async def test_what_the_processor_refuses_is_the_owners_to_mend(counter: TopUpShop) -> None:
    await counter.world.store.write(write_plan, row=counter.plans["nordic"]._replace(price_cents=1))
    with pytest.raises(Conflict) as refusal:
        await counter.begin()
    assert refusal.value.error_code == "shop_not_ready"
    assert [note.outcome for note in await counter.notes()] == ["payments_refused"]


async def why_not(counter: TopUpShop, order: str, plan: str = "nordic") -> str:
    """The code of the refusal of a top-up, for which nothing is stored."""
    before = len(await counter.top_ups(order))
    with pytest.raises(Refusal) as refusal:
        await counter.begin_top_up(order, plan)
    assert len(await counter.top_ups(order)) == before
    return refusal.value.error_code


@pytest.mark.rule("3.6.9")
async def test_a_top_up_is_for_an_order_that_is_ready_and_not_cancelled(counter: TopUpShop) -> None:
    begun = await counter.begin()
    assert await why_not(counter, begun.order) == "order_not_ready"
    order, top_up = await counter.buy_both()
    with pytest.raises(NotFound):
        await counter.begin_top_up(top_up)
    await counter.work()
    await counter.cancel(order)
    assert await why_not(counter, order) == "order_cancelled"


async def test_an_order_that_was_given_back_takes_none(counter: TopUpShop) -> None:
    order = await counter.buy()
    assert (await counter.roll_back(order)).status_code == 200
    assert await why_not(counter, order) == "order_cancelled"


async def test_a_cancel_that_comes_while_the_plans_are_looked_at_is_seen(counter: TopUpShop) -> None:
    order = await counter.buy()
    stale = await counter.row(order)
    await counter.cancel(order)
    with pytest.raises(Conflict) as refusal:
        await begin_top_up(counter.deps, order=stale, plan=counter.plans["nordic"], language="en", now=counter.world.clock.now())
    assert refusal.value.error_code == "order_cancelled"
    assert await counter.top_ups(order) == []


async def test_a_plan_that_does_not_fit_the_esim_is_not_added(counter: TopUpShop) -> None:
    order = await counter.buy()
    counter.plans["stranger"] = new_plan(counter.world.ids.new("sfp_"), counter.shop.id, "stranger", 55010, 100, 0)
    assert await why_not(counter, order, "stranger") == "plan_not_addable"
    m2m = new_plan(counter.world.ids.new("sfp_"), counter.shop.id, "m2m", OTHER_SPONSOR, 100, 0)
    counter.plans["m2m"] = await counter.world.store.write(put_plan, row=m2m)
    assert await why_not(counter, order, "m2m") == "plan_not_addable"


@pytest.mark.long
async def test_what_a_promotion_makes_free_is_delivered(counter: TopUpShop) -> None:
    order = await counter.buy()
    begun = await counter.begin_top_up(order)
    free = NewPromotion("key_1", "FREE", 10_000, None, None, None)
    await counter.deps.payments.create_promotion(counter.payee, free)
    session = (await counter.row(begun.order)).session
    assert session is not None
    async with counter.world.payments.turn(writes=True) as state:
        enter_promotion(state, counter.payee, session, "FREE")
        complete_checkout(state, counter.payee, session, None)
    await counter.told()
    await counter.work()
    row = await counter.row(begun.order)
    assert (row.status, row.paid_amount, row.refund) == ("ready", 0, None)
