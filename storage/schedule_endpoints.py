"""Webhook endpoints of schedules: each takes the reports of one schedule, and no list of endpoints shows it."""

from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.deliveries import DELIVERY, DELIVERY_ATTEMPT, drop_pending, enqueue_event_for
from storage.engine.connection import Connection, writes
from storage.engine.statement import Command, Query
from storage.events import EVENT, NewEvent, record_event
from storage.webhook_endpoints import WEBHOOK_ENDPOINT

BOUND_SCHEDULE = sa.bindparam("schedule", type_=sa.Text)


class ScheduleEndpoint(NamedTuple):
    """A new endpoint; `secret` is sealed."""

    id: str
    organisation: str
    url: str
    secret: str
    schedule: str
    created: int


FIND_OPEN_ENDPOINT = Query(
    str,
    sa.select(WEBHOOK_ENDPOINT.c.id).where(WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint"), WEBHOOK_ENDPOINT.c.status == "enabled"),
)
REMOVE_SCHEDULE_ENDPOINT = Command(sa.delete(WEBHOOK_ENDPOINT).where(WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint")))
# What happened to a schedule stands where the intent of other events does, so one index finds both.
OLD_SCHEDULE_EVENTS = sa.select(EVENT.c.id).where(
    EVENT.c.intent == BOUND_SCHEDULE, EVENT.c.created < sa.bindparam("before", type_=sa.BigInteger)
)
OLD_SCHEDULE_DELIVERIES = sa.select(DELIVERY.c.id).where(DELIVERY.c.event_id.in_(OLD_SCHEDULE_EVENTS))
FORGET_ATTEMPTS = Command(sa.delete(DELIVERY_ATTEMPT).where(DELIVERY_ATTEMPT.c.delivery_id.in_(OLD_SCHEDULE_DELIVERIES)))
FORGET_DELIVERIES = Command(sa.delete(DELIVERY).where(DELIVERY.c.event_id.in_(OLD_SCHEDULE_EVENTS)))
FORGET_EVENTS = Command(sa.delete(EVENT).where(EVENT.c.id.in_(OLD_SCHEDULE_EVENTS)))


@writes
def insert_schedule_endpoint(*, endpoint: ScheduleEndpoint) -> sa.Executable:
    """Where the reports of a new schedule go."""
    return sa.insert(WEBHOOK_ENDPOINT).values(endpoint._asdict()).values(status="enabled", replay_minute=0, replay_count=0, proven=0)


def remove_schedule_endpoint(connection: Connection, *, endpoint: str) -> None:
    """The schedule is gone: nothing more is sent."""
    connection.run(REMOVE_SCHEDULE_ENDPOINT, endpoint=endpoint)
    drop_pending(connection, endpoint=endpoint)


@writes
def enable_schedule_endpoint(*, endpoint: str) -> sa.Executable:
    """Send to it again, with a clean record."""
    return sa.update(WEBHOOK_ENDPOINT).where(WEBHOOK_ENDPOINT.c.id == endpoint).values(status="enabled", failing_since=None, proven=0)


def emit_report(connection: Connection, *, endpoint: str, event: NewEvent, ids: Ids) -> None:
    """Record a report's event and queue it for its schedule's endpoint, unless that is disabled."""
    if connection.first(FIND_OPEN_ENDPOINT, endpoint=endpoint) is not None and record_event(connection, event=event):
        enqueue_event_for(
            connection, event=event.id, endpoint=endpoint, organisation=event.organisation, now_ms=event.created * 1000, ids=ids
        )


def forget_schedule_events(connection: Connection, *, schedule: str, before: int) -> None:
    """Drop a schedule's events from before then, with their deliveries."""
    connection.run(FORGET_ATTEMPTS, schedule=schedule, before=before)
    connection.run(FORGET_DELIVERIES, schedule=schedule, before=before)
    connection.run(FORGET_EVENTS, schedule=schedule, before=before)
