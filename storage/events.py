"""Events: what happened, once, together with one pending delivery per enabled endpoint.

Events, deliveries and attempts that are older than an organisation's history is kept are removed in steps, oldest first: their ids begin
with the time, so that the oldest are found by the primary key. What is still to be sent is never removed.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, NamedTuple, cast

import orjson
import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import Ids, first_id
from storage.deliveries import DELIVERY, queue_deliveries, remove_attempts
from storage.engine.partitions import history_by_ids
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    bound_list,
    first_row,
    insert_once,
    pack_rows,
    unindexed,
)
from storage.event_log import EVENT_LOG, LOG_EVENT, LogEntry
from storage.replicas import older_programs_are_gone
from storage.webhook_endpoints import ENDPOINTS_WITHOUT_CHOICE, endpoints_without_choice


class NewEvent(NamedTuple):
    """An event to be emitted. `data` is JSON text; `dedup` names what can happen only once."""

    id: Key
    organisation: str
    intent: str
    type: str
    livemode: int
    data: str
    dedup: Annotated[str, Field(unique=True)]
    created: BigInt


class EventTable(TableDescription, row=NewEvent, table=True):
    """What happened to an intent, once. `dedup` makes an event that may happen once per intent happen once."""

    retry_minute: BigInt
    retry_count: int
    __table_args__ = (sa.Index("event_organisation", "organisation", "id"), sa.Index("event_intent", "intent", "id"))


class EventDigestTable(TableDescription, table=True):
    """SHA-256 of the `dedup` of an event, which happens once, whether the event is still kept or not. Never swept.

    Events of programs before 0022 have none until they are removed, or partitioned.
    """

    digest: bytes = Field(primary_key=True)
    __table_args__ = CLUSTERED


EVENT = EventTable.table

EVENT_DIGEST = EventDigestTable.table

# The body of a delivery is this and about 300 bytes of envelope, 20 kB at most.
MOST_DATA_BYTES = 19_000

# Sorts behind every id: z is the last character of their alphabet.
LAST_EVENT_ID = "evt_" + "z" * 27

EVENT_AHEAD_SECONDS = 86_400
"""An event of a later time than this from now is of a clock that is wrong. A list that names no end looks into every partition."""


class EventRow(NamedTuple):
    """An event as it is shown and delivered."""

    id: str
    type: str
    livemode: int
    data: str
    created: int


EVENT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(EVENT.c[name] for name in EventRow._fields)

# What may happen once is decided in a table of its own: a unique rule of a partitioned table must contain the time.
INSERT_DIGEST_ONCE = insert_once(EVENT_DIGEST, ["digest"], key=["digest"])

INSERT_EVENT_DIGEST = Command(INSERT_DIGEST_ONCE)

# Nor one that a program of schema 0021 recorded, which wrote no digest: where the table is whole its own rule still stands.
INSERT_EVENT = Command(insert_once(EVENT, NewEvent._fields, retry_minute=0, retry_count=0))

REPORT_EVENT = "intelligence.report"
"""Of a schedule, whose id stands in place of the intent: it goes to the schedule's own endpoint and is in no list of events."""

OWN_EVENT = (EVENT.c.organisation == sa.bindparam("organisation")) & (EVENT.c.type != REPORT_EVENT)

NEWEST_EVENTS = sa.select(*EVENT_COLUMNS).where(EVENT.c.id < sa.bindparam("after")).order_by(EVENT.c.id.desc()).limit(sa.bindparam("most"))

LIST_EVENTS = Query(EventRow, lambda _: NEWEST_EVENTS.where(OWN_EVENT))

# Of two indexes that fit SQLite takes that of the organisation, and would read all its events.
EVENT_IS_OWNED = (unindexed(EVENT.c.organisation) == sa.bindparam("organisation")) & (EVENT.c.type != REPORT_EVENT)

LIST_EVENTS_OF_INTENT = Query(EventRow, lambda _: NEWEST_EVENTS.where(EVENT_IS_OWNED, EVENT.c.intent == sa.bindparam("intent")))


class EmittedEvent(NamedTuple):
    """An event that happened now, and an endpoint that is sent it; None where there is no such endpoint."""

    id: str
    endpoint: str | None


def emission(dialect: Dialect) -> sa.Executable:
    """An event, its digest and its row in the log, unless it has happened before, and who gets it: to PostgreSQL one message, not four."""
    given: dict[str, sa.ColumnElement[object]] = {name: sa.bindparam(name) for name in {*NewEvent._fields, *LogEntry._fields}}
    given |= dict.fromkeys(("retry_minute", "retry_count"), sa.literal_column("0", sa.Integer))
    columns = [*NewEvent._fields, "retry_minute", "retry_count"]
    first = INSERT_DIGEST_ONCE(dialect).returning(EVENT_DIGEST.c.digest).cte("first")
    recorded = dialect.insert(EVENT).from_select(columns, sa.select(*(given[name] for name in columns)).select_from(first))
    happened = recorded.on_conflict_do_nothing().returning(EVENT.c.id).cte("happened")
    entry = sa.select(*(given[name] for name in LogEntry._fields)).select_from(happened)
    logged = sa.insert(EVENT_LOG).from_select(LogEntry._fields, entry).cte("logged")
    endpoint = ENDPOINTS_WITHOUT_CHOICE.subquery("endpoint")
    found = sa.select(happened.c.id, endpoint.c.id.label("endpoint")).select_from(happened).join(endpoint, sa.true(), isouter=True)
    return found.order_by(endpoint.c.id).add_cte(logged)


EMIT_EVENT = Query(EmittedEvent, emission)


def emit_event(connection: Connection, *, event: NewEvent, ids: Ids) -> bool:
    """Record an event, in the log, too, and queue it for every enabled endpoint that has chosen nothing else.

    False when its `dedup` was there already.
    """
    given = {**event._asdict(), "line": cast("dict[str, str | None]", orjson.loads(event.data)).get("iccid")}
    if connection.dialect_name == "sqlite":
        if not record_event(connection, event=event):
            return False
        connection.run(LOG_EVENT, **given)
        endpoints = endpoints_without_choice(connection, organisation=event.organisation)
    else:
        check_size(event)
        found = connection.all(EMIT_EVENT, digest=event_digest(event.dedup), **given)
        if not found:
            return False
        endpoints = [each.endpoint for each in found if each.endpoint is not None]
    if endpoints:
        named = {"event": event.id, "type": event.type, "organisation": event.organisation}
        queue_deliveries(connection, endpoints=endpoints, now_ms=event.created * 1000, ids=ids, again=True, **named)
    return True


def record_event(connection: Connection, *, event: NewEvent) -> bool:
    """Record an event that nobody is sent yet; False when its `dedup` was there already."""
    check_size(event)
    if not connection.run(INSERT_EVENT_DIGEST, digest=event_digest(event.dedup)):
        return False
    return connection.run(INSERT_EVENT, **event._asdict()) == 1


def check_size(event: NewEvent) -> None:
    if len(event.data.encode()) > MOST_DATA_BYTES:
        raise ValueError(f"the data of a {event.type} event has over {MOST_DATA_BYTES} bytes; an event names things, it holds none")


def event_digest(dedup: str) -> bytes:
    """What an event's `dedup` is remembered by, for ever."""
    return hashlib.sha256(dedup.encode()).digest()


@first_row(EventRow)
def read_event(*, event: str, organisation: str) -> sa.Executable:
    return sa.select(*EVENT_COLUMNS).where(EVENT.c.id == event, OWN_EVENT)


def list_events(connection: Connection, *, organisation: str, intent: str | None, after: str | None, most: int) -> list[EventRow]:
    """At most `most` events behind the id `after`, newest first; those of one intent when `intent` is given."""
    start = after or LAST_EVENT_ID
    if intent is None:
        return connection.all(LIST_EVENTS, organisation=organisation, after=start, most=most)
    return connection.all(LIST_EVENTS_OF_INTENT, organisation=organisation, intent=intent, after=start, most=most)


@first_row(EventRow)
def count_event_retry(*, event: str, organisation: str, minute: int, most: int) -> sa.Executable:
    """Count one manual retry; None when the minute's allowance is used up or there is no such event."""
    # The limit stands in the statement: two retries at once cannot both be the tenth.
    return (
        sa.update(EVENT)
        .where(
            EVENT.c.id == event,
            EVENT.c.organisation == organisation,
            EVENT.c.type != REPORT_EVENT,
            (EVENT.c.retry_minute != minute) | (EVENT.c.retry_count < most),
        )
        .values(
            retry_minute=minute,
            retry_count=sa.case((EVENT.c.retry_minute == minute, EVENT.c.retry_count + 1), else_=1),
        )
    )


EVENT_HISTORY = history_by_ids("event", "id", "evt_", "id")


class OldEvent(NamedTuple):
    """An event that is old, and what it may happen once for."""

    id: str
    dedup: str


PENDING_LITERAL = sa.literal_column("0", sa.Integer)

LAST_REMOVED_ID = sa.bindparam("last", type_=sa.Text)

LIST_OLD_DELIVERIES = Query(
    str,
    sa.select(DELIVERY.c.id)
    .where(
        DELIVERY.c.id < LAST_REMOVED_ID,
        DELIVERY.c.state + PENDING_LITERAL != PENDING_LITERAL,
        DELIVERY.c.due_ms + PENDING_LITERAL < sa.bindparam("last_ms", type_=sa.BigInteger),
    )
    .order_by(DELIVERY.c.id)
    .limit(sa.bindparam("most")),
)

LIST_OLD_EVENTS = Query(
    OldEvent,
    sa.select(EVENT.c.id, EVENT.c.dedup)
    .where(
        EVENT.c.id < LAST_REMOVED_ID,
        sa.not_(sa.exists().where(DELIVERY.c.event_id == EVENT.c.id, DELIVERY.c.state + PENDING_LITERAL == PENDING_LITERAL)),
    )
    .order_by(EVENT.c.id)
    .limit(sa.bindparam("most"))
    .with_for_update(),
)

# Not one that somebody has asked for again meanwhile.
REMOVE_DELIVERIES = Query(
    str,
    lambda dialect: (
        sa.delete(DELIVERY)
        .where(
            DELIVERY.c.id.in_(bound_list(dialect, "ids")),
            DELIVERY.c.state + PENDING_LITERAL != PENDING_LITERAL,
        )
        .returning(DELIVERY.c.id)
    ),
)

LIST_DELIVERIES_OF_EVENTS = Query(
    str,
    lambda dialect: sa.select(DELIVERY.c.id).where(DELIVERY.c.event_id.in_(bound_list(dialect, "ids"))),
)

# Not one that a delivery is left of: it was asked for between the two statements.
REMOVE_EVENTS = Command(
    lambda dialect: sa.delete(EVENT).where(
        EVENT.c.id.in_(bound_list(dialect, "ids")),
        sa.not_(sa.exists().where(DELIVERY.c.event_id == EVENT.c.id)),
    )
)

PENDING_DELIVERIES = "select 1 from delivery where id < {upper} and state = 0"

OLDER_DELIVERIES = "select 1 from delivery where id < {upper}"

DELIVERIES_OF_OLDER_EVENTS = "select 1 from delivery where event_id < {upper}"
"""What keeps a partition of deliveries, one of attempts and one of events."""


def remove_deliveries(connection: Connection, rows: list[str]) -> int:
    """The deliveries that are not to be sent, with their attempts; how many."""
    removed = connection.all(REMOVE_DELIVERIES, ids=pack_rows([[row] for row in rows])) if rows else []
    remove_attempts(connection, removed)
    return len(removed)


def sweep_deliveries(connection: Connection, *, before: float, most: int) -> int:
    """Remove deliveries of the oldest events, whose last attempt is as old, with their attempts. `before`: Unix seconds."""
    last = {"last": first_id("dlv_", before), "last_ms": int(before * 1000)}
    return remove_deliveries(connection, connection.all(LIST_OLD_DELIVERIES, **last, most=most))


def sweep_events(connection: Connection, *, before: float, most: int, now: float) -> int:
    """Remove the oldest events with their deliveries; what may happen once does not happen again. 0 while an older program runs beside."""
    if not older_programs_are_gone(connection, now=now):
        return 0
    old = connection.all(LIST_OLD_EVENTS, last=first_id("evt_", before), most=most)
    if old:
        ids = pack_rows([[event.id] for event in old])
        connection.run_many(INSERT_EVENT_DIGEST, [{"digest": event_digest(event.dedup)} for event in old])
        remove_deliveries(connection, connection.all(LIST_DELIVERIES_OF_EVENTS, ids=ids))
        connection.run(REMOVE_EVENTS, ids=ids)
    return len(old)
