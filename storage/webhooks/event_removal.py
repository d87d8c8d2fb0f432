"""Events, deliveries and attempts that are older than an organisation's history is kept: removed in steps, oldest first.

Their ids begin with the time, so that the oldest are found by the primary key. What is still to be sent is never removed.
"""

from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import first_id
from storage.calls.expired_keys import older_are_gone
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import DeliveryTable, EventTable
from storage.statement import Command, Query, table
from storage.webhooks.deliveries import Id, remove_attempts
from storage.webhooks.events import REMEMBER, digest_of

DELIVERY, EVENT = table(DeliveryTable), table(EventTable)


class OldEvent(NamedTuple):
    """An event that is old, and what it may happen once for."""

    id: str
    dedup: str


PENDING_STATE = sa.literal_column("0", sa.Integer)
LAST = sa.bindparam("last", type_=sa.Text)
OLD_DELIVERIES = Query(
    Id,
    sa.select(DELIVERY.c.id)
    .where(
        DELIVERY.c.id < LAST,
        DELIVERY.c.state + PENDING_STATE != PENDING_STATE,
        DELIVERY.c.due_ms + PENDING_STATE < sa.bindparam("last_ms", type_=sa.BigInteger),
    )
    .order_by(DELIVERY.c.id)
    .limit(sa.bindparam("most")),
)
OLD_EVENTS = Query(
    OldEvent,
    sa.select(EVENT.c.id, EVENT.c.dedup)
    .where(
        EVENT.c.id < LAST,
        sa.not_(sa.exists().where(DELIVERY.c.event_id == EVENT.c.id, DELIVERY.c.state + PENDING_STATE == PENDING_STATE)),
    )
    .order_by(EVENT.c.id)
    .limit(sa.bindparam("most"))
    .with_for_update(),
)
# Not one that somebody has asked for again meanwhile.
REMOVE_DELIVERIES = Query(
    Id,
    lambda dialect: (
        sa.delete(DELIVERY)
        .where(
            DELIVERY.c.id.in_(sa.select(listed(dialect, "ids", "old", id=sa.Text).c.id)), DELIVERY.c.state + PENDING_STATE != PENDING_STATE
        )
        .returning(DELIVERY.c.id)
    ),
)
DELIVERIES_OF = Query(
    Id,
    lambda dialect: sa.select(DELIVERY.c.id).where(DELIVERY.c.event_id.in_(sa.select(listed(dialect, "ids", "old", id=sa.Text).c.id))),
)
# Not one that a delivery is left of: it was asked for between the two statements.
REMOVE_EVENTS = Command(
    lambda dialect: sa.delete(EVENT).where(
        EVENT.c.id.in_(sa.select(listed(dialect, "ids", "old", id=sa.Text).c.id)),
        sa.not_(sa.exists().where(DELIVERY.c.event_id == EVENT.c.id)),
    )
)

PENDING_DELIVERIES = "select 1 from delivery where id < {upper} and state = 0"
OLDER_DELIVERIES = "select 1 from delivery where id < {upper}"
DELIVERIES_OF_OLDER_EVENTS = "select 1 from delivery where event_id < {upper}"
"""What keeps a partition of deliveries, one of attempts and one of events."""


def ids_of(rows: list[Id]) -> str:
    """The rows as a value to bind."""
    return packed([[row.id] for row in rows])


def remove_deliveries(connection: Connection, rows: list[Id]) -> int:
    """The deliveries that are not to be sent, with their attempts; how many."""
    removed = connection.all(REMOVE_DELIVERIES, ids=ids_of(rows)) if rows else []
    remove_attempts(connection, removed)
    return len(removed)


def sweep_deliveries(connection: Connection, *, before: float, most: int) -> int:
    """Remove deliveries of the oldest events, whose last attempt is as old, with their attempts. `before`: Unix seconds."""
    last = {"last": first_id("dlv_", before), "last_ms": int(before * 1000)}
    return remove_deliveries(connection, connection.all(OLD_DELIVERIES, **last, most=most))


def sweep_events(connection: Connection, *, before: float, most: int, now: float) -> int:
    """Remove the oldest events with their deliveries; what may happen once does not happen again. 0 while an older program runs beside."""
    if not older_are_gone(connection, now=now):
        return 0
    old = connection.all(OLD_EVENTS, last=first_id("evt_", before), most=most)
    if old:
        ids = packed([[event.id] for event in old])
        connection.run_many(REMEMBER, [{"digest": digest_of(event.dedup)} for event in old])
        remove_deliveries(connection, connection.all(DELIVERIES_OF, ids=ids))
        connection.run(REMOVE_EVENTS, ids=ids)
    return len(old)
