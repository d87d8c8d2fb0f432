"""How much work waits, and for how long: one look at the database for all replicas."""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import UNSETTLED
from storage.reports.schedule_reports import unfinished_reports
from storage.reports.schedules import next_boundary
from storage.schema import DeliveryTable, IssuanceTable
from storage.shop.orders import ORDER
from storage.statement import Query, table
from storage.webhooks.deliveries import FAILED, PENDING

DELIVERY, ISSUANCE = table(DeliveryTable), table(IssuanceTable)
ROLLING_BACK = ("rollback_pending", "rollback_unknown")
UNRESOLVED = ("dispatching", "outcome_unknown", "manual_reconciliation_required", *ROLLING_BACK)
UNFINISHED = ("paid", "provisioning", "needs_review")
REPORTS = ("waiting", "running")
REFUNDS = ("owed", "sending", "unknown", "failed")
NOW = sa.bindparam("now_ms", type_=sa.BigInteger)


class Waiting(NamedTuple):
    """Pending deliveries: all, those due, those under a lease, and when the oldest of the due ones was to be sent."""

    pending: int
    due: int
    in_flight: int
    oldest_due_ms: int | None


class Ended(NamedTuple):
    """Deliveries that will not be tried again by themselves."""

    failed: int


class Unresolved(NamedTuple):
    """Issuances in one state, and since when the oldest of them is."""

    state: str
    rows: int
    since: float


class Hindered(NamedTuple):
    """Issuances of unknown outcome that one obstacle keeps from being settled; nothing: nobody has looked yet."""

    obstacle: str | None
    rows: int


class Unfinished(NamedTuple):
    """Orders and top-ups that were paid and have not ended, in one status, and since when the oldest of them is paid."""

    status: str
    orders: int
    since: float


class Refunds(NamedTuple):
    """Refunds of orders in one state."""

    refund: str
    orders: int


class Depth(NamedTuple):
    """What waits now."""

    waiting: Waiting
    failed: int
    unresolved: Mapping[str, Unresolved]
    obstacles: Mapping[str, int]
    unfinished: Mapping[str, Unfinished]
    refunds: Mapping[str, int]
    reports: Mapping[str, int]
    next_boundary_ms: int | None


def counted(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    """How many rows it holds for; none is 0."""
    return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)


DUE = DELIVERY.c.due_ms <= NOW
QUEUED = Query(
    Waiting,
    sa.select(
        sa.func.count().label("pending"),
        counted(DUE).label("due"),
        counted((DELIVERY.c.due_ms > NOW) & DELIVERY.c.lease.is_not(None)).label("in_flight"),
        sa.func.min(sa.case((DUE, DELIVERY.c.due_ms))).label("oldest_due_ms"),
    ).where(DELIVERY.c.state == sa.literal_column(str(PENDING))),
)
GIVEN_UP = Query(Ended, sa.select(sa.func.count().label("failed")).where(DELIVERY.c.state == sa.literal_column(str(FAILED))))
# A release begins long after its issuance was dispatched.
SINCE = sa.case((ISSUANCE.c.state.in_(ROLLING_BACK), ISSUANCE.c.updated), else_=ISSUANCE.c.dispatched)
OPEN = Query(
    Unresolved,
    sa.select(ISSUANCE.c.state, sa.func.count().label("rows"), sa.func.min(SINCE).label("since"))
    .where(ISSUANCE.c.state.in_(UNRESOLVED))
    .group_by(ISSUANCE.c.state),
)

HINDERED = Query(
    Hindered,
    sa.select(ISSUANCE.c.obstacle, sa.func.count().label("rows")).where(ISSUANCE.c.state.in_(UNSETTLED)).group_by(ISSUANCE.c.obstacle),
)
NOT_ENDED = Query(
    Unfinished,
    sa.select(
        ORDER.c.status, sa.func.count().label("orders"), sa.func.min(sa.func.coalesce(ORDER.c.paid_at, ORDER.c.updated)).label("since")
    )
    .where(ORDER.c.status.in_(UNFINISHED))
    .group_by(ORDER.c.status),
)
OWED = Query(
    Refunds,
    sa.select(ORDER.c.refund, sa.func.count().label("orders"))
    .where(ORDER.c.status == "failed", ORDER.c.refund.in_(REFUNDS))
    .group_by(ORDER.c.refund),
)


def depth(connection: Connection, *, now_ms: int) -> Depth:
    """One snapshot."""
    pending, ended = connection.first(QUEUED, now_ms=now_ms), connection.first(GIVEN_UP)
    assert pending is not None and ended is not None  # sums without a GROUP BY always have a row
    return Depth(
        pending,
        ended.failed,
        unresolved={row.state: row for row in connection.all(OPEN)},
        obstacles={row.obstacle or "not_looked_into": row.rows for row in connection.all(HINDERED)},
        unfinished={row.status: row for row in connection.all(NOT_ENDED)},
        refunds={row.refund: row.orders for row in connection.all(OWED)},
        reports=unfinished_reports(connection),
        next_boundary_ms=next_boundary(connection),
    )
