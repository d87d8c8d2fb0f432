"""Where an order stands is said in two languages, Python and SQL; both say the same."""

from typing import get_args

import sqlalchemy as sa

from storage.engine.sql import Command, Connection
from storage.issuance import ISSUANCE, DrawnSim, IssuanceState, NewIssuance, begin_issuance, mark_issued
from storage.orders import STOREFRONT_ORDER, OrderStatus, find_order, list_orders, order_status_of
from tests.orders.stage import ACCOUNT, OrdersShop

KEPT = ("pending_payment", "paid", "provisioning", "ready", "failed", "needs_review")
LEDGER = (None, *get_args(IssuanceState))
SET_ORDER = Command(sa.update(STOREFRONT_ORDER).where(STOREFRONT_ORDER.c.id == sa.bindparam("named")).values(status=sa.bindparam("to")))
SET_LEDGER = Command(sa.update(ISSUANCE).where(ISSUANCE.c.key == sa.bindparam("named")).values(state=sa.bindparam("to")))


async def test_the_filter_finds_each_order_under_the_status_that_it_shows(shop: OrdersShop) -> None:
    orders = {(kept, ledger): await shop.order() for kept in KEPT for ledger in LEDGER}
    store, organisation = shop.world.store, shop.me.organisation

    def arrange(connection: Connection) -> None:
        for number, ((kept, ledger), id) in enumerate(orders.items()):
            connection.run(SET_ORDER, named=id, to=kept)
            if ledger is not None:
                row = NewIssuance(organisation, id, "o", None, "w", ACCOUNT, 1, None, None, None, "r", "l", "s")
                begin_issuance(connection, row=row, now=1.0)
                mark_issued(connection, organisation=organisation, key=id, drawn=DrawnSim(f"89{number:017}", 1, 1, 1), now=1.0)
                connection.run(SET_LEDGER, named=id, to=ledger)

    await store.write(arrange)
    shown = {id: order_status_of(row) for id in orders.values() if (row := await store.read(find_order, order=id)) is not None}
    found: dict[str, OrderStatus] = {}
    for status in get_args(OrderStatus):
        for order in await store.read(list_orders, organisation=organisation, status=status, most=100):
            assert order.row.id not in found
            found[order.row.id] = status
    assert found == shown and len(found) == len(KEPT) * len(LEDGER)
    paid = {order.row.id for order in await store.read(list_orders, organisation=organisation, most=100)}
    assert paid == {id for (kept, _), id in orders.items() if kept != "pending_payment"}
