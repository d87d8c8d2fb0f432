"""Events (api.md 6): what happened, once, together with one pending delivery per enabled endpoint."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.schema import EventDigestTable, EventTable
from storage.statement import Query, table, unindexed
from storage.webhooks.deliveries import enqueue

EVENT, DIGEST = table(EventTable), table(EventDigestTable)
# The body of a delivery is this and about 300 bytes of envelope, 20 kB at most.
MOST_DATA_BYTES = 19_000
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "evt_" + "z" * 27


class NewEvent(NamedTuple):
    """An event to be emitted. `data` is JSON text; `dedup` names what can happen only once."""

    id: str
    organisation: str
    intent: str
    type: str
    livemode: int
    data: str
    dedup: str
    created: int


class EventRow(NamedTuple):
    """An event as it is shown and delivered."""

    id: str
    type: str
    livemode: int
    data: str
    created: int


class EventId(NamedTuple):
    """An event that is there."""

    id: str


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(EVENT.c[name] for name in EventRow._fields)
GIVEN = [sa.cast(sa.bindparam(name, type_=EVENT.c[name].type), EVENT.c[name].type).label(name) for name in NewEvent._fields]
NOUGHT = sa.literal_column("0", sa.Integer)
# Nor one that was removed because of its age.
INSERT = Query(
    EventId,
    lambda dialect: (
        dialect.insert(EVENT)
        .from_select(
            [*NewEvent._fields, "retry_minute", "retry_count"],
            sa.select(*GIVEN, NOUGHT, NOUGHT).where(sa.not_(sa.exists().where(DIGEST.c.digest == sa.bindparam("digest")))),
        )
        .on_conflict_do_nothing(index_elements=["dedup"])
        .returning(EVENT.c.id)
    ),
)
REPORT = "intelligence.report"
"""Of a schedule, whose id stands in place of the intent: it goes to the schedule's own endpoint and is in no list of events."""
OWN = (EVENT.c.organisation == sa.bindparam("organisation")) & (EVENT.c.type != REPORT)
READ = Query(EventRow, sa.select(*COLUMNS).where(EVENT.c.id == sa.bindparam("event"), OWN))
NEWEST = sa.select(*COLUMNS).where(EVENT.c.id < sa.bindparam("after")).order_by(EVENT.c.id.desc()).limit(sa.bindparam("most"))
LIST = Query(EventRow, NEWEST.where(OWN))
# Of two indexes that fit SQLite takes that of the organisation, and would read all its events.
OWNED = (unindexed(EVENT.c.organisation) == sa.bindparam("organisation")) & (EVENT.c.type != REPORT)
LIST_OF_INTENT = Query(EventRow, NEWEST.where(OWNED, EVENT.c.intent == sa.bindparam("intent")))
# The limit stands in the statement: two retries at once cannot both be the tenth.
COUNT_RETRY = Query(
    EventRow,
    sa.update(EVENT)
    .where(
        EVENT.c.id == sa.bindparam("event"),
        EVENT.c.organisation == sa.bindparam("owner"),
        EVENT.c.type != REPORT,
        (EVENT.c.retry_minute != sa.bindparam("minute")) | (EVENT.c.retry_count < sa.bindparam("most")),
    )
    .values(
        retry_minute=sa.bindparam("minute"),
        retry_count=sa.case((EVENT.c.retry_minute == sa.bindparam("minute"), EVENT.c.retry_count + 1), else_=1),
    )
    .returning(*COLUMNS),
)


def emit(connection: Connection, *, event: NewEvent, ids: Ids) -> bool:
    """Record an event and queue it for every enabled endpoint; False when its `dedup` was there already."""
    if not record(connection, event=event):
        return False
    enqueue(connection, event=event.id, organisation=event.organisation, now_ms=event.created * 1000, ids=ids)
    return True


def record(connection: Connection, *, event: NewEvent) -> bool:
    """Record an event that nobody is sent yet; False when its `dedup` was there already."""
    if len(event.data.encode()) > MOST_DATA_BYTES:
        raise ValueError(f"the data of a {event.type} event has over {MOST_DATA_BYTES} bytes; an event names things, it holds none")
    return connection.first(INSERT, **event._asdict(), digest=digest_of(event.dedup)) is not None


def digest_of(dedup: str) -> bytes:
    """What is kept of an event's `dedup` when the event is removed."""
    return hashlib.sha256(dedup.encode()).digest()


def read_event(connection: Connection, *, event: str, organisation: str) -> EventRow | None:
    """One event of an organisation."""
    return connection.first(READ, event=event, organisation=organisation)


def list_events(connection: Connection, *, organisation: str, intent: str | None, after: str | None, most: int) -> list[EventRow]:
    """Newest first; those of one intent when it is named."""
    start = after or AFTER_ALL
    if intent is None:
        return connection.all(LIST, organisation=organisation, after=start, most=most)
    return connection.all(LIST_OF_INTENT, organisation=organisation, intent=intent, after=start, most=most)


def count_retry(connection: Connection, *, event: str, organisation: str, minute: int, most: int) -> EventRow | None:
    """Count one manual retry; None when the minute's allowance is used up or there is no such event."""
    return connection.first(COUNT_RETRY, event=event, owner=organisation, minute=minute, most=most)
