"""Where an order stands: what its row says until it is ready, and from then on what the ledger says of its eSIM (api.md 3.6).

Said twice, for a row that was read and for the database, which filters by it; both go by the same words.
"""

from collections.abc import Mapping
from typing import Literal

import sqlalchemy as sa

from storage.issuing.issuance import ISSUANCE, UNSETTLED
from storage.shop.orders import ORDER, OrderRow

OrderStatus = Literal[
    "pending_payment",
    "paid",
    "provisioning",
    "ready",
    "failed",
    "needs_review",
    "rollback_pending",
    "rolled_back",
    "rollback_unknown",
]
AFTERWARDS: Mapping[str | None, OrderStatus] = {
    "rollback_pending": "rollback_pending",
    "rolled_back": "rolled_back",
    "rollback_unknown": "rollback_unknown",
    "released": "rolled_back",  # freed past us: it is the buyer's no more either
}
SHOWN_STATUS: sa.ColumnElement[str] = sa.case(
    *(((ORDER.c.status == "ready") & (ISSUANCE.c.state == state), status) for state, status in AFTERWARDS.items()),
    ((ORDER.c.status == "provisioning") & ISSUANCE.c.state.in_(UNSETTLED), "needs_review"),
    else_=ORDER.c.status,
)


def status_of(row: OrderRow) -> OrderStatus:
    """As buyers and operators see it. Of a crash the ledger knows first: what it cannot tell needs review."""
    if row.status == "ready":
        return AFTERWARDS.get(row.ledger, "ready")
    if row.status == "provisioning" and row.ledger in UNSETTLED:
        return "needs_review"
    return row.status


def cancelled_at(row: OrderRow) -> float | None:
    """When no more top-ups were taken: since it was cancelled, or since its eSIM went back."""
    if row.cancelled_at is None and status_of(row) == "rolled_back":
        return row.ledger_updated
    return row.cancelled_at
