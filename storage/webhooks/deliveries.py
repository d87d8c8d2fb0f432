"""Deliveries: one event for one endpoint, queued with the event and shown with every attempt (the worker's side is outbox.py)."""

from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.schema import DeliveryAttemptTable, DeliveryTable, WebhookEndpointTable
from storage.statement import Command, Query, table
from storage.webhooks.notify import notify_deliveries

DELIVERY, ATTEMPT, ENDPOINT = table(DeliveryTable), table(DeliveryAttemptTable), table(WebhookEndpointTable)
PENDING, DELIVERED, FAILED = 0, 1, 2
ATTEMPTS_SHOWN = 100
# Choice: as one statement a replay of hundreds of thousands would hold SQLite's write lock for a second and more.
REPLAYED_AT_ONCE = 10_000
AFTER_ALL = "dlv_" + "z" * 27


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
GIVE_UP = Command(sa.update(DELIVERY).where(OF_ENDPOINT, IS_UNTAKEN).values(state=FAILED))
DROP_ATTEMPTS = [
    Command(sa.delete(ATTEMPT).where(ATTEMPT.c.delivery_id.in_(sa.select(DELIVERY.c.id).where(OF_ENDPOINT, which))))
    for which in (IS_UNTAKEN, IS_TAKEN)
]
DROP = [Command(sa.delete(DELIVERY).where(OF_ENDPOINT, which)) for which in (IS_UNTAKEN, IS_TAKEN)]
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
    """The endpoint was disabled: what waits has failed. What is under way is decided by its ack."""
    connection.run(GIVE_UP, endpoint=endpoint)


def drop_pending(connection: Connection, *, endpoint: str) -> None:
    """The endpoint is gone: what waits, and what is under way, goes with it. Ended deliveries stay in their event's list."""
    for command in (*DROP_ATTEMPTS, *DROP):
        connection.run(command, endpoint=endpoint)


def list_deliveries(connection: Connection, *, event: str, after: str | None, most: int) -> list[tuple[DeliveryRow, list[AttemptRow]]]:
    """An event's deliveries, newest first, each with its newest attempts in the order they were made."""
    rows = connection.all(LIST, event=event, after=after or AFTER_ALL, most=most)
    return [(row, connection.all(NEWEST_ATTEMPTS, delivery=row.id)[::-1]) for row in rows]
