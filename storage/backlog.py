"""How much work waits, and for how long: one look at the database for all replicas.

What may grow without end is counted up to MOST_COUNTED rows, so that a look costs the same however much waits or has failed.
`late_work` answers whoever operates a PostgreSQL database: what is late, and how many processes work on it.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

import sqlalchemy as sa

from storage.deliveries import DELIVERY, FAILED_STATE, PENDING_STATE
from storage.engine.database_url import brief_connection
from storage.engine.drivers import DriverConnection
from storage.engine.sql import Connection, Query, postgresql_dialect, runs_in_thread
from storage.issuance import ISSUANCE, UNRESOLVED_ISSUANCE_STATES
from storage.mail import MAIL
from storage.orders import STOREFRONT_ORDER
from storage.replicas import running_keys
from storage.schedules import INTELLIGENCE_REPORT, next_boundary

ROLLING_BACK = ("rollback_pending", "rollback_unknown")

UNRESOLVED_STATES = ("dispatching", "outcome_unknown", "manual_reconciliation_required", *ROLLING_BACK)

UNFINISHED_STATUSES = ("paid", "provisioning", "needs_review")

REPORT_STATES = ("waiting", "running")

REFUND_STATES = ("owed", "sending", "unknown", "failed")

BACKLOG_NOW = sa.bindparam("now_ms", type_=sa.BigInteger)

MOST_COUNTED = 10_000


class WaitingDeliveries(NamedTuple):
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


class WaitingCount(NamedTuple):
    """Issuances in one state, or paid orders and top-ups of one status that have not ended; since when the oldest is in it, or paid.

    `since`: Unix seconds; None where there is none.
    """

    state: str
    rows: int
    since: float | None


class StateCount(NamedTuple):
    """Refunds or reports in one state, or issuances of unknown outcome that one obstacle hinders; None: nobody has looked into these."""

    state: str | None
    rows: int


class Backlog(NamedTuple):
    """What waits now. `lock_waits` is None on SQLite, where writers of other processes are waited for by one of this."""

    waiting: WaitingDeliveries
    mails: WaitingMails
    lock_waits: LockWaits | None
    unresolved: Mapping[str, WaitingCount]
    obstacles: Mapping[str, int]
    unfinished: Mapping[str, WaitingCount]
    refunds: Mapping[str, int]
    reports: Mapping[str, int]
    next_boundary_ms: int | None


COUNT_LIMIT = sa.literal_column(str(MOST_COUNTED), sa.Integer)

COUNTED_ROW = sa.literal_column("1", sa.Integer)


def count_of(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """How many rows the conditions hold for, as far as they are counted."""
    rows = sa.select(COUNTED_ROW.label("one")).where(*conditions).limit(COUNT_LIMIT).subquery()
    return sa.select(sa.func.count()).select_from(rows).scalar_subquery()


def in_state(value: int) -> sa.ColumnElement[bool]:
    """Deliveries in a state. Written out, so that indexes of some states are found."""
    return DELIVERY.c.state == sa.literal_column(str(value))


DELIVERY_IS_DUE = in_state(PENDING_STATE) & (DELIVERY.c.due_ms <= BACKLOG_NOW)

COUNT_DELIVERIES = Query(
    WaitingDeliveries,
    lambda _: sa.select(
        count_of(in_state(PENDING_STATE)).label("pending"),
        count_of(DELIVERY_IS_DUE).label("due"),
        count_of(DELIVERY.c.lease.is_not(None), DELIVERY.c.state + 0 == PENDING_STATE, DELIVERY.c.due_ms > BACKLOG_NOW).label("in_flight"),
        count_of(in_state(FAILED_STATE)).label("failed"),
        sa.select(DELIVERY.c.due_ms)
        .where(DELIVERY_IS_DUE)
        .order_by(DELIVERY.c.due_ms)
        .limit(COUNTED_ROW)
        .scalar_subquery()
        .label("oldest_due_ms"),
    ),
)

COUNT_MAILS = Query(
    WaitingMails,
    lambda _: sa.select(
        count_of(MAIL.c.due_ms >= sa.literal_column("0")).label("mails"),
        sa.select(MAIL.c.due_ms).order_by(MAIL.c.due_ms).limit(COUNTED_ROW).scalar_subquery().label("next_due_ms"),
    ),
)

PG_ACTIVITY = sa.table(
    "pg_stat_activity",
    sa.column("datname", sa.Text),
    sa.column("wait_event_type", sa.Text),
    sa.column("query_start", sa.DateTime(timezone=True)),
)

SECONDS_WAITED = sa.extract("epoch", sa.func.clock_timestamp() - PG_ACTIVITY.c.query_start)

LOCK_WAITS = Query(
    LockWaits,
    sa.select(
        sa.func.count().label("transactions"),
        sa.cast(sa.func.coalesce(sa.func.max(SECONDS_WAITED), 0), sa.Double).label("seconds"),
    )
    .select_from(PG_ACTIVITY)
    .where(PG_ACTIVITY.c.datname == sa.func.current_database(), PG_ACTIVITY.c.wait_event_type == sa.literal_column("'Lock'")),
)


def unresolved_in(state: str) -> sa.Select[str, int, float]:
    """The issuances of one state. A release begins long after its issuance was dispatched."""
    since = ISSUANCE.c.updated if state in ROLLING_BACK else ISSUANCE.c.dispatched
    rows = sa.select(since.label("since")).where(ISSUANCE.c.state == state).limit(COUNT_LIMIT).subquery()
    return sa.select(sa.literal(state).label("state"), sa.func.count().label("rows"), sa.func.min(rows.c.since).label("since"))


COUNT_UNRESOLVED = Query(WaitingCount, lambda _: sa.union_all(*map(unresolved_in, UNRESOLVED_STATES)))

OBSTACLES = sa.select(ISSUANCE.c.obstacle).where(ISSUANCE.c.state.in_(UNRESOLVED_ISSUANCE_STATES)).limit(COUNT_LIMIT).subquery()

COUNT_OBSTACLES = Query(
    StateCount, lambda _: sa.select(OBSTACLES.c.obstacle.label("state"), sa.func.count().label("rows")).group_by(OBSTACLES.c.obstacle)
)


def unfinished_in(status: str) -> sa.Select[str, int, float]:
    rows = sa.select(sa.func.coalesce(STOREFRONT_ORDER.c.paid_at, STOREFRONT_ORDER.c.updated).label("since")).where(
        STOREFRONT_ORDER.c.status == status
    )
    some = rows.limit(COUNT_LIMIT).subquery()
    return sa.select(sa.literal(status).label("state"), sa.func.count().label("rows"), sa.func.min(some.c.since).label("since"))


COUNT_UNFINISHED = Query(WaitingCount, lambda _: sa.union_all(*map(unfinished_in, UNFINISHED_STATUSES)))

# Choice: of the orders that failed the last ones that anything happened to, since no index knows the state of a refund.
LAST_FAILED = (
    sa.select(STOREFRONT_ORDER.c.refund)
    .where(STOREFRONT_ORDER.c.status == "failed")
    .order_by(STOREFRONT_ORDER.c.updated.desc())
    .limit(COUNT_LIMIT)
    .subquery()
)

COUNT_REFUNDS = Query(
    StateCount,
    sa.select(LAST_FAILED.c.refund.label("state"), sa.func.count().label("rows"))
    .where(LAST_FAILED.c.refund.in_(REFUND_STATES))
    .group_by(LAST_FAILED.c.refund),
)

# What is due has a time; said as a range, which the index finds, while it would be read from end to end for what is not null.
REPORTS_TO_MAKE = (
    sa.select(INTELLIGENCE_REPORT.c.state).where(INTELLIGENCE_REPORT.c.due_ms >= sa.literal_column("0")).limit(COUNT_LIMIT).subquery()
)

COUNT_REPORTS = Query(StateCount, sa.select(REPORTS_TO_MAKE.c.state, sa.func.count().label("rows")).group_by(REPORTS_TO_MAKE.c.state))


@runs_in_thread  # ten thousand rows of everything are some milliseconds, which the loop does not have
def measure_backlog(connection: Connection, *, now_ms: int) -> Backlog:
    """What waits, as one snapshot. `now_ms`: Unix milliseconds."""
    waiting, mails = connection.first(COUNT_DELIVERIES, now_ms=now_ms), connection.first(COUNT_MAILS)
    assert waiting is not None and mails is not None  # without a FROM there is always a row
    return Backlog(
        waiting,
        mails,
        lock_waits=connection.first(LOCK_WAITS) if connection.dialect_name == "postgresql" else None,
        unresolved={row.state: row for row in connection.all(COUNT_UNRESOLVED)},
        obstacles={row.state or "not_looked_into": row.rows for row in connection.all(COUNT_OBSTACLES)},
        unfinished={row.state: row for row in connection.all(COUNT_UNFINISHED)},
        refunds={str(row.state): row.rows for row in connection.all(COUNT_REFUNDS)},
        reports={str(row.state): row.rows for row in connection.all(COUNT_REPORTS)},
        next_boundary_ms=next_boundary(connection),
    )


class LateWork(NamedTuple):
    """`late`: seconds that the oldest of each kind has waited beyond its time."""

    processes: int
    late: dict[str, float]


def late_work(url: str, *, now: float) -> LateWork:
    """What is late on the server at `url`. `now`: Unix seconds. Raises StoreUnavailable; waits for the network."""
    with brief_connection(url) as raw:
        connection = Connection(cast("DriverConnection", raw), postgresql_dialect())
        found, processes = measure_backlog(connection, now_ms=int(now * 1000)), len(running_keys(connection, now=now))
    due = {"deliveries": found.waiting.oldest_due_ms, "mails": found.mails.next_due_ms, "reports": found.next_boundary_ms}
    late = {kind: now - at / 1000 for kind, at in due.items() if at is not None}
    paid = [row.since for row in found.unfinished.values() if row.state != "needs_review" and row.since is not None]
    if paid:
        late["orders"] = now - min(paid)
    return LateWork(processes, {kind: seconds for kind, seconds in late.items() if seconds > 0})
