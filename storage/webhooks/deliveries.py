"""Deliveries: one event for one endpoint, queued with the event and shown with every attempt (the worker's side is outbox.py)."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import DeliveryAttemptTable, DeliveryTable, WebhookEndpointTable
from storage.statement import Command, Query, table
from storage.webhooks.notify import notify_deliveries

DELIVERY, ATTEMPT, ENDPOINT = table(DeliveryTable), table(DeliveryAttemptTable), table(WebhookEndpointTable)
PENDING, DELIVERED, FAILED = 0, 1, 2
ATTEMPTS_SHOWN = 100
# Choice: as one statement a replay of hundreds of thousands would hold SQLite's write lock for a second and more.
REPLAYED_AT_ONCE = 10_000
# Nor does the end of an endpoint with a long queue hold it.
ENDED_AT_ONCE = 10_000
AFTER_ALL = "dlv_" + "z" * 27


class Id(NamedTuple):
    """A delivery that is there, or was."""

    id: str


class EndpointId(NamedTuple):
    """An endpoint."""

    id: str


class DeliveryRow(NamedTuple):
    """A delivery as it is shown."""

    id: str
    event_id: str
    endpoint_id: str
    state: int
    created_ms: int


class AttemptRow(NamedTuple):
    """One POST: when, how it ended as a class, how long it took, when the next one is due."""

    number: int
    at_ms: int
    outcome: str
    milliseconds: float
    next_ms: int | None


class Requeued(NamedTuple):
    """How many deliveries that had ended are sent again, and how many that waited for a later attempt are sent now."""

    ended: int
    waiting: int


ENABLED = Query(
    EndpointId,
    sa.select(ENDPOINT.c.id)
    .where(ENDPOINT.c.organisation == sa.bindparam("organisation"), ENDPOINT.c.status == "enabled", ENDPOINT.c.schedule.is_(None))
    .order_by(ENDPOINT.c.id),
)
# What is under way stays as it is: it is the very delivery that is asked for.
QUEUE = Command(
    lambda dialect: (
        dialect.insert(DELIVERY)
        .values({name: sa.bindparam(name) for name in ("id", "event_id", "endpoint_id", "organisation", "due_ms")})
        .values(state=PENDING, attempt=0, attempts=0, created_ms=sa.bindparam("due_ms"))
        .on_conflict_do_update(
            index_elements=["event_id", "endpoint_id"],
            set_={"state": PENDING, "attempt": 0, "due_ms": sa.bindparam("due_ms")},
            where=DELIVERY.c.lease.is_(None),
        )
    )
)
# Spelled as in the indexes of those rows alone.
HAS_FAILED = DELIVERY.c.state == sa.literal_column(str(FAILED), sa.Integer)
IS_PENDING = DELIVERY.c.state + sa.literal_column("0", sa.Integer) == sa.literal_column(str(PENDING), sa.Integer)
OF_ENDPOINT = DELIVERY.c.endpoint_id == sa.bindparam("endpoint")
SINCE: sa.BindParameter[int] = sa.bindparam("since_ms", type_=sa.BigInteger)
# Nothing is due before it was queued: that bound on `due_ms` is for the index, which begins there and gives the order. The addition
# in the statement around it keeps SQLite from the index on the state, which every failed row shares.
FAILED_FIRST = (
    sa.select(DELIVERY.c.id)
    .where(OF_ENDPOINT, HAS_FAILED, DELIVERY.c.due_ms >= SINCE, DELIVERY.c.created_ms >= SINCE)
    .order_by(DELIVERY.c.due_ms)
    .limit(sa.literal_column(str(REPLAYED_AT_ONCE)))
)
REPLAY = Command(
    sa.update(DELIVERY)
    .where(DELIVERY.c.id.in_(FAILED_FIRST), DELIVERY.c.state + sa.literal_column("0", sa.Integer) == FAILED)
    .values(state=PENDING, attempt=0, due_ms=sa.bindparam("now_ms"), lease=None)
)
# Whether it failed or arrived; what waits or is under way is on its way already.
REPLAY_ONE = Command(
    sa.update(DELIVERY)
    .where(OF_ENDPOINT, DELIVERY.c.id == sa.bindparam("delivery"), DELIVERY.c.state != PENDING)
    .values(state=PENDING, attempt=0, due_ms=sa.bindparam("now_ms"), lease=None)
)
# What waits for a later attempt. Those that are due, or under way, are on their way already and keep their places.
LATER = (DELIVERY.c.lease.is_(None)) & (DELIVERY.c.due_ms > sa.bindparam("now_ms", type_=sa.BigInteger))
WAITING_FIRST = (
    sa.select(DELIVERY.c.id)
    .where(OF_ENDPOINT, IS_PENDING, LATER, DELIVERY.c.created_ms >= SINCE)
    .order_by(DELIVERY.c.due_ms)
    .limit(sa.literal_column(str(REPLAYED_AT_ONCE)))
)
BRING_FORWARD = Command(
    sa.update(DELIVERY)
    .where(DELIVERY.c.id.in_(WAITING_FIRST), DELIVERY.c.state + sa.literal_column("0", sa.Integer) == PENDING, LATER)
    .values(attempt=0, due_ms=sa.bindparam("now_ms"))
)
BRING_ONE_FORWARD = Command(
    sa.update(DELIVERY)
    .where(OF_ENDPOINT, DELIVERY.c.id == sa.bindparam("delivery"), DELIVERY.c.state == PENDING, LATER)
    .values(attempt=0, due_ms=sa.bindparam("now_ms"))
)
ONE = Query(EndpointId, sa.select(DELIVERY.c.endpoint_id.label("id")).where(OF_ENDPOINT, DELIVERY.c.id == sa.bindparam("delivery")))
IS_UNTAKEN, IS_TAKEN = IS_PENDING & DELIVERY.c.lease.is_(None), IS_PENDING & DELIVERY.c.lease.is_not(None)
AT_ONCE = sa.literal_column(str(ENDED_AT_ONCE), sa.Integer)
UNTAKEN_FIRST = sa.select(DELIVERY.c.id).where(OF_ENDPOINT, IS_UNTAKEN).order_by(DELIVERY.c.due_ms).limit(AT_ONCE)
GIVE_UP = Command(sa.update(DELIVERY).where(DELIVERY.c.id.in_(UNTAKEN_FIRST), IS_UNTAKEN).values(state=FAILED))
# What is under way is few: a worker holds no more than it can send.
DROP = [
    Query(Id, sa.delete(DELIVERY).where(DELIVERY.c.id.in_(UNTAKEN_FIRST), IS_UNTAKEN).returning(DELIVERY.c.id)),
    Query(Id, sa.delete(DELIVERY).where(OF_ENDPOINT, IS_TAKEN).returning(DELIVERY.c.id)),
]
REMOVE_ATTEMPTS = Command(
    lambda dialect: sa.delete(ATTEMPT).where(ATTEMPT.c.delivery_id.in_(sa.select(listed(dialect, "ids", "gone", id=sa.Text).c.id)))
)
OF_DISABLED = (
    sa.select(DELIVERY.c.id)
    .join_from(ENDPOINT, DELIVERY, DELIVERY.c.endpoint_id == ENDPOINT.c.id)
    .where(ENDPOINT.c.status == "disabled", IS_UNTAKEN)
    .limit(sa.bindparam("most"))
)
GIVE_UP_REST = Command(sa.update(DELIVERY).where(DELIVERY.c.id.in_(OF_DISABLED), IS_UNTAKEN).values(state=FAILED))
LIST = Query(
    DeliveryRow,
    sa.select(*(DELIVERY.c[name] for name in DeliveryRow._fields))
    .where(DELIVERY.c.event_id == sa.bindparam("event"), DELIVERY.c.id < sa.bindparam("after"))
    .order_by(DELIVERY.c.id.desc())
    .limit(sa.bindparam("most")),
)
NEWEST_ATTEMPTS = Query(
    AttemptRow,
    sa.select(*(ATTEMPT.c[name] for name in AttemptRow._fields))
    .where(ATTEMPT.c.delivery_id == sa.bindparam("delivery"))
    .order_by(ATTEMPT.c.number.desc())
    .limit(ATTEMPTS_SHOWN),
)


def enqueue(connection: Connection, *, event: str, organisation: str, now_ms: int, ids: Ids) -> None:
    """Queue an event for every enabled endpoint, each at the start of the schedule; attempts keep their numbers."""
    rows = [
        {"id": ids.new("dlv_"), "event_id": event, "endpoint_id": endpoint.id, "organisation": organisation, "due_ms": now_ms}
        for endpoint in connection.all(ENABLED, organisation=organisation)
    ]
    notify_deliveries(connection, queued=connection.run_many(QUEUE, rows))


def enqueue_for(connection: Connection, *, event: str, endpoint: str, organisation: str, now_ms: int, ids: Ids) -> None:
    """Queue an event for one endpoint, whoever's else it may be for."""
    queued = connection.run(QUEUE, id=ids.new("dlv_"), event_id=event, endpoint_id=endpoint, organisation=organisation, due_ms=now_ms)
    notify_deliveries(connection, queued=queued)


def replay(connection: Connection, *, endpoint: str, since_ms: int, now_ms: int) -> Requeued:
    """Start the schedule of an endpoint's failed and waiting deliveries again, of at most so many of each, those first that were first."""
    forward = connection.run(BRING_FORWARD, endpoint=endpoint, since_ms=since_ms, now_ms=now_ms)  # before the failed ones wait, too
    failed = connection.run(REPLAY, endpoint=endpoint, since_ms=since_ms, now_ms=now_ms)
    notify_deliveries(connection, queued=failed + forward)
    return Requeued(failed, forward)


def replay_one(connection: Connection, *, endpoint: str, delivery: str, now_ms: int) -> Requeued | None:
    """Start the schedule of one delivery again, unless it is on its way; None when the endpoint has no such one."""
    if connection.first(ONE, endpoint=endpoint, delivery=delivery) is None:
        return None
    named = {"endpoint": endpoint, "delivery": delivery, "now_ms": now_ms}
    forward = connection.run(BRING_ONE_FORWARD, **named)
    ended = connection.run(REPLAY_ONE, **named)
    notify_deliveries(connection, queued=ended + forward)
    return Requeued(ended, forward)


def give_up(connection: Connection, *, endpoint: str) -> None:
    """The endpoint was disabled: what waits has failed. What is under way is decided by its ack.

    Of a long queue these are the first ones: the rest has failed when `give_up_rest` or a claim comes to it.
    """
    connection.run(GIVE_UP, endpoint=endpoint)


def give_up_rest(connection: Connection, *, before: float, most: int) -> int:
    """What still waits for endpoints that are disabled has failed. `before` is not asked for: all of it has."""
    del before
    return connection.run(GIVE_UP_REST, most=most)


def drop_pending(connection: Connection, *, endpoint: str) -> None:
    """The endpoint is gone: what waits, and what is under way, goes with it. Ended deliveries stay in their event's list.

    Of a long queue these are the first ones: the rest goes when a claim comes to it.
    """
    for query in DROP:
        remove_attempts(connection, connection.all(query, endpoint=endpoint))


def remove_attempts(connection: Connection, deliveries: Sequence[Id]) -> None:
    """The attempts of deliveries that were removed."""
    if deliveries:
        connection.run(REMOVE_ATTEMPTS, ids=packed([[delivery.id] for delivery in deliveries]))


def list_deliveries(connection: Connection, *, event: str, after: str | None, most: int) -> list[tuple[DeliveryRow, list[AttemptRow]]]:
    """An event's deliveries, newest first, each with its newest attempts in the order they were made."""
    rows = connection.all(LIST, event=event, after=after or AFTER_ALL, most=most)
    return [(row, connection.all(NEWEST_ATTEMPTS, delivery=row.id)[::-1]) for row in rows]
