"""The money of an order that came to nothing: it goes back once, whatever the processor does, and not what went back by hand."""

import pytest

from operations.ledger.payment_intake import sync_payments
from simulators.processor.disputes import open_dispute
from simulators.processor.refunds import fail_refund
from storage.order_queue import retry_refund
from tests.fulfilment.floor import Floor
from tests.network_facts import HOUR, MINUTE

TROUBLES = [
    (kind, after)
    for kind in ("timeout", "closed", "error", "garbage", "rate_limited")
    for after in ((True,) if kind == "garbage" else (False,) if kind == "rate_limited" else (False, True))
]
FAILED = "no_inventory"


async def failing(floor: Floor) -> str:
    """An order that was paid and that the stock has no eSIM for."""
    order = await floor.paid()
    floor.strike(code=6)
    return order


@pytest.mark.long
@pytest.mark.parametrize(("kind", "after"), TROUBLES)
async def test_a_refund_in_trouble_is_made_once_in_the_end(floor: Floor, kind: str, after: bool) -> None:
    for made, times in ((1, 1), (2, 30)):
        order = await failing(floor)
        await floor.at_processor(kind, after=after, times=times)
        await floor.work(4, every=MINUTE)
        await floor.calm()
        await floor.work(3, every=HOUR)
        assert (await floor.end(order), floor.refunds()) == (("failed", FAILED, "done"), [1000] * made)
        await floor.shop.told()
        await floor.work(3, every=HOUR)
        assert (floor.refunds(), await floor.is_settled_well(order)) == ([1000] * made, True)


@pytest.mark.parametrize("way", ["event", "sync"])
async def test_a_refund_whose_answers_are_lost_is_done_when_the_processor_tells_of_it(floor: Floor, way: str) -> None:
    order = await failing(floor)
    await floor.at_processor("closed", after=True, times=99)
    await floor.work(2, every=1)
    assert (await floor.row(order)).refund == "unknown"
    if way == "event":
        await floor.shop.told()
    else:
        await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)
    row = await floor.row(order)
    assert (row.refund, row.due_ms, row.lease) == ("done", None, None)
    asked = await floor.asked_processor()
    await floor.work(5, every=HOUR)
    assert (await floor.asked_processor(), floor.refunds()) == (asked, [1000])


async def test_a_refund_that_was_surely_never_made_is_made_anew(floor: Floor) -> None:
    order = await failing(floor)
    await floor.at_processor("closed", times=99)
    await floor.work(3, every=1)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("unknown", [])
    floor.shop.world.clock.advance(20 * MINUTE)
    await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)
    assert (await floor.row(order)).refund == "owed"
    await floor.calm()
    await floor.work(1, every=1)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("done", [1000])


@pytest.mark.long
async def test_what_nobody_can_tell_for_20_hours_is_for_the_operator_and_a_person_tries_it_again(on_both: Floor) -> None:
    floor = on_both
    order = await failing(floor)
    await floor.at_processor("closed", times=9999)
    await floor.work(25, every=HOUR)
    row = await floor.row(order)
    assert (row.refund, row.due_ms) == ("unknown", None)
    assert [letter.subject for letter in await floor.letters("help@fjord.test")] == [f"A refund failed: {order}"]
    asked = await floor.asked_processor()
    await floor.work(2, every=HOUR)
    assert await floor.asked_processor() == asked
    await floor.calm()
    assert await floor.deps.store.write(retry_refund, order=order, now=floor.shop.world.clock.now())
    assert not await floor.deps.store.write(retry_refund, order="ord_unknown", now=floor.shop.world.clock.now())
    await floor.work()
    assert ((await floor.row(order)).refund, floor.refunds()) == ("done", [1000])


async def test_what_the_processor_refuses_is_for_the_operator(floor: Floor) -> None:
    order = await failing(floor)
    async with floor.shop.world.payments.turn(writes=True) as state:
        open_dispute(state, floor.shop.payee, await floor.charge(order))
    await floor.work(3, every=HOUR)
    assert (await floor.end(order), floor.refunds()) == (("failed", FAILED, "failed"), [])
    assert [letter.subject for letter in await floor.letters("help@fjord.test")] == [f"A refund failed: {order}"]
    assert await floor.shop.world.store.write(retry_refund, order=order, now=floor.shop.world.clock.now())
    await floor.work()
    assert (await floor.row(order)).refund == "failed"


@pytest.mark.cases
@pytest.mark.parametrize(("by_hand", "told"), [(1000, True), (1000, False), (400, True), (400, False)])
async def test_what_was_refunded_by_hand_does_not_go_back_twice(floor: Floor, by_hand: int, told: bool) -> None:
    order = await failing(floor)
    charge = await floor.charge(order)
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        body = {"charge": charge, "amount": by_hand}
        answer = await http.post("/v1/operator-billing/refunds", json=body, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 201
    if told:
        await floor.shop.told()
    await floor.work(3, every=1)
    assert (await floor.row(order)).refund == "done"
    assert sum(floor.refunds()) == 1000


@pytest.mark.cases
@pytest.mark.parametrize("told", [True, False])
async def test_an_order_whose_payment_went_back_by_hand_before_the_draw_draws_nothing(on_both: Floor, told: bool) -> None:
    floor = on_both
    order = await floor.paid()
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        body = {"charge": await floor.charge(order)}
        answer = await http.post("/v1/operator-billing/refunds", json=body, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 201
    if told:
        await floor.shop.told()
    await floor.work(3, every=1)
    assert (await floor.end(order), floor.refunds(), floor.draws()) == (("failed", "payment_refunded", "done"), [1000], 0)


async def test_an_order_whose_refund_was_told_of_before_its_payment_draws_nothing(on_both: Floor) -> None:
    floor = on_both
    begun = await floor.shop.begin()
    await floor.shop.pay(begun.order)
    [charge] = floor.shop.world.payments.state.book(floor.shop.payee).charges
    await floor.deps.payments.refund(floor.shop.payee, charge=charge, amount=1000, reason=None, key="by-hand", metadata={})
    await floor.lose_news()
    await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)
    await floor.work(3, every=1)
    assert (await floor.end(begun.order), floor.refunds(), floor.draws()) == (("failed", "payment_refunded", "done"), [1000], 0)


@pytest.mark.long
async def test_a_top_up_whose_refund_was_told_of_before_its_payment_adds_nothing(floor: Floor) -> None:
    order = await floor.paid()
    await floor.work()
    [before] = floor.shop.world.payments.state.book(floor.shop.payee).charges
    begun = await floor.shop.begin_top_up(order)
    await floor.shop.pay(begun.order)
    [charge] = floor.shop.world.payments.state.book(floor.shop.payee).charges.keys() - {before}
    await floor.deps.payments.refund(floor.shop.payee, charge=charge, amount=1000, reason=None, key="by-hand", metadata={})
    await floor.lose_news()
    await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)
    await floor.work(3, every=1)
    assert (await floor.end(begun.order), await floor.end(order)) == (("failed", "payment_refunded", "done"), ("ready", None, None))


async def test_an_order_of_which_a_part_went_back_is_delivered(floor: Floor) -> None:
    order = await floor.paid()
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        body = {"charge": await floor.charge(order), "amount": 400}
        assert (await http.post("/v1/operator-billing/refunds", json=body, headers={"Idempotency-Key": "k"})).status_code == 201
    await floor.shop.told()
    await floor.work(3, every=1)
    assert (await floor.end(order), floor.refunds(), floor.draws()) == (("ready", None, None), [400], 1)


async def test_while_nobody_knows_of_a_refund_by_hand_the_rest_waits_and_all_goes_back_when_it_came_to_nothing(floor: Floor) -> None:
    order = await failing(floor)
    await floor.at_processor("closed", times=99)
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        body = {"charge": await floor.charge(order), "amount": 400}
        answer = await http.post("/v1/operator-billing/refunds", json=body, headers={"Idempotency-Key": "k"})
        assert answer.json()["code"] == "OUTCOME_UNKNOWN"
    await floor.calm()
    await floor.work(3, every=MINUTE)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("owed", [])
    floor.shop.world.clock.advance(HOUR)
    await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)
    await floor.work(3, every=MINUTE)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("done", [1000])


@pytest.mark.parametrize("part", [1000, 300])
async def test_what_was_refunded_past_us_does_not_go_back_twice(floor: Floor, part: int) -> None:
    order = await failing(floor)
    charge = await floor.charge(order)
    await floor.deps.payments.refund(floor.shop.payee, charge=charge, amount=part, reason=None, key="by-hand", metadata={})
    await floor.work(3, every=1)
    assert ((await floor.row(order)).refund, sum(floor.refunds())) == ("done", 1000)


async def test_a_refund_that_the_buyers_bank_does_not_take_is_for_the_operator(floor: Floor) -> None:
    order = await failing(floor)
    await floor.work(2)
    await floor.shop.told()
    [refund] = floor.shop.world.payments.state.book(floor.shop.payee).refunds
    async with floor.shop.world.payments.turn(writes=True) as state:
        fail_refund(state, floor.shop.payee, state.book(floor.shop.payee).refunds[refund])
    await floor.shop.told()
    assert (await floor.end(order)) == ("failed", FAILED, "failed")
    assert len(await floor.letters("help@fjord.test")) == 1
    assert await floor.deps.store.write(retry_refund, order=order, now=floor.shop.world.clock.now())
    await floor.work(2, every=1)
    assert ((await floor.row(order)).refund, floor.refunds()) == ("done", [1000, 1000])
