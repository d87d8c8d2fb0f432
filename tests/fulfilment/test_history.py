"""An order and a top-up draw once, whatever was swept since and whoever tells of the payment again."""

import pytest

from tests.fulfilment.floor import Floor
from tests.fulfilment.test_payment import order_session, take
from transports.settings import SHORTEST_HISTORY
from transports.worker.retention import retention_chore

YEAR = 365 * 86_400.0


@pytest.mark.long
async def test_a_payment_that_is_told_again_after_every_sweep_draws_nothing(on_both: Floor) -> None:
    floor, shop = on_both, on_both.shop
    order = await floor.paid()
    await floor.work(2, every=1)
    top_up = (await shop.begin_top_up(order)).order
    await shop.pay(top_up)
    await shop.told()
    await floor.work(3, every=1)
    assert [(await floor.row(each)).status for each in (order, top_up)] == ["ready", "ready"]
    sessions = [await order_session(floor, each) for each in (order, top_up)]
    assert shop.added() == 1

    shop.world.clock.advance(YEAR)
    for _ in range(2):  # the first run only closes the database to older programs
        await retention_chore(shop.world.store, shop.world.clock, print, SHORTEST_HISTORY).run()
    for session in sessions:
        assert not await take(floor, session)
    await floor.work(3, every=60)
    assert [(await floor.row(each)).status for each in (order, top_up)] == ["ready", "ready"]
    assert (floor.draws(), shop.added()) == (1, 1)
    assert await floor.ledger(order) is not None


@pytest.mark.long
async def test_an_order_that_failed_is_refunded_once_and_never_drawn_after_a_sweep(on_both: Floor) -> None:
    floor, shop = on_both, on_both.shop
    floor.strike(code=8)
    order = await floor.paid()
    await floor.work(3, every=1)
    session = await order_session(floor, order)
    assert (await floor.row(order)).status == "failed"
    shop.world.clock.advance(YEAR)
    for _ in range(2):  # the first run only closes the database to older programs
        await retention_chore(shop.world.store, shop.world.clock, print, SHORTEST_HISTORY).run()
    assert not await take(floor, session)
    await floor.work(3, every=60)
    assert (floor.draws(), floor.refunds()) == (1, [1000])
