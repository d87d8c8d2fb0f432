"""Several workers over one queue, on either database: each row has one worker, and whoever lost a row does nothing with it."""

import anyio
import pytest

from operations.ledger.issuance_targets import OrderNotOurs, OrderTarget
from operations.ledger.payment_intake import take_checkout
from storage.order_queue import (
    ORDER_LEASE_MS,
    begin_refund,
    claim_order,
    due_organisations,
    fail_order,
    hold_order,
    mark_order_ready,
    reopen_order,
    review_order,
    send_order,
    set_refund,
    unsend_order,
    work_later,
)
from storage.order_queue import OrderEsim as Kept
from tests.fulfilment.floor import Floor

KEPT = Kept("8988303000000000001", "sealed", 7)


@pytest.mark.long
async def test_many_workers_at_once_draw_once_for_each_order(on_both: Floor) -> None:
    floor = on_both
    orders = [await floor.paid() for _ in range(6)]
    workers = [(await floor.born())[1] for _ in range(4)]
    async with anyio.create_task_group() as group:
        for worker in workers:
            group.start_soon(worker.step)
    await floor.work(2, every=1)
    assert {(await floor.row(order)).status for order in orders} == {"ready"}
    assert (floor.draws(), len(await floor.letters())) == (6, 6)


async def test_events_and_questions_at_once_pay_an_order_once(on_both: Floor) -> None:
    floor, news = on_both, list[bool]()
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    row = await floor.row(order)
    session = await floor.deps.payments.find_checkout(row.payee, row.session or "")

    async def tell() -> None:
        now = floor.shop.world.clock.now()
        news.append(await floor.deps.store.write(take_checkout, deps=floor.deps, account=row.payee, session=session, now=now))

    async with anyio.create_task_group() as group:
        for _ in range(16):
            group.start_soon(tell)
    assert sorted(news) == [False] * 15 + [True]


async def test_a_lease_keeps_a_row_for_two_minutes_and_every_move_asks_for_it(on_both: Floor) -> None:
    floor, store = on_both, on_both.deps.store
    order, now = await floor.paid(), floor.shop.world.clock.now()
    organisation, now_ms = floor.shop.me.organisation, int(now * 1000)
    mine = await store.write(claim_order, organisation=organisation, token="lse_1", now_ms=now_ms)
    assert mine is not None and (mine.id, mine.lease) == (order, "lse_1")
    assert await store.write(claim_order, organisation=organisation, token="lse_2", now_ms=now_ms + ORDER_LEASE_MS - 1) is None
    assert await store.read(due_organisations, now_ms=now_ms + ORDER_LEASE_MS - 1) == []
    assert await store.read(due_organisations, now_ms=now_ms + ORDER_LEASE_MS) == [organisation]
    theirs = await store.write(claim_order, organisation=organisation, token="lse_2", now_ms=now_ms + ORDER_LEASE_MS)
    assert theirs is not None and theirs.lease == "lse_2"
    assert not await store.write(hold_order, order=order, token="lse_1")
    assert not await store.write(work_later, order=order, token="lse_1", due_ms=0)
    with pytest.raises(OrderNotOurs):
        await store.write(OrderTarget(floor.deps, order, organisation, "lse_1").begin)
    with pytest.raises(OrderNotOurs):
        await store.write(OrderTarget(floor.deps, order, organisation).begin)
    assert await store.write(send_order, order=order, token="lse_2", owner="rpl_2", now=now)
    assert not await store.write(send_order, order=order, token="lse_2", owner="rpl_2", now=now)


async def test_every_move_is_made_once_and_only_from_where_it_may(on_both: Floor) -> None:
    floor, store = on_both, on_both.deps.store
    order, now = await floor.paid(), floor.shop.world.clock.now()
    organisation = floor.shop.me.organisation
    assert not await store.write(mark_order_ready, order=order, esim=KEPT, now=now)
    assert not await store.write(reopen_order, order=order, code="x", now=now)
    assert await store.write(claim_order, organisation=organisation, token="lse_1", now_ms=int(now * 1000)) is not None
    assert await store.write(send_order, order=order, token="lse_1", owner="rpl_1", now=now)
    await store.write(unsend_order, order=order)
    assert (await floor.row(order)).status == "paid"
    assert await store.write(send_order, order=order, token="lse_1", owner="rpl_1", now=now)
    assert [await store.write(review_order, order=order, code="x", now=now) for _ in range(2)] == [True, False]
    assert [await store.write(fail_order, order=order, code="y", now=now) for _ in range(2)] == [True, False]
    assert [await store.write(reopen_order, order=order, code="z", now=now) for _ in range(2)] == [True, False]
    assert await store.write(fail_order, order=order, code="y", now=now)
    assert await store.write(claim_order, organisation=organisation, token="lse_2", now_ms=int(now * 1000)) is not None
    assert not await store.write(begin_refund, order=order, token="lse_1", attempt="att_1")
    assert await store.write(begin_refund, order=order, token="lse_2", attempt="att_1")
    assert not await store.write(reopen_order, order=order, code="z", now=now)
    assert not await store.write(mark_order_ready, order=order, esim=KEPT, now=now)
    assert [await store.write(set_refund, order=order, token="lse_2", state="done", due_ms=None) for _ in range(2)] == [True, False]
