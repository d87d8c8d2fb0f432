"""40 buyers who paid, and a stock of 30: 30 have an eSIM, 10 have their money back, and nobody paid for nothing."""

from collections import Counter
from copy import deepcopy

import pytest

from clients.payments.records import CheckoutSession
from operations.ledger.payment_intake import take_checkout
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.charges import make_charge
from storage.engine.sql import Connection
from storage.issuance import IssuanceHolder, holders_of_iccids
from storage.orders import NewOrder, insert_order, name_session
from tests.fulfilment.floor import ACCOUNT, PRICE, Floor
from tests.top_ups.counter import BUYER, GOOD_CARD, NORDIC

BUYERS, STOCK = 40, 30


async def stock_up(floor: Floor, wanted: int) -> None:
    """So many free eSIMs in the account: those it has, and others like the first of them."""
    network = await floor.shop.world.network()
    free = [line for line in network.lines_of(ACCOUNT) if line.sim.status == "FREE"]
    newest = max(network.lines)
    for number in range(1, wanted - len(free) + 1):
        line = deepcopy(free[0])
        line.id, line.sim.id = newest + number, 10_000_000 + number
        for row in line.imsis:
            row.iccid = str(8988303000001000000 + number)
        network.lines[line.id] = line


async def sold(floor: Floor, count: int) -> list[str]:
    shop, world, orders = floor.shop, floor.shop.world, [f"ord_{number:03d}" for number in range(count)]
    async with world.payments.turn(writes=True) as state:
        card = PaymentCard(GOOD_CARD, "B. Uyer", BUYER)
        charges = [make_charge(state, shop.payee, amount=PRICE, currency="eur", card=card) for _ in orders]
    now = world.clock.now()

    def pay_all(connection: Connection) -> int:
        paid = 0
        for order, charge in zip(orders, charges, strict=True):
            shop_id, organisation = shop.shop.id, shop.shop.organisation
            bought = '{"slug":"nordic","name":"Nordic"}'
            row = NewOrder(order, None, organisation, shop_id, "nordic", bought, NORDIC, None, PRICE, "EUR", "en", shop.payee, now)
            insert_order(connection, order=row)
            name_session(connection, order=order, session=f"cs_{order}", ends=int(now) + 3600, look_ms=int(now + 600) * 1000)
            session = CheckoutSession(f"cs_{order}", "complete", "paid", PRICE, "EUR", charge.intent, int(now) + 3600, email=BUYER)
            paid += take_checkout(connection, deps=floor.deps, account=shop.payee, session=session, now=now)
        return paid

    assert await world.store.write(pay_all) == count
    return orders


@pytest.mark.long
async def test_the_last_esims_are_for_those_who_get_them_and_all_others_get_their_money_back(floor: Floor) -> None:
    await stock_up(floor, STOCK)
    orders = await sold(floor, BUYERS)
    await floor.work(40, every=1)
    rows = [await floor.row(order) for order in orders]
    assert Counter((row.status, row.code, row.refund) for row in rows) == {
        ("ready", None, None): STOCK,
        ("failed", "no_inventory", "done"): BUYERS - STOCK,
    }
    issued = {row.iccid or "" for row in rows if row.status == "ready"}
    holders: list[IssuanceHolder] = await floor.deps.store.read(holders_of_iccids, iccids=sorted(issued))
    assert (len(issued), {holder.key for holder in holders}) == (STOCK, {row.id for row in rows if row.status == "ready"})
    assert (floor.refunds(), floor.draws(), await floor.gone()) == ([PRICE] * (BUYERS - STOCK), BUYERS, STOCK)
    assert Counter(letter.attachment is not None for letter in await floor.letters(BUYER)) == {True: STOCK, False: BUYERS - STOCK}
