"""The log of events: what happened to an organisation, its lines, orders and money, in the order in which it was committed.

An event is one row, written in the commit that makes it true. It has no place in the log yet: who writes cannot know what is committed
first. A worker gives places to what it finds committed, in one transaction after another, so that what is committed later never stands
before what was read. Positions count 1, 2, 3 in each organisation. Each event of a line (`line.*`) gets a number, too, that counts its
line's events without gaps. The time of a reader is nowhere asked for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Dialect,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    first_row,
    json_rows,
    pack_rows,
    row_exists,
    unindexed,
    upsert,
)

# The body of a delivery is this and about 300 bytes of envelope, 20 kB at most.
MOST_LOGGED_BYTES = 19_000

LINE_FAMILY = "line."

HAS_PLACE = sa.text("position IS NOT NULL")

TEST_POSITION = 0
"""Of a test send, which is in no list and no stream; positions in the log begin at 1."""


class LogEntry(NamedTuple):
    """An event to be written. `data` is JSON text; `line` the ICCID that it is about, if it is about one; `created` Unix seconds."""

    id: str
    organisation: str
    type: str
    livemode: int
    data: str
    line: str | None
    created: BigInt


class PlacedEvent(NamedTuple):
    """An event with its place. `position` counts in its organisation, `line_number` in the events of its line; None without a line."""

    id: str
    organisation: str
    type: str
    livemode: int
    data: str
    line: str | None
    created: int
    position: int
    line_number: int | None


class EventLogTable(TableDescription, row=LogEntry, table=True):
    """What happened. `arrival` is the order in which rows were written; a row without a `position` waits for its place."""

    arrival: int | None = Field(default=None, sa_column=sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True))
    position: BigInt | None
    line_number: BigInt | None
    retry_minute: BigInt | None
    retry_count: int | None
    # Whoever writes an event pays for each index of it: nobody looks for one without a place, and the worker that gives it indexes it.
    __table_args__ = (
        sa.Index("event_log_id", "id", unique=True, sqlite_where=HAS_PLACE),
        sa.Index("event_log_position", "organisation", "position", "type", sqlite_where=HAS_PLACE),
        sa.Index("event_log_type", "organisation", "type", "id", sqlite_where=HAS_PLACE),
        sa.Index("event_log_unplaced", "arrival", info={"only": "postgresql"}),
    )


class EventLogEndTable(TableDescription, table=True):
    """How far an organisation's log goes. `swept`: the last position that is kept no more.

    The row of no organisation is a lock, and on SQLite its `position` is the `arrival` up to which everything has its place.
    """

    organisation: str = Field(primary_key=True)
    position: BigInt
    swept: BigInt


class LineEventNumberTable(TableDescription, table=True):
    """How many events a line has had, of an organisation."""

    organisation: str = Field(primary_key=True)
    line: str = Field(primary_key=True)
    number: BigInt
    __table_args__ = CLUSTERED


EVENT_LOG = EventLogTable.table

EVENT_LOG_END = EventLogEndTable.table

LINE_EVENT_NUMBER = LineEventNumberTable.table

LOG_EVENT = Command(lambda _: sa.insert(EVENT_LOG).values({name: sa.bindparam(name) for name in LogEntry._fields}))

PLACED_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(EVENT_LOG.c[name] for name in PlacedEvent._fields)

IS_PLACED = EVENT_LOG.c.position > TEST_POSITION


def log_event(connection: Connection, *, event: LogEntry) -> None:
    """Write an event in the commit that makes it true."""
    if len(event.data) > MOST_LOGGED_BYTES:
        raise ValueError(f"the data of a {event.type} event has over {MOST_LOGGED_BYTES} characters; an event names things, it holds none")
    connection.run_with_commit(LOG_EVENT, **event._asdict())


LOG_TEST = Command(
    sa.insert(EVENT_LOG).values({name: sa.bindparam(name) for name in LogEntry._fields}).values(position=sa.literal(TEST_POSITION))
)


def log_test(connection: Connection, *, event: LogEntry) -> None:
    """Write an invented event that one endpoint is to get."""
    connection.run(LOG_TEST, **event._asdict())


def log_events(connection: Connection, *, events: Sequence[LogEntry]) -> None:
    """As `log_event`, of several events at once, in their order."""
    if len(events) == 1:
        log_event(connection, event=events[0])
    elif events:
        connection.run_many(LOG_EVENT, [event._asdict() for event in events])


class UnplacedEvent(NamedTuple):
    """What is to be known of an event to place it."""

    arrival: int
    organisation: str
    type: str
    line: str | None


NOBODY = ""
"""The organisation of the row that is a lock."""

PLACED_UP_TO = sa.select(EVENT_LOG_END.c.position).where(EVENT_LOG_END.c.organisation == NOBODY).scalar_subquery()


def without_place(dialect: Dialect) -> list[sa.ColumnElement[bool]]:
    """SQLite has one writer at a time, so that what waits was written last, and needs no index. PostgreSQL has an index of what waits:
    what was written earlier may be committed later."""
    written_last = [EVENT_LOG.c.arrival > sa.func.coalesce(PLACED_UP_TO, 0)] if dialect.name == "sqlite" else []
    return [EVENT_LOG.c.position.is_(None), *written_last]


@row_exists
def waits_for_place() -> Callable[[Dialect], sa.Executable]:
    """Whether an event waits for its place."""
    # The order keeps SQLite from an index of all that has its place: it is asked several times a second.
    return lambda dialect: sa.select(EVENT_LOG.c.arrival).where(*without_place(dialect)).order_by(EVENT_LOG.c.arrival).limit(1)


@all_rows(UnplacedEvent)
def list_unplaced(*, most: int) -> Callable[[Dialect], sa.Executable]:
    """The events that wait for a place, those first that were written first."""
    columns = [EVENT_LOG.c[name] for name in UnplacedEvent._fields]
    return lambda dialect: sa.select(*columns).where(*without_place(dialect)).order_by(EVENT_LOG.c.arrival).limit(most)


# The one row that every placing begins with: two at once would count a line's events twice.
LOCK_PLACING = Command(
    lambda dialect: (
        dialect.insert(EVENT_LOG_END)
        .values(organisation=NOBODY, position=0, swept=0)
        .on_conflict_do_update(index_elements=["organisation"], set_={"swept": 0})
    )
)


def lock_placing(connection: Connection) -> None:
    """Let nothing get a place in any log until this transaction has ended: what it reads of a log's end is the end."""
    connection.run(LOCK_PLACING)


class LogEnd(NamedTuple):
    """How far the log of an organisation goes, and up to where it is kept no more."""

    organisation: str
    position: int
    swept: int


class LineEventCount(NamedTuple):
    """How many events a line has had."""

    organisation: str
    line: str
    number: int


READ_ENDS = Query(
    LogEnd,
    lambda dialect: sa.select(*(EVENT_LOG_END.c[name] for name in LogEnd._fields)).where(
        EVENT_LOG_END.c.organisation.in_(bound_list(dialect, "organisations"))
    ),
)


LINE_NUMBER_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(LINE_EVENT_NUMBER.c[name] for name in LineEventCount._fields)


def line_numbers_query(dialect: Dialect) -> sa.Executable:
    given = json_rows(dialect, "lines", "given", organisation=sa.Text, line=sa.Text)
    same = sa.and_(LINE_EVENT_NUMBER.c.organisation == given.c.organisation, LINE_EVENT_NUMBER.c.line == given.c.line)
    return sa.select(*LINE_NUMBER_COLUMNS).where(same)


READ_LINE_NUMBERS = Query(LineEventCount, line_numbers_query)

PUT_END = Command(
    lambda dialect: (
        dialect.insert(EVENT_LOG_END)
        .values(organisation=sa.bindparam("organisation"), position=sa.bindparam("position"), swept=0)
        .on_conflict_do_update(index_elements=["organisation"], set_={"position": sa.bindparam("position")})
    )
)

PUT_LINE_NUMBER = Command(upsert(LINE_EVENT_NUMBER, LineEventCount._fields, key=["organisation", "line"]))


def place_rows(dialect: Dialect) -> sa.Executable:
    places = json_rows(dialect, "places", "places", arrival=sa.BigInteger, position=sa.BigInteger, line_number=sa.BigInteger)
    return (
        sa.update(EVENT_LOG)
        .where(EVENT_LOG.c.arrival == places.c.arrival)
        .values(position=places.c.position, line_number=places.c.line_number)
    )


PLACE_ROWS = Query(PlacedEvent, place_rows)


def place_events(connection: Connection, *, most: int) -> list[PlacedEvent]:
    """Give places to events that are committed and have none, at most `most`; returns them in the order of their organisations' logs."""
    connection.run(LOCK_PLACING)
    rows = list_unplaced(connection, most=most)
    if not rows:
        return []
    organisations = sorted({row.organisation for row in rows})
    found = connection.all(READ_ENDS, organisations=pack_rows([[each] for each in organisations]))
    ends = {end.organisation: end.position for end in found}
    lines = {(row.organisation, row.line) for row in rows if row.line is not None and row.type.startswith(LINE_FAMILY)}
    counted = connection.all(READ_LINE_NUMBERS, lines=pack_rows(sorted(lines))) if lines else []
    numbers = {(each.organisation, each.line): each.number for each in counted}
    places = list[tuple[int, int, int | None]]()
    for row in rows:
        ends[row.organisation] = ends.get(row.organisation, 0) + 1
        key, number = (row.organisation, row.line or ""), None
        if (row.organisation, row.line) in lines and row.type.startswith(LINE_FAMILY):
            numbers[key] = number = numbers.get(key, 0) + 1
        places.append((row.arrival, ends[row.organisation], number))
    if connection.dialect_name == "sqlite":
        ends[NOBODY] = rows[-1].arrival
    connection.run_many(PUT_END, [{"organisation": each, "position": end} for each, end in sorted(ends.items())])
    connection.run_many(PUT_LINE_NUMBER, [{"organisation": o, "line": line, "number": n} for (o, line), n in sorted(numbers.items())])
    placed = connection.all(PLACE_ROWS, places=pack_rows(places))
    return sorted(placed, key=lambda event: (event.organisation, event.position))


def behind_query(dialect: Dialect) -> sa.Executable:
    """The index of positions has the types, so that rows of other types are not read."""
    position = EVENT_LOG.c.position
    return (
        sa.select(*PLACED_COLUMNS)
        .where(EVENT_LOG.c.organisation == sa.bindparam("organisation"))
        .where(position > sa.bindparam("position", type_=sa.BigInteger), position <= sa.bindparam("last", type_=sa.BigInteger))
        .where(unindexed(EVENT_LOG.c.type).in_(bound_list(dialect, "types")))
        .order_by(position)
        .limit(sa.bindparam("most"))
    )


EVENTS_BEHIND = Query(PlacedEvent, behind_query)


def events_behind(
    connection: Connection, *, organisation: str, position: int, last: int, types: Collection[str], most: int
) -> list[PlacedEvent]:
    """The first `most` events of these types behind a position and not behind `last`, in the order of the organisation's log."""
    packed = pack_rows([[each] for each in sorted(types)])
    return connection.all(EVENTS_BEHIND, organisation=organisation, position=position, last=last, types=packed, most=most)


def positions_of(connection: Connection, *, organisations: Sequence[str]) -> list[LogEnd]:
    """How far the logs of these organisations go; those in which nothing has happened yet are left out."""
    if not organisations:
        return []
    return connection.all(READ_ENDS, organisations=pack_rows([[each] for each in organisations]))


NO_LOG = LogEnd("", 0, 0)


@first_row(LogEnd)
def read_log_end(*, organisation: str) -> sa.Executable:
    return sa.select(*(EVENT_LOG_END.c[name] for name in LogEnd._fields)).where(EVENT_LOG_END.c.organisation == organisation)


def end_of_log(connection: Connection, *, organisation: str) -> LogEnd:
    """How far the log of an organisation goes; at 0 where nothing has happened yet."""
    return read_log_end(connection, organisation=organisation) or NO_LOG._replace(organisation=organisation)


@first_row(PlacedEvent)
def find_log_event(*, event: str, organisation: str) -> sa.Executable:
    """The event with this id once it has its place."""
    return sa.select(*PLACED_COLUMNS).where(EVENT_LOG.c.id == event, EVENT_LOG.c.organisation == organisation, IS_PLACED)


@row_exists
def is_test_send(*, event: str, organisation: str) -> sa.Executable:
    """Whether this event was invented for one endpoint of the organisation."""
    return sa.select(EVENT_LOG.c.id).where(
        EVENT_LOG.c.id == event, EVENT_LOG.c.organisation == organisation, EVENT_LOG.c.position == TEST_POSITION
    )


@first_row(str)
def count_log_retry(*, event: str, organisation: str, minute: int, most: int) -> sa.Executable:
    """Count one manual retry; None when the minute's allowance is used up or there is no such event."""
    # The limit stands in the statement: two retries at once cannot both be the tenth.
    same = EVENT_LOG.c.retry_minute.is_not_distinct_from(minute)
    return (
        sa.update(EVENT_LOG)
        .where(EVENT_LOG.c.id == event, EVENT_LOG.c.organisation == organisation, IS_PLACED)
        .where(sa.not_(same) | (EVENT_LOG.c.retry_count < most))
        .values(retry_minute=minute, retry_count=sa.case((same, EVENT_LOG.c.retry_count + 1), else_=1))
        .returning(EVENT_LOG.c.id)
    )


def newest_of_type(type: sa.ColumnElement[str]) -> sa.Select[int, str]:
    """The newest events of one type before an id."""
    of_type = (EVENT_LOG.c.organisation == sa.bindparam("organisation"), EVENT_LOG.c.type == type)
    newest = sa.select(EVENT_LOG.c.arrival, EVENT_LOG.c.id).where(*of_type, EVENT_LOG.c.id < sa.bindparam("after"), IS_PLACED)
    return newest.order_by(EVENT_LOG.c.id.desc()).limit(sa.bindparam("most"))


def newest_of_types(count: int, dialect: Dialect) -> sa.Executable:
    """The newest events of so many types, each found in the index of its own: as one list of types PostgreSQL would sort them all.

    To plan a part for each takes PostgreSQL longer than to read it. SQLite has no LATERAL.
    """
    names = [sa.bindparam(f"type_{number}", type_=sa.Text) for number in range(count)]
    if dialect.name == "sqlite":
        parts = [newest_of_type(name).subquery(f"part_{number}") for number, name in enumerate(names)]
        found = sa.union_all(*(sa.select(part) for part in parts)).subquery("found")
        newest = sa.select(found.c.arrival).order_by(found.c.id.desc())
    else:
        given = sa.values(sa.column("type", sa.Text), name="given").data([(name,) for name in names])
        part = newest_of_type(given.c.type).lateral("part")
        newest = sa.select(part.c.arrival).select_from(given.join(part, sa.true())).order_by(part.c.id.desc())
    arrivals = newest.limit(sa.bindparam("most"))
    return sa.select(*PLACED_COLUMNS).where(EVENT_LOG.c.arrival.in_(arrivals)).order_by(EVENT_LOG.c.id.desc())


@lru_cache
def newest_query(count: int) -> Query[PlacedEvent]:
    return Query(PlacedEvent, partial(newest_of_types, count))


def newest_events(connection: Connection, *, organisation: str, types: Sequence[str], after: str, most: int) -> list[PlacedEvent]:
    """At most `most` events of these types before the id `after`, newest first."""
    if not types:
        return []
    named = {f"type_{number}": name for number, name in enumerate(types)}
    return connection.all(newest_query(len(types)), organisation=organisation, after=after, most=most, **named)


class SweptEvent(NamedTuple):
    """An event that is old."""

    arrival: int
    organisation: str
    position: int


# In the order in which they were written, which is that of their times but for clocks that differ: no index of times is kept for this.
FIRST_PLACED = (
    sa.select(*(EVENT_LOG.c[name] for name in (*SweptEvent._fields, "created")))
    .where(EVENT_LOG.c.position.is_not(None))
    .order_by(EVENT_LOG.c.arrival)
    .limit(sa.bindparam("most"))
    .subquery("first")
)

OLD_LOG_EVENTS = Query(
    SweptEvent,
    lambda _: sa.select(*(FIRST_PLACED.c[name] for name in SweptEvent._fields)).where(
        FIRST_PLACED.c.created < sa.bindparam("before", type_=sa.BigInteger)
    ),
)

REMOVE_LOG_EVENTS = Command(lambda dialect: sa.delete(EVENT_LOG).where(EVENT_LOG.c.arrival.in_(bound_list(dialect, "rows", sa.BigInteger))))

NOTE_SWEPT = Command(
    sa.update(EVENT_LOG_END)
    .where(EVENT_LOG_END.c.organisation == sa.bindparam("of"), EVENT_LOG_END.c.swept < sa.bindparam("last"))
    .values(swept=sa.bindparam("last"))
)

# SQLite gives the numbers of rows that were the last ones to others.
BEGIN_ANEW = Command(
    sa.update(EVENT_LOG_END)
    .where(EVENT_LOG_END.c.organisation == NOBODY, EVENT_LOG_END.c.position <= sa.bindparam("last"))
    .values(position=0)
)


def sweep_event_log(connection: Connection, *, before: float, most: int) -> int:
    """Remove the oldest events of the log; their deliveries have a time of their own. `before`: Unix seconds."""
    old = connection.all(OLD_LOG_EVENTS, before=int(before), most=most)
    last: Mapping[str, int] = {event.organisation: 0 for event in old}
    last = {each: max(event.position for event in old if event.organisation == each) for each in last}
    connection.run_many(NOTE_SWEPT, [{"of": each, "last": position} for each, position in sorted(last.items())])
    if connection.dialect_name == "sqlite" and old:
        connection.run(BEGIN_ANEW, last=max(event.arrival for event in old))
    return connection.run(REMOVE_LOG_EVENTS, rows=pack_rows([[event.arrival] for event in old])) if old else 0
