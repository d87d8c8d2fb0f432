"""How much work waits, and for how long: one look at the database for all replicas.

What may grow without end is counted up to MOST_COUNTED rows, so that a look costs the same however much waits or has failed.
"""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import UNSETTLED
from storage.long import Long
from storage.reports.intelligence_tables import IntelligenceReportTable
from storage.reports.schedules import next_boundary
from storage.schema import DeliveryTable, IssuanceTable, MailTable
from storage.shop.orders import ORDER
from storage.statement import Query, table
from storage.webhooks.deliveries import FAILED, PENDING

DELIVERY, ISSUANCE, MAIL, REPORT = table(DeliveryTable), table(IssuanceTable), table(MailTable), table(IntelligenceReportTable)
ROLLING_BACK = ("rollback_pending", "rollback_unknown")
UNRESOLVED = ("dispatching", "outcome_unknown", "manual_reconciliation_required", *ROLLING_BACK)
UNFINISHED = ("paid", "provisioning", "needs_review")
REPORTS = ("waiting", "running")
REFUNDS = ("owed", "sending", "unknown", "failed")
NOW = sa.bindparam("now_ms", type_=sa.BigInteger)
MOST_COUNTED = 10_000


class Waiting(NamedTuple):
    """Deliveries: all that are pending, those due, those under a lease, those that are not tried again by themselves; and when the oldest
    of the due ones was to be sent."""

    pending: int
    due: int
    in_flight: int
    failed: int
    oldest_due_ms: int | None


class WaitingMails(NamedTuple):
    """Mails that are to be sent, and when the first of them was, or is, to be."""

    mails: int
    next_due_ms: int | None


class LockWaits(NamedTuple):
    """Transactions of a PostgreSQL database that wait for a lock now, and for how many seconds the oldest of them has."""

    transactions: int
    seconds: float


class Unresolved(NamedTuple):
    """Issuances in one state, and since when the oldest of them is; None where there is none."""

    state: str
    rows: int
    since: float | None


class Hindered(NamedTuple):
    """Issuances of unknown outcome that one obstacle keeps from being settled; nothing: nobody has looked yet."""

    obstacle: str | None
    rows: int


class Unfinished(NamedTuple):
    """Orders and top-ups that were paid and have not ended, in one status, and since when the oldest is paid; None: there is none."""

    status: str
    orders: int
    since: float | None


class Refunds(NamedTuple):
    """Refunds of orders in one state."""

    refund: str
    orders: int


class Reports(NamedTuple):
    """Reports of schedules in one state."""

    state: str
    reports: int


class Depth(NamedTuple):
    """What waits now. `lock_waits` is None on SQLite, where writers of other processes are waited for by one of this."""

    waiting: Waiting
    mails: WaitingMails
    lock_waits: LockWaits | None
    unresolved: Mapping[str, Unresolved]
    obstacles: Mapping[str, int]
    unfinished: Mapping[str, Unfinished]
    refunds: Mapping[str, int]
    reports: Mapping[str, int]
    next_boundary_ms: int | None


LIMIT = sa.literal_column(str(MOST_COUNTED), sa.Integer)
ONE = sa.literal_column("1", sa.Integer)


def count_of(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """How many rows the conditions hold for, as far as they are counted."""
    rows = sa.select(ONE.label("one")).where(*conditions).limit(LIMIT).subquery()
    return sa.select(sa.func.count()).select_from(rows).scalar_subquery()


def in_state(value: int) -> sa.ColumnElement[bool]:
    """Deliveries in a state. Written out, so that indexes of some states are found."""
    return DELIVERY.c.state == sa.literal_column(str(value))


DUE = in_state(PENDING) & (DELIVERY.c.due_ms <= NOW)
QUEUED = Query(
    Waiting,
    sa.select(
        count_of(in_state(PENDING)).label("pending"),
        count_of(DUE).label("due"),
        count_of(DELIVERY.c.lease.is_not(None), DELIVERY.c.state + 0 == PENDING, DELIVERY.c.due_ms > NOW).label("in_flight"),
        count_of(in_state(FAILED)).label("failed"),
        sa.select(DELIVERY.c.due_ms).where(DUE).order_by(DELIVERY.c.due_ms).limit(ONE).scalar_subquery().label("oldest_due_ms"),
    ),
)
MAILS = Query(
    WaitingMails,
    sa.select(
        count_of(MAIL.c.due_ms >= sa.literal_column("0")).label("mails"),
        sa.select(MAIL.c.due_ms).order_by(MAIL.c.due_ms).limit(ONE).scalar_subquery().label("next_due_ms"),
    ),
)
ACTIVITY = sa.table(
    "pg_stat_activity",
    sa.column("datname", sa.Text),
    sa.column("wait_event_type", sa.Text),
    sa.column("query_start", sa.DateTime(timezone=True)),
)
WAITED = sa.extract("epoch", sa.func.clock_timestamp() - ACTIVITY.c.query_start)
LOCK_WAITS = Query(
    LockWaits,
    sa.select(
        sa.func.count().label("transactions"),
        sa.cast(sa.func.coalesce(sa.func.max(WAITED), 0), sa.Double).label("seconds"),
    )
    .select_from(ACTIVITY)
    .where(ACTIVITY.c.datname == sa.func.current_database(), ACTIVITY.c.wait_event_type == sa.literal_column("'Lock'")),
)


def unresolved_in(state: str) -> sa.Select[str, int, float]:
    """The issuances of one state. A release begins long after its issuance was dispatched."""
    since = ISSUANCE.c.updated if state in ROLLING_BACK else ISSUANCE.c.dispatched
    rows = sa.select(since.label("since")).where(ISSUANCE.c.state == state).limit(LIMIT).subquery()
    return sa.select(sa.literal(state).label("state"), sa.func.count().label("rows"), sa.func.min(rows.c.since).label("since"))


OPEN = Query(Unresolved, sa.union_all(*map(unresolved_in, UNRESOLVED)))
OBSTACLES = sa.select(ISSUANCE.c.obstacle).where(ISSUANCE.c.state.in_(UNSETTLED)).limit(LIMIT).subquery()
HINDERED = Query(Hindered, sa.select(OBSTACLES.c.obstacle, sa.func.count().label("rows")).group_by(OBSTACLES.c.obstacle))


def unfinished_in(status: str) -> sa.Select[str, int, float]:
    """The orders of one status."""
    rows = sa.select(sa.func.coalesce(ORDER.c.paid_at, ORDER.c.updated).label("since")).where(ORDER.c.status == status)
    some = rows.limit(LIMIT).subquery()
    return sa.select(sa.literal(status).label("status"), sa.func.count().label("orders"), sa.func.min(some.c.since).label("since"))


NOT_ENDED = Query(Unfinished, sa.union_all(*map(unfinished_in, UNFINISHED)))
# Choice: of the orders that failed the last ones that anything happened to, since no index knows the state of a refund.
LAST_FAILED = sa.select(ORDER.c.refund).where(ORDER.c.status == "failed").order_by(ORDER.c.updated.desc()).limit(LIMIT).subquery()
OWED = Query(
    Refunds,
    sa.select(LAST_FAILED.c.refund, sa.func.count().label("orders"))
    .where(LAST_FAILED.c.refund.in_(REFUNDS))
    .group_by(LAST_FAILED.c.refund),
)
# What is due has a time; said as a range, which the index finds, while it would be read from end to end for what is not null.
TO_MAKE = sa.select(REPORT.c.state).where(REPORT.c.due_ms >= sa.literal_column("0")).limit(LIMIT).subquery()
MAKING = Query(Reports, sa.select(TO_MAKE.c.state, sa.func.count().label("reports")).group_by(TO_MAKE.c.state))


@Long  # ten thousand rows of everything are some milliseconds, which the loop does not have
def depth(connection: Connection, *, now_ms: int) -> Depth:
    """What waits, as one snapshot."""
    waiting, mails = connection.first(QUEUED, now_ms=now_ms), connection.first(MAILS)
    assert waiting is not None and mails is not None  # without a FROM there is always a row
    return Depth(
        waiting,
        mails,
        lock_waits=connection.first(LOCK_WAITS) if connection.dialect_name == "postgresql" else None,
        unresolved={row.state: row for row in connection.all(OPEN)},
        obstacles={row.obstacle or "not_looked_into": row.rows for row in connection.all(HINDERED)},
        unfinished={row.status: row for row in connection.all(NOT_ENDED)},
        refunds={row.refund: row.orders for row in connection.all(OWED)},
        reports={row.state: row.reports for row in connection.all(MAKING)},
        next_boundary_ms=next_boundary(connection),
    )
