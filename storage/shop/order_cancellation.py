"""Cancelling an order: recorded once, whoever asks first (api.md 3.6)."""

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE
from storage.shop.orders import ORDER
from storage.statement import Command

GONE = sa.exists().where(
    ISSUANCE.c.organisation == ORDER.c.organisation, ISSUANCE.c.key == ORDER.c.id, ISSUANCE.c.state.in_(["rolled_back", "released"])
)
# One whose eSIM went back was cancelled by that, at that moment. `updated` stays: whoever works on the order goes by it.
CANCEL = Command(
    sa.update(ORDER)
    .where(
        ORDER.c.id == sa.bindparam("named"),
        ORDER.c.top_up_of.is_(None),
        ORDER.c.cancelled_at.is_(None),
        ORDER.c.status != "pending_payment",
        ~GONE,
    )
    .values(cancelled_at=sa.bindparam("now"))
)


def cancel_order(connection: Connection, *, order: str, now: float) -> bool:
    """Whether it is this very call that cancelled it; an unpaid order is not cancelled."""
    return connection.run(CANCEL, named=order, now=now) == 1
