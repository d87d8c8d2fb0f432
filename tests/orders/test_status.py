"""Where an order stands is said in two languages, Python and SQL; both say the same."""

from typing import get_args

import pytest
import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE, Drawn, NewIssuance, State, begin_issuance, issue
from storage.shop.order_lists import list_orders
from storage.shop.order_status import OrderStatus, status_of
from storage.shop.orders import ORDER, find_order
from storage.statement import Command
from tests.orders.stage import ACCOUNT, Shop

pytestmark = pytest.mark.anyio
KEPT = ("pending_payment", "paid", "provisioning", "ready", "failed", "needs_review")
LEDGER = (None, *get_args(State))
SET_ORDER = Command(sa.update(ORDER).where(ORDER.c.id == sa.bindparam("named")).values(status=sa.bindparam("to")))
SET_LEDGER = Command(sa.update(ISSUANCE).where(ISSUANCE.c.key == sa.bindparam("named")).values(state=sa.bindparam("to")))


async def test_the_filter_finds_each_order_under_the_status_that_it_shows(shop: Shop) -> None:
    orders = {(kept, ledger): await shop.order() for kept in KEPT for ledger in LEDGER}
    store, organisation = shop.world.store, shop.me.organisation

    def arrange(connection: Connection) -> None:
        for number, ((kept, ledger), id) in enumerate(orders.items()):
            connection.run(SET_ORDER, named=id, to=kept)
            if ledger is not None:
                row = NewIssuance(organisation, id, "o", None, "w", ACCOUNT, 1, None, None, None, "r", "l", "s")
                begin_issuance(connection, row=row, now=1.0)
                issue(connection, organisation=organisation, key=id, drawn=Drawn(f"89{number:017}", 1, 1, 1), now=1.0)
                connection.run(SET_LEDGER, named=id, to=ledger)

    await store.write(arrange)
    shown = {id: status_of(row) for id in orders.values() if (row := await store.read(find_order, order=id)) is not None}
    found: dict[str, OrderStatus] = {}
    for status in get_args(OrderStatus):
        for order in await store.read(list_orders, organisation=organisation, status=status, most=100):
            assert order.row.id not in found
            found[order.row.id] = status
    assert found == shown and len(found) == len(KEPT) * len(LEDGER)
    paid = {order.row.id for order in await store.read(list_orders, organisation=organisation, most=100)}
    assert paid == {id for (kept, _), id in orders.items() if kept != "pending_payment"}
