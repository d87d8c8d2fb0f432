"""Money that goes back: what a crash, a long outage, a rival refund and late words do to it. Never twice, never too little in silence."""

from collections.abc import Callable
from typing import Literal

import pytest

from clients.payments.records import Refund
from operations.ledger.payment_attempts import record_payment_refused, record_payment_unknown
from operations.ledger.payment_intake import sync_payments, take_processor_record
from operations.storefronts.sales.order_fulfilment import OrderRefundSending, find_order_charge
from registry.errors import PaymentsRefused
from registry.ports import Conclusion
from simulators.processor.refunds import fail_refund
from storage.order_queue import claim_order, fail_order, retry_refund
from tests.fulfilment.floor import Floor
from tests.fulfilment.test_payment import on_the_wire, take, tell
from tests.fulfilment.test_refund import FAILED, failing
from tests.network_facts import HOUR, MINUTE

OPERATOR = "help@fjord.test"
DONE = ("failed", FAILED, "done")


async def synced(floor: Floor) -> None:
    await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)


async def owed(floor: Floor) -> str:
    """An order that has failed, and whose refund nobody has begun."""
    order = await floor.paid()
    await floor.deps.store.write(fail_order, order=order, code=FAILED, now=floor.shop.world.clock.now())
    return order


async def begun_refund(floor: Floor, attempt: str) -> None:
    """A worker takes the refund, commits that it goes, and is not heard of any more."""
    store, now = floor.deps.store, floor.shop.world.clock.now()
    claimed = await store.write(claim_order, organisation=floor.shop.me.organisation, token="lse_1", now_ms=int(now * 1000))
    assert claimed is not None
    await store.write(OrderRefundSending(floor.deps, claimed, await find_order_charge(floor.deps, claimed), None, attempt).begin, now=now)


async def test_a_page_of_no_cost_that_nobody_completed_is_not_paid(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    row = await floor.row(order)
    session = await floor.deps.payments.find_checkout(row.payee, row.session or "")
    unpaid: tuple[Literal["open", "expired"], ...] = ("open", "expired")
    for status in unpaid:
        free = session.__class__(session.id, status, "no_payment_required", 0, "EUR", None, session.expires_at)
        assert not await take(floor, free)
        assert (await floor.row(order)).status == "pending_payment"


async def test_a_refund_whose_process_died_before_it_was_sent_is_made_when_that_is_found_out(floor: Floor) -> None:
    order = await owed(floor)
    await begun_refund(floor, "att_1")
    assert ((await floor.row(order)).refund, floor.refunds()) == ("sending", [])
    floor.shop.world.clock.advance(20 * MINUTE)
    await synced(floor)
    await floor.work(2, every=1)
    assert (await floor.end(order), floor.refunds(), await floor.letters(OPERATOR)) == (DONE, [1000], [])


async def test_a_refund_that_nobody_tried_for_a_day_is_tried_all_the_same(floor: Floor) -> None:
    order = await owed(floor)
    await floor.work(1, every=30 * HOUR)
    assert (await floor.end(order), floor.refunds()) == (DONE, [1000])


@pytest.mark.parametrize("comes", [True, False])
async def test_a_part_that_is_being_refunded_by_hand_is_waited_for(floor: Floor, comes: bool) -> None:
    order = await failing(floor)
    charge = await floor.charge(order)
    await floor.at_processor("closed", after=comes, times=99)
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        body = {"charge": charge, "amount": 400}
        answer = await http.post("/v1/operator-billing/refunds", json=body, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 502, answer.text
    await floor.calm()
    await floor.work(3, every=MINUTE)
    assert (await floor.row(order)).refund == "owed"
    floor.shop.world.clock.advance(20 * MINUTE)
    await synced(floor)
    await floor.work(2, every=5 * MINUTE)
    assert ((await floor.row(order)).refund, sorted(floor.refunds())) == ("done", [400, 600] if comes else [1000])


async def test_what_was_paid_in_another_currency_goes_back_whole(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    row = await floor.row(order)
    real = await floor.deps.payments.find_checkout(row.payee, row.session or "")
    said = on_the_wire(row.session or "", payment_intent=real.payment_intent, currency="sek", amount_total=87)
    assert await tell(floor, "evt_1", "checkout.session.completed", said) == 200
    await floor.shop.told()
    await floor.work(2, every=1)
    assert (await floor.end(order), floor.refunds()) == (("failed", "payment_mismatch", "done"), [1000])


async def fallen(floor: Floor, order: str) -> Refund:
    """The refund of an order was made, and then the buyer's bank did not take it; a person has it tried again. The first word of it."""
    await floor.work(2)
    await floor.shop.told()
    [refund] = floor.shop.world.payments.state.book(floor.shop.payee).refunds
    first = await floor.deps.payments.find_refund(floor.shop.payee, refund)
    floor.shop.world.clock.advance(5)
    async with floor.shop.world.payments.turn(writes=True) as state:
        fail_refund(state, floor.shop.payee, state.book(floor.shop.payee).refunds[refund])
    await floor.shop.told()
    assert await floor.end(order) == ("failed", FAILED, "failed")
    assert await floor.deps.store.write(retry_refund, order=order, now=floor.shop.world.clock.now())
    return first


@pytest.mark.parametrize("word", ["old", "same"])
async def test_words_about_a_refund_that_fell_do_not_end_the_next_try(floor: Floor, word: str) -> None:
    order = await failing(floor)
    first = await fallen(floor, order)
    if word == "old":
        of = floor.shop.me.organisation
        payee, at = floor.shop.payee, first.created
        await floor.deps.store.write(take_processor_record, deps=floor.deps, account=payee, organisation=of, thing=first, as_of=at, now=at)
    else:
        await synced(floor)
    assert ((await floor.row(order)).refund, len(await floor.letters(OPERATOR))) == ("owed", 1)
    await floor.work(2, every=1)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("done", [1000, 1000])


async def test_a_try_that_never_left_does_not_let_the_next_one_repeat_the_refund_that_fell(floor: Floor) -> None:
    order = await failing(floor)
    await fallen(floor, order)
    await floor.at_processor("rate_limited", times=1)
    await floor.work(1)
    assert (await floor.row(order)).refund == "owed"
    await floor.work(3, every=MINUTE)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("done", [1000, 1000])


@pytest.mark.parametrize("settle", [record_payment_unknown, record_payment_refused])
async def test_a_worker_whose_refund_another_one_settled_as_refused_agrees(floor: Floor, settle: Callable[..., Conclusion]) -> None:
    order, store, now = await owed(floor), floor.deps.store, floor.shop.world.clock.now()
    await begun_refund(floor, "att_1")
    refusal = PaymentsRefused("The charge is disputed")
    named = {"attempt": "att_1", "request_id": "req_1"}
    assert (await store.write(record_payment_refused, **named, refusal=refusal, now=now)).outcome != "ok"
    more = {} if settle is record_payment_unknown else {"refusal": refusal}
    concluded = await store.write(settle, **named, **more, now=now)
    assert (concluded.outcome != "ok", concluded.unknown, concluded.status) == (True, False, 400)
    await floor.work(2, every=125)
    assert ((await floor.row(order)).refund, len(await floor.letters(OPERATOR))) == ("failed", 1)
