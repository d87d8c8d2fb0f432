"""A payment moves an order once, whoever tells of it, in whatever order, and however often."""

from itertools import permutations
from random import Random

import orjson
import pytest

from clients.payments.records import CheckoutSession
from operations.ledger.payment_intake import sync_payments, take_checkout
from simulators.processor.webhooks import sign_webhook
from storage.connect_accounts import detach_connect_account
from storage.order_queue import sweep_pending
from storage.orders import find_order
from tests.fulfilment.floor import BUYER, Floor
from tests.network_facts import HOUR, MINUTE

WEBHOOK = "/v1/operator-billing/payments-webhook"


async def order_session(floor: Floor, order: str) -> CheckoutSession:
    row = await floor.row(order)
    return await floor.deps.payments.find_checkout(row.payee, row.session or "")


async def take(floor: Floor, session: CheckoutSession, account: str | None = None) -> bool:
    now = floor.shop.world.clock.now()
    return await floor.deps.store.write(take_checkout, deps=floor.deps, account=account or floor.shop.payee, session=session, now=now)


async def tell(floor: Floor, id: str, type: str, session: dict[str, object]) -> int:
    world = floor.shop.world
    event = {"id": id, "object": "event", "type": type, "account": floor.shop.payee, "created": int(world.clock.now()), "livemode": False}
    body = orjson.dumps({**event, "data": {"object": session}})
    headers = {**sign_webhook(body, world.payments.webhook_secret, world.clock.now()), "content-type": "application/json"}
    async with world.client() as http:
        return (await http.post(WEBHOOK, content=body, headers=headers)).status_code


def on_the_wire(id: str, **said: object) -> dict[str, object]:
    given: dict[str, object] = {"id": id, "object": "checkout.session", "status": "complete", "payment_status": "paid", "currency": "eur"}
    given |= {"amount_total": 1000, "payment_intent": "pi_1", "expires_at": 1_800_018_000, "url": None, "metadata": {}}
    return {**given, "customer_details": {"email": "Buyer@Home.TEST"}, "customer_email": None, **said}


@pytest.mark.long
async def test_64_repeated_and_reordered_events_pay_an_order_once(floor: Floor) -> None:
    orders = [(await floor.shop.begin()).order for _ in range(4)]
    told = list[tuple[str, str, dict[str, object]]]()
    for place, order in enumerate(orders):
        page = on_the_wire((await floor.row(order)).session or "", payment_intent=f"pi_{place}")
        paid, unpaid = page, {**page, "payment_status": "unpaid"}
        told += [(f"evt_{place}a", "checkout.session.completed", unpaid), (f"evt_{place}b", "checkout.session.completed", paid)]
        told += [(f"evt_{place}c", "checkout.session.async_payment_succeeded", paid), (f"evt_{place}d", "checkout.session.expired", unpaid)]
    shuffled = told * 4
    Random(7).shuffle(shuffled)
    assert len(shuffled) == 64
    for place, (id, type, page) in enumerate(shuffled):
        assert await tell(floor, id, type, page) == 200
        if place % 16 == 0:
            await floor.work(1, every=1)
    await floor.work(2, every=1)
    rows = [await floor.row(order) for order in orders]
    assert {(row.status, row.email, row.paid_amount) for row in rows} == {("ready", BUYER, 1000)}
    assert (floor.draws(), len(await floor.told()), len(await floor.letters(BUYER))) == (4, 4, 4)


async def test_what_failed_or_expired_is_not_fulfilled_and_what_is_paid_after_all_is(floor: Floor) -> None:
    words = {"paid": "async_payment_succeeded", "failed": "async_payment_failed", "expired": "expired"}
    for turn, names in enumerate(permutations(words)):
        order, paid = (await floor.shop.begin()).order, False
        page = on_the_wire((await floor.row(order)).session or "")
        for name in names:
            paid = paid or name == "paid"
            said = page if name == "paid" else {**page, "payment_status": "unpaid"}
            assert await tell(floor, f"evt_{turn}_{name}", f"checkout.session.{words[name]}", said) == 200
            assert (await floor.row(order)).status == ("paid" if paid else "pending_payment")


@pytest.mark.parametrize("said", [{"currency": "sek"}, {"amount_total": 1001}])
async def test_what_was_paid_otherwise_than_agreed_goes_back(floor: Floor, said: dict[str, object]) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    row = await floor.row(order)
    real = await order_session(floor, order)
    assert await tell(
        floor, "evt_1", "checkout.session.completed", on_the_wire(row.session or "", payment_intent=real.payment_intent, **said)
    )
    assert await floor.end(order) == ("failed", "payment_mismatch", "owed")
    await floor.shop.told()
    await floor.work(2, every=1)
    assert (await floor.end(order), floor.refunds(), floor.draws()) == (("failed", "payment_mismatch", "done"), [1000], 0)
    assert [letter.subject for letter in await floor.letters()] == ["Your order at Fjord could not be delivered"]


async def test_a_page_of_another_account_or_of_nobody_pays_nothing(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    session = await order_session(floor, order)
    assert not await take(floor, session, "acct_other")
    assert (await floor.row(order)).status == "pending_payment"
    assert await take(floor, session) and not await take(floor, session)


async def test_a_payment_into_an_account_that_was_let_go_of_is_an_order_all_the_same(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    now = floor.shop.world.clock.now()
    await floor.deps.store.write(detach_connect_account, account=floor.shop.payee, as_of=now, now=now)
    await floor.shop.told()
    await floor.work()
    assert (await floor.row(order)).status == "ready"


async def test_an_event_that_was_lost_loses_no_order(floor: Floor) -> None:
    paid, unpaid = (await floor.shop.begin()).order, (await floor.shop.begin()).order
    await floor.shop.pay(paid)
    await floor.lose_news()
    await floor.work(3, every=3 * MINUTE)
    assert (await floor.row(paid)).status == "pending_payment"
    await floor.work(2, every=2 * MINUTE)
    assert [(await floor.row(order)).status for order in (paid, unpaid)] == ["ready", "pending_payment"]
    await floor.work(4, every=20 * MINUTE)
    assert (await floor.row(unpaid)).due_ms is None
    calls = await floor.asked_processor()
    await floor.work(5, every=HOUR)
    assert await floor.asked_processor() == calls


async def test_a_processor_that_is_away_is_asked_again(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    await floor.lose_news()
    await floor.at_processor("error", "/v1/checkout/sessions/*", method="GET", times=20)
    await floor.work(1, every=11 * MINUTE)
    assert (await floor.row(order)).status == "pending_payment"
    await floor.calm()
    await floor.work(2, every=6 * MINUTE)
    assert (await floor.row(order)).status == "ready"


async def test_reading_an_account_again_finds_what_was_paid(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    assert await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee) > 0
    assert (await floor.row(order)).status == "paid"
    await floor.shop.told()
    await floor.work(2)
    assert (await floor.row(order)).status == "ready"


async def test_what_nobody_paid_is_forgotten_after_a_month_and_nothing_else(on_both: Floor) -> None:
    floor = on_both
    paid, unpaid = await floor.paid(), (await floor.shop.begin()).order
    await floor.work()
    month = 30 * 24 * HOUR
    for passed, kept in ((month - 60, 2), (120, 1)):
        floor.shop.world.clock.advance(passed)
        await floor.deps.store.write(sweep_pending, before=floor.shop.world.clock.now() - month, most=10)
        found = [await floor.deps.store.read(find_order, order=order) for order in (paid, unpaid)]
        assert sum(row is not None for row in found) == kept
    assert (await floor.row(paid)).status == "ready"
