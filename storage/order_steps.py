"""Steps on the way of an order or a top-up that its row does not keep: what stopped it, what went back, and the mails to its buyer.

When it was begun, paid, ready or cancelled is in the row (orders.py). A step says nothing of the buyer.
"""

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import CLUSTERED, Command, Connection, Query, TableDescription, bound_list, insert_once, pack_rows


class OrderStepRow(NamedTuple):
    """A step of the order or top-up with this number. `at`: when it was taken; `sent_at`: when its mail was sent. Both Unix seconds.

    `step`: failed, needs_review, refunded, refund_failed, or `mail_` and the name of a mail to the buyer. `mail`: the id of that mail, ''
    where it is none.
    """

    storefront_order: str
    at: float
    step: str
    mail: str
    sent_at: float | None


class OrderStepTable(TableDescription, row=OrderStepRow, without=("storefront_order", "at", "step", "mail"), table=True):
    """A step on the way of an order or a top-up, kept as long as it."""

    storefront_order: str = Field(primary_key=True)
    at: float = Field(primary_key=True)
    step: str = Field(primary_key=True)
    mail: str = Field(primary_key=True)
    __table_args__ = (sa.Index("order_step_mail", "mail"), CLUSTERED)


ORDER_STEP = OrderStepTable.table

ADD_ORDER_STEP = Command(insert_once(ORDER_STEP, ("storefront_order", "at", "step", "mail"), sent_at=sa.null()))

STEPS_OF_ORDERS = Query(
    OrderStepRow,
    lambda dialect: (
        sa.select(*(ORDER_STEP.c[name] for name in OrderStepRow._fields))
        .where(ORDER_STEP.c.storefront_order.in_(bound_list(dialect, "orders")))
        .order_by(ORDER_STEP.c.at, ORDER_STEP.c.step)
    ),
)

MARK_MAIL_SENT = Command(
    lambda _: sa.update(ORDER_STEP).where(ORDER_STEP.c.mail == sa.bindparam("id")).values(sent_at=sa.bindparam("now", type_=sa.Double))
)


def add_order_step(connection: Connection, *, order: str, step: str, now: float, mail: str = "") -> None:
    """Write a step of an order or a top-up in the transaction that takes it. `now`: Unix seconds."""
    connection.run(ADD_ORDER_STEP, storefront_order=order, at=now, step=step, mail=mail)


def mark_mail_sent(connection: Connection, *, mail: str, now: float) -> None:
    """The mail server took a mail at `now`, Unix seconds; of a mail that is no step of an order nothing is kept."""
    connection.run(MARK_MAIL_SENT, id=mail, now=now)


def steps_of_orders(connection: Connection, *, orders: Collection[str]) -> list[OrderStepRow]:
    """The steps of orders and top-ups, oldest first."""
    return connection.all(STEPS_OF_ORDERS, orders=pack_rows([[order] for order in sorted(orders)]))
