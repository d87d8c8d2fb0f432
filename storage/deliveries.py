"""Deliveries: one event for one endpoint, queued with the event and shown with every attempt (the worker's side is outbox.py)."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import anyio
import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import LAST_ID_LETTERS, Ids
from storage.engine.database_url import conninfo, is_sqlite_url, load_psycopg
from storage.engine.drivers import DeferredCommand
from storage.engine.partitions import history_by_ids
from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    bound_list,
    insert_once,
    pack_rows,
    unindexed,
    writes,
)

if TYPE_CHECKING:
    import psycopg


# The addition, as the statements spell it: with a bare column SQLite would take the index of all that is pending.
WAITING_DELIVERY = sa.text("state + 0 = 0 AND lease IS NULL")

IS_UNDELIVERED = sa.text("state != 1")


class DeliveryRow(NamedTuple):
    id: Key
    event_id: str
    endpoint_id: str
    state: int
    created_ms: BigInt


class DeliveryTable(TableDescription, row=DeliveryRow, table=True):
    """One event for one endpoint: the single truth of the outbox. state: 0 pending, 1 delivered, 2 failed.

    `type` is the event's; null where a program of before 0026 queued it. A list has an index for whose deliveries it shows, and of which
    type. The state is in none of them, so that an acknowledgement leaves them as they are; what is not delivered has one of its own.
    """

    organisation: str
    attempt: int
    attempts: int
    due_ms: BigInt
    lease: str | None
    type: str | None
    __table_args__ = (
        sa.UniqueConstraint("event_id", "endpoint_id", name="delivery_once"),
        sa.Index("delivery_due", "state", "due_ms"),
        # What waits, of each endpoint. What is under way is not there, so that a claim changes one place of an endpoint's queue, not two.
        sa.Index("delivery_waiting", "endpoint_id", "due_ms", sqlite_where=WAITING_DELIVERY),
        sa.Index("delivery_of_organisation", "organisation", "event_id", "id"),
        sa.Index("delivery_of_endpoint", "endpoint_id", "event_id", "id"),
        sa.Index("delivery_of_type", "organisation", "type", "event_id", "id"),
        sa.Index("delivery_of_endpoint_type", "endpoint_id", "type", "event_id", "id"),
        sa.Index("delivery_undelivered", "organisation", "state", "event_id", "id", "endpoint_id", "type", sqlite_where=IS_UNDELIVERED),
        sa.Index("delivery_failed", "endpoint_id", "due_ms", sqlite_where=sa.text("state = 2")),
        # What is under way, or was when its worker died: a few of however many are pending.
        sa.Index(
            "delivery_leased",
            "due_ms",
            "endpoint_id",
            "organisation",
            sqlite_where=sa.text("lease IS NOT NULL"),
        ),
    )


class AttemptRow(NamedTuple):
    """One POST: when, how it ended as a class, how long it took, when the next one is due."""

    number: Annotated[int, Field(primary_key=True)]
    at_ms: BigInt
    outcome: str
    milliseconds: float
    next_ms: BigInt | None


class DeliveryAttemptTable(TableDescription, row=AttemptRow, table=True):
    """One POST: a class of outcome, never the answer or the address it went to."""

    delivery_id: str = Field(primary_key=True)


DELIVERY = DeliveryTable.table

DELIVERY_ATTEMPT = DeliveryAttemptTable.table

PENDING_STATE = 0

DELIVERED_STATE = 1

FAILED_STATE = 2

ATTEMPTS_SHOWN = 100

# Choice: as one statement a replay of hundreds of thousands would hold SQLite's write lock for a second and more.
REPLAYED_AT_ONCE = 10_000

# Nor does the end of an endpoint with a long queue hold it.
ENDED_AT_ONCE = 10_000

LAST_MS = 1 << 62


class Requeued(NamedTuple):
    """How many deliveries that had ended are sent again, and how many that waited for a later attempt are sent now."""

    ended: int
    waiting: int


def first_delivery_id(event: str) -> str:
    """An id before all those of an event's deliveries: 17 minutes, for clocks that do not agree, before the event's own."""
    return "dlv_" + event[4:10]


def new_delivery_id(event: str, ids: Ids) -> str:
    """A new id for a delivery, with the time of the event: so all deliveries of an event, whenever they are made, are in one month."""
    return "dlv_" + event[4:14] + ids.new("dlv_")[14:]


def since_event(dialect: Dialect) -> list[sa.ColumnElement[bool]]:
    """No delivery is older than its event, so that older partitions need not be looked into; SQLite has none, and another index."""
    return [] if dialect.name == "sqlite" else [DELIVERY.c.id >= sa.bindparam("first", type_=sa.Text)]


def in_id_range(dialect: Dialect, column: sa.ColumnElement[str]) -> list[sa.ColumnElement[bool]]:
    """That an id of a list is between the ends of it (`ends`), which tells PostgreSQL the partitions. SQLite would take another index."""
    return (
        []
        if dialect.name == "sqlite"
        else [column >= sa.bindparam("lowest", type_=sa.Text), column <= sa.bindparam("highest", type_=sa.Text)]
    )


def among_ids(dialect: Dialect, column: sa.ColumnElement[str], bind: str) -> list[sa.ColumnElement[bool]]:
    """That an id is the first cell of one of the rows bound as `bind`, and between the ends of them.

    PostgreSQL gets them as an array, which it looks up in the primary key. A list it may join with all that is between the ends, which it
    takes for a two-hundredth of the rows where the table has grown since its statistics were made.
    """
    named = bound_list(dialect, bind)
    if dialect.name == "sqlite":
        return [column.in_(named)]
    return [column == sa.any_(sa.func.array(named.scalar_subquery())), *in_id_range(dialect, column)]


def id_range(ids: Sequence[str]) -> dict[str, str]:
    """The first and the last of some ids."""
    return {"lowest": min(ids), "highest": max(ids)}


# An event has one delivery for an endpoint: where the table is whole a rule of it says so, else the same rule of the event's partition.
QUEUE_DELIVERY = Command(
    insert_once(
        DELIVERY,
        ("id", "event_id", "endpoint_id", "organisation", "due_ms", "type"),
        state=PENDING_STATE,
        attempt=0,
        attempts=0,
        created_ms=sa.bindparam("due_ms", type_=sa.BigInteger),
    )
)

# What is under way stays as it is: it is the very delivery that is asked for.
QUEUE_DELIVERY_AGAIN = Command(
    lambda dialect: (
        sa.update(DELIVERY)
        .where(
            DELIVERY.c.event_id == sa.bindparam("event"),
            DELIVERY.c.endpoint_id == sa.bindparam("endpoint"),
            DELIVERY.c.lease.is_(None),
            *since_event(dialect),
        )
        .values(state=PENDING_STATE, attempt=0, due_ms=sa.bindparam("now_ms"))
    )
)

# Spelled as in the indexes of those rows alone.
DELIVERY_HAS_FAILED = DELIVERY.c.state == sa.literal_column(str(FAILED_STATE), sa.Integer)

DELIVERY_IS_PENDING = DELIVERY.c.state + sa.literal_column("0", sa.Integer) == sa.literal_column(str(PENDING_STATE), sa.Integer)

DELIVERY_OF_ENDPOINT = DELIVERY.c.endpoint_id == sa.bindparam("endpoint")

REPLAYED_SINCE: sa.BindParameter[int] = sa.bindparam("since_ms", type_=sa.BigInteger)

# Nothing is due before it was queued: that bound on `due_ms` is for the index, which begins there and gives the order. The addition
# in the statement around it keeps SQLite from the index on the state, which every failed row shares.
FAILED_FIRST = (
    sa.select(DELIVERY.c.id)
    .where(DELIVERY_OF_ENDPOINT, DELIVERY_HAS_FAILED, DELIVERY.c.due_ms >= REPLAYED_SINCE, DELIVERY.c.created_ms >= REPLAYED_SINCE)
    .order_by(DELIVERY.c.due_ms)
    .limit(sa.literal_column(str(REPLAYED_AT_ONCE)))
)

REPLAY_DELIVERIES = Command(
    sa.update(DELIVERY)
    .where(DELIVERY.c.id.in_(FAILED_FIRST), DELIVERY.c.state + sa.literal_column("0", sa.Integer) == FAILED_STATE)
    .values(state=PENDING_STATE, attempt=0, due_ms=sa.bindparam("now_ms"), lease=None)
)

# Whether it failed or arrived; what waits or is under way is on its way already.
REPLAY_DELIVERY = Command(
    sa.update(DELIVERY)
    .where(DELIVERY_OF_ENDPOINT, DELIVERY.c.id == sa.bindparam("delivery"), DELIVERY.c.state != PENDING_STATE)
    .values(state=PENDING_STATE, attempt=0, due_ms=sa.bindparam("now_ms"), lease=None)
)

# What waits for a later attempt. Those that are due, or under way, are on their way already and keep their places.
DELIVERY_IS_LATER = (DELIVERY.c.lease.is_(None)) & (DELIVERY.c.due_ms > sa.bindparam("now_ms", type_=sa.BigInteger))

WAITING_FIRST = (
    sa.select(DELIVERY.c.id)
    .where(DELIVERY_OF_ENDPOINT, DELIVERY_IS_PENDING, DELIVERY_IS_LATER, DELIVERY.c.created_ms >= REPLAYED_SINCE)
    .order_by(DELIVERY.c.due_ms)
    .limit(sa.literal_column(str(REPLAYED_AT_ONCE)))
)

BRING_FORWARD = Command(
    sa.update(DELIVERY)
    .where(DELIVERY.c.id.in_(WAITING_FIRST), DELIVERY.c.state + sa.literal_column("0", sa.Integer) == PENDING_STATE, DELIVERY_IS_LATER)
    .values(attempt=0, due_ms=sa.bindparam("now_ms"))
)

BRING_ONE_FORWARD = Command(
    sa.update(DELIVERY)
    .where(DELIVERY_OF_ENDPOINT, DELIVERY.c.id == sa.bindparam("delivery"), DELIVERY.c.state == PENDING_STATE, DELIVERY_IS_LATER)
    .values(attempt=0, due_ms=sa.bindparam("now_ms"))
)

FIND_DELIVERY = Query(
    str, lambda _: sa.select(DELIVERY.c.endpoint_id.label("id")).where(DELIVERY_OF_ENDPOINT, DELIVERY.c.id == sa.bindparam("delivery"))
)

IS_UNTAKEN = DELIVERY_IS_PENDING & DELIVERY.c.lease.is_(None)

IS_TAKEN = DELIVERY_IS_PENDING & DELIVERY.c.lease.is_not(None)

ENDED_LIMIT = sa.literal_column(str(ENDED_AT_ONCE), sa.Integer)

UNTAKEN_FIRST = sa.select(DELIVERY.c.id).where(DELIVERY_OF_ENDPOINT, IS_UNTAKEN).order_by(DELIVERY.c.due_ms).limit(ENDED_LIMIT)

# What is under way is few: a worker holds no more than it can send. SQLite would go through all that the endpoint ever got.
TAKEN_OF_ENDPOINT = (unindexed(DELIVERY.c.endpoint_id) == sa.bindparam("endpoint")) & IS_TAKEN

DROP_DELIVERIES = [
    Query(str, lambda _: sa.delete(DELIVERY).where(DELIVERY.c.id.in_(UNTAKEN_FIRST), IS_UNTAKEN).returning(DELIVERY.c.id)),
    Query(str, lambda _: sa.delete(DELIVERY).where(TAKEN_OF_ENDPOINT).returning(DELIVERY.c.id)),
]

REMOVE_ATTEMPTS = Command(lambda dialect: sa.delete(DELIVERY_ATTEMPT).where(*among_ids(dialect, DELIVERY_ATTEMPT.c.delivery_id, "ids")))


def newest_deliveries_query(dialect: Dialect) -> sa.Executable:
    """An event's deliveries from one on. Their ids have all the event's time, so that the time of each decides."""
    after, shown = sa.bindparam("after", type_=sa.Text), DELIVERY.alias("shown")
    place = sa.select(shown.c.created_ms).where(shown.c.id == after).scalar_subquery()
    begin = sa.func.coalesce(place, sa.bindparam("last_ms", type_=sa.BigInteger))
    return (
        sa.select(*(DELIVERY.c[name] for name in DeliveryRow._fields))
        .where(
            DELIVERY.c.event_id == sa.bindparam("event"),
            (DELIVERY.c.created_ms < begin) | ((DELIVERY.c.created_ms == begin) & (DELIVERY.c.id < after)),
            *since_event(dialect),
        )
        .order_by(DELIVERY.c.created_ms.desc(), DELIVERY.c.id.desc())
        .limit(sa.bindparam("most"))
    )


LIST_DELIVERIES = Query(DeliveryRow, newest_deliveries_query)

NEWEST_ATTEMPTS = Query(
    AttemptRow,
    sa.select(*(DELIVERY_ATTEMPT.c[name] for name in AttemptRow._fields))
    .where(DELIVERY_ATTEMPT.c.delivery_id == sa.bindparam("delivery"))
    .order_by(DELIVERY_ATTEMPT.c.number.desc())
    .limit(ATTEMPTS_SHOWN),
)


def enqueue_event_for(connection: Connection, *, event: str, type: str, endpoint: str, organisation: str, now_ms: int, ids: Ids) -> None:
    """Queue an event of this type for one endpoint alone. `now_ms`: Unix milliseconds."""
    queue_deliveries(connection, event=event, type=type, endpoints=[endpoint], organisation=organisation, now_ms=now_ms, ids=ids)


def queue_deliveries(
    connection: Connection,
    *,
    event: str,
    type: str,
    endpoints: Sequence[str],
    organisation: str,
    now_ms: int,
    ids: Ids,
    again: bool = True,
) -> None:
    """Queue an event of this type for these endpoints. `again`: a delivery that has been made before begins again.

    `now_ms`: Unix milliseconds.
    """
    new = {"event_id": event, "organisation": organisation, "due_ms": now_ms, "type": type}
    queued = connection.run_many(
        QUEUE_DELIVERY, [{"id": new_delivery_id(event, ids), "endpoint_id": endpoint, **new} for endpoint in endpoints]
    )
    if again and queued < len(endpoints):
        named = {"event": event, "first": first_delivery_id(event), "now_ms": now_ms}
        queued += connection.run_many(QUEUE_DELIVERY_AGAIN, [{"endpoint": endpoint, **named} for endpoint in endpoints])
    notify_deliveries(connection, queued=queued)


def requeue_deliveries(connection: Connection, *, endpoint: str, since_ms: int, now_ms: int) -> Requeued:
    """Start the schedule of an endpoint's failed and waiting deliveries again, of at most so many of each, those first that were first."""
    forward = connection.run(BRING_FORWARD, endpoint=endpoint, since_ms=since_ms, now_ms=now_ms)  # before the failed ones wait, too
    failed = connection.run(REPLAY_DELIVERIES, endpoint=endpoint, since_ms=since_ms, now_ms=now_ms)
    notify_deliveries(connection, queued=failed + forward)
    return Requeued(failed, forward)


def requeue_delivery(connection: Connection, *, endpoint: str, delivery: str, now_ms: int) -> Requeued | None:
    """Start the schedule of one delivery again, unless it is on its way; None when the endpoint has no such one."""
    if connection.first(FIND_DELIVERY, endpoint=endpoint, delivery=delivery) is None:
        return None
    named = {"endpoint": endpoint, "delivery": delivery, "now_ms": now_ms}
    forward = connection.run(BRING_ONE_FORWARD, **named)
    ended = connection.run(REPLAY_DELIVERY, **named)
    notify_deliveries(connection, queued=ended + forward)
    return Requeued(ended, forward)


@writes
def fail_waiting(*, endpoint: str) -> sa.Executable:
    """The endpoint was disabled: what waits has failed. What is under way is decided by its ack.

    Of a long queue these are the first ones: the rest has failed when `fail_waiting_of_disabled` or a claim comes to it.
    """
    return sa.update(DELIVERY).where(DELIVERY.c.id.in_(UNTAKEN_FIRST), IS_UNTAKEN).values(state=FAILED_STATE)


def drop_pending(connection: Connection, *, endpoint: str) -> None:
    """The endpoint is gone: what waits, and what is under way, goes with it. Ended deliveries stay in their event's list.

    Of a long queue these are the first ones: the rest goes when a claim comes to it.
    """
    for query in DROP_DELIVERIES:
        remove_attempts(connection, connection.all(query, endpoint=endpoint))


def remove_attempts(connection: Connection, deliveries: Sequence[str]) -> None:
    if deliveries:
        connection.run(REMOVE_ATTEMPTS, ids=pack_rows([[id] for id in deliveries]), **id_range(deliveries))


def list_deliveries(connection: Connection, *, event: str, after: str | None, most: int) -> list[tuple[DeliveryRow, list[AttemptRow]]]:
    """An event's deliveries, newest first, each with its newest attempts in the order they were made."""
    rows = connection.all(
        LIST_DELIVERIES, event=event, first=first_delivery_id(event), after=after or "dlv_" + LAST_ID_LETTERS, last_ms=LAST_MS, most=most
    )
    return [(row, connection.all(NEWEST_ATTEMPTS, delivery=row.id)[::-1]) for row in rows]


ATTEMPT_HISTORY = history_by_ids("delivery_attempt", "delivery_id", "dlv_", "delivery_id, number")

# Deliveries have the time of their event in their ids, so that the rule of each partition that an event has one for an endpoint is the rule
# of all.
DELIVERY_HISTORY = history_by_ids("delivery", "id", "dlv_", "id")._replace(unique="event_id, endpoint_id")

LISTENER_CHECK_SECONDS = 5

FIRST_PAUSE = 0.5

LONGEST_PAUSE = 30.0

# A connection whose other end vanished without a word is found out by the question asked this often.
ALIVE_SECONDS = 30.0

LISTENER_NAME = "reseller listener"


class Listener:
    """Called with what to do on news; listens until it is cancelled."""

    def __init__(self, url: str, report: Callable[[str], None]) -> None:
        self._url, self._report = url, report
        self._broken, self._pause = False, FIRST_PAUSE

    async def __call__(self, heard: Callable[[], None]) -> None:
        """Call `heard` for every notification, and once for each new connection: what was said before it went unheard."""
        broken = (load_psycopg().Error, TimeoutError)
        while True:
            try:
                async with open_listening(self._url) as connection:
                    self._mended()
                    heard()
                    await hear_notifications(connection, heard)
            except broken:
                self._break()
            await anyio.sleep(self._pause)
            self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _break(self) -> None:
        """Said once, not with every attempt, and without the server's text, which names hosts and users."""
        if not self._broken:
            self._report("worker: not listening to the database; new deliveries are found by polling meanwhile")
        self._broken = True

    def _mended(self) -> None:
        if self._broken:
            self._report("worker: listening to the database again")
        self._broken, self._pause = False, FIRST_PAUSE


def open_listener(url: str, report: Callable[[str], None]) -> Listener | None:
    """A listener where the database can notify; SQLite cannot."""
    return None if is_sqlite_url(url) else Listener(url, report)


@asynccontextmanager
async def open_listening(url: str) -> "AsyncGenerator[psycopg.AsyncConnection]":
    connection = await load_psycopg().AsyncConnection.connect(conninfo(url, application_name=LISTENER_NAME), autocommit=True)
    try:
        await connection.execute(f"listen {DELIVERY_CHANNEL}".encode())
        yield connection
    finally:
        with anyio.CancelScope(shield=True):
            await connection.close()


async def hear_notifications(connection: "psycopg.AsyncConnection", heard: Callable[[], None]) -> None:
    """Until the connection breaks."""
    while True:
        async for _ in connection.notifies(timeout=ALIVE_SECONDS):
            heard()
        with anyio.fail_after(LISTENER_CHECK_SECONDS):
            await connection.execute(b"select 1")


DELIVERY_CHANNEL = "reseller_delivery"

# While nobody listens it costs a statement.
NOTIFY_DELIVERY = Query(
    str,
    sa.select(sa.cast(sa.func.pg_notify(sa.literal_column(f"'{DELIVERY_CHANNEL}'"), sa.literal_column("''")), sa.Text).label("said")),
)


def notify_deliveries(connection: Connection, *, queued: int) -> None:
    """Notify PostgreSQL's listeners if anything was queued. With SQLite the worker of the same process is woken in memory.

    It is sent behind the COMMIT, at once, and where it is lost the next poll finds what was queued. Within the transaction PostgreSQL would
    hold the one lock of all notifications of the server until the disk has the commit, so that no two commits shared a write.
    """
    if queued and connection.deferred is not None:
        said = DeferredCommand(NOTIFY_DELIVERY.text(connection.dialect).sql, {}, after=True)
        if said not in connection.deferred:
            connection.deferred.append(said)
