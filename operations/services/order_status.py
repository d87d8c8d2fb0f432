"""Where an order stands: what its row says until it is ready, and from then on what the ledger says of its eSIM (api.md 3.6)."""

from collections.abc import Mapping
from typing import Literal

from storage.orders import OrderRow

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
STATUSES: tuple[OrderStatus, ...] = ("pending_payment", "paid", "provisioning", "ready", "failed", "needs_review")
AFTERWARDS: Mapping[str | None, OrderStatus] = {
    "rollback_pending": "rollback_pending",
    "rolled_back": "rolled_back",
    "rollback_unknown": "rollback_unknown",
    "released": "rolled_back",  # freed past us: it is the buyer's no more either
}
LOST = ("outcome_unknown", "manual_reconciliation_required")


def status_of(row: OrderRow) -> OrderStatus:
    """As buyers and operators see it. Of a crash the ledger knows first: what it cannot tell needs review."""
    if row.status == "ready":
        return AFTERWARDS.get(row.ledger, "ready")
    if row.status == "provisioning" and row.ledger in LOST:
        return "needs_review"
    return next(status for status in STATUSES if status == row.status)


def cancelled_at(row: OrderRow) -> float | None:
    """When no more top-ups were taken: since it was cancelled, or since its eSIM went back."""
    if row.cancelled_at is None and status_of(row) == "rolled_back":
        return row.ledger_updated
    return row.cancelled_at
