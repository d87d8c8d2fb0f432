"""Webhook endpoints of schedules: each takes the reports of one schedule, and no list of endpoints shows it."""

from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.schema import DeliveryAttemptTable, DeliveryTable, EventTable, WebhookEndpointTable
from storage.statement import Command, Query, table
from storage.webhooks.deliveries import drop_pending, enqueue_for
from storage.webhooks.events import NewEvent, record

ENDPOINT, EVENT = table(WebhookEndpointTable), table(EventTable)
DELIVERY, ATTEMPT = table(DeliveryTable), table(DeliveryAttemptTable)
SCHEDULE = sa.bindparam("schedule", type_=sa.Text)


class ScheduleEndpoint(NamedTuple):
    """A new endpoint; `secret` is sealed."""

    id: str
    organisation: str
    url: str
    secret: str
    schedule: str
    created: int


class Found(NamedTuple):
    """An endpoint that reports are sent to now."""

    id: str


INSERT = Command(
    sa.insert(ENDPOINT)
    .values({name: sa.bindparam(name) for name in ScheduleEndpoint._fields})
    .values(status="enabled", replay_minute=0, replay_count=0, proven=0)
)
OPEN = Query(Found, sa.select(ENDPOINT.c.id).where(ENDPOINT.c.id == sa.bindparam("endpoint"), ENDPOINT.c.status == "enabled"))
REMOVE = Command(sa.delete(ENDPOINT).where(ENDPOINT.c.id == sa.bindparam("endpoint")))
ENABLE = Command(
    sa.update(ENDPOINT).where(ENDPOINT.c.id == sa.bindparam("endpoint")).values(status="enabled", failing_since=None, proven=0)
)
# What happened to a schedule stands where the intent of other events does, so one index finds both.
OLD = sa.select(EVENT.c.id).where(EVENT.c.intent == SCHEDULE, EVENT.c.created < sa.bindparam("before", type_=sa.BigInteger))
OLD_DELIVERIES = sa.select(DELIVERY.c.id).where(DELIVERY.c.event_id.in_(OLD))
FORGET_ATTEMPTS = Command(sa.delete(ATTEMPT).where(ATTEMPT.c.delivery_id.in_(OLD_DELIVERIES)))
FORGET_DELIVERIES = Command(sa.delete(DELIVERY).where(DELIVERY.c.event_id.in_(OLD)))
FORGET_EVENTS = Command(sa.delete(EVENT).where(EVENT.c.id.in_(OLD)))


def insert_for_schedule(connection: Connection, *, endpoint: ScheduleEndpoint) -> None:
    """Where the reports of a new schedule go."""
    connection.run(INSERT, **endpoint._asdict())


def remove_of_schedule(connection: Connection, *, endpoint: str) -> None:
    """The schedule is gone: nothing more is sent."""
    connection.run(REMOVE, endpoint=endpoint)
    drop_pending(connection, endpoint=endpoint)


def enable_of_schedule(connection: Connection, *, endpoint: str) -> None:
    """Send to it again, with a clean record."""
    connection.run(ENABLE, endpoint=endpoint)


def tell(connection: Connection, *, endpoint: str, event: NewEvent, ids: Ids) -> None:
    """Record a report's event and queue it for its schedule's endpoint, unless that is disabled."""
    if connection.first(OPEN, endpoint=endpoint) is not None and record(connection, event=event):
        enqueue_for(connection, event=event.id, endpoint=endpoint, organisation=event.organisation, now_ms=event.created * 1000, ids=ids)


def forget_events(connection: Connection, *, schedule: str, before: int) -> None:
    """Drop a schedule's events from before then, with their deliveries."""
    connection.run(FORGET_ATTEMPTS, schedule=schedule, before=before)
    connection.run(FORGET_DELIVERIES, schedule=schedule, before=before)
    connection.run(FORGET_EVENTS, schedule=schedule, before=before)
