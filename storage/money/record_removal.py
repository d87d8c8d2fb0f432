"""Call records that are older than they are kept: removed in steps, and a digest of each id stays.

The sums of the months, which invoices are made of, are tables of their own that nothing here touches.

Choice: no index by time. On SQLite it made the import of a batch take half as long again, and a record half as large again. A pass reads
the table from one end to the other instead, in the order in which the database keeps it, so many rows a step, and stores how far it came.
The next pass begins when a thirtieth of the time for which records are kept is over, so that each record is read about thirty times.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.expired_keys import older_are_gone
from storage.connection import Connection
from storage.listed import listed, packed
from storage.long import Long
from storage.money.money_tables import CallRecordPassTable, CdrEventTable
from storage.money.record_digests import REVISION, RecordKey, insert_digests
from storage.statement import Command, Dialect, Query, table
from storage.store import Store
from storage.sweep import AT_ONCE, STEPS

EVENT, PASS = table(CdrEventTable), table(CallRecordPassTable)
DAY = 86_400
PASSES = 30
"""Passes in the time for which records are kept, at most one a day."""
ROWS, BLOCKS = 5000, 128
"""What a step reads: rows on SQLite; on PostgreSQL blocks, of which as many hold about as much."""


class PassPlace(NamedTuple):
    """How far a pass came: behind the record with this key on SQLite, before this block of the table on PostgreSQL."""

    organisation: str
    event: str
    block: int


class PassState(NamedTuple):
    """The pass that runs or ran last; `begun`: Unix seconds."""

    begun: int
    running: int
    organisation: str
    event: str
    block: int


class OldRecords(NamedTuple):
    """The old records of a step, and where the next step begins; None behind the last one."""

    records: list[RecordKey]
    following: PassPlace | None


START = PassPlace("", "", 0)
KEY = (EVENT.c.organisation, EVENT.c.event)
AFTER = sa.tuple_(*KEY) > sa.tuple_(sa.bindparam("organisation", type_=sa.Text), sa.bindparam("event", type_=sa.Text))
FROM_BLOCK, MANY_BLOCKS = sa.bindparam("block", type_=sa.BigInteger), sa.bindparam("blocks", type_=sa.BigInteger)
IS_OLD = EVENT.c.occurred_at < sa.bindparam("before", type_=sa.BigInteger)
BEFORE_LAST = sa.bindparam("rows", type_=sa.Integer) - sa.literal_column("1", sa.Integer)
IN_BLOCKS = sa.text("cdr_event.ctid >= ('(' || :block || ',0)')::tid AND cdr_event.ctid < ('(' || (:block + :blocks) || ',0)')::tid")


def following_place(dialect: Dialect) -> sa.Executable:
    """Where the step behind this one begins; no row where this one reads to the end."""
    if dialect.name == "sqlite":
        block = sa.literal_column("0", sa.Integer).label("block")
        return sa.select(*KEY, block).where(AFTER).order_by(*KEY).limit(1).offset(BEFORE_LAST)
    bytes_of_block = sa.cast(sa.func.current_setting("block_size"), sa.BigInteger)
    size = sa.func.pg_relation_size(sa.literal_column(f"'{EVENT.name}'"), type_=sa.BigInteger)
    none = [sa.literal_column("''", sa.Text).label(name) for name in ("organisation", "event")]
    return sa.select(*none, (FROM_BLOCK + MANY_BLOCKS).label("block")).where(size > (FROM_BLOCK + MANY_BLOCKS) * bytes_of_block)


def old_in_step(dialect: Dialect) -> sa.Executable:
    """The keys of the old records that a step reads."""
    if dialect.name == "sqlite":
        read = sa.select(*KEY, EVENT.c.occurred_at).where(AFTER).order_by(*KEY).limit(sa.bindparam("rows")).subquery("read")
        is_old = read.c.occurred_at < sa.bindparam("before", type_=sa.BigInteger)
        return sa.select(read.c.organisation, read.c.event).where(is_old)
    return sa.select(*KEY).where(IN_BLOCKS, IS_OLD)


FOLLOWING = Query(PassPlace, following_place)
OLD = Query(RecordKey, old_in_step)
REMOVE = Query(
    RecordKey,
    lambda dialect: (
        sa.delete(EVENT)
        .where(sa.tuple_(*KEY).in_(sa.select(*listed(dialect, "records", "given", organisation=sa.Text, event=sa.Text).c)))
        .returning(*KEY)
    ),
)
FIND_PASS = Query(PassState, sa.select(*(PASS.c[name] for name in PassState._fields)))
SAVE_PASS = Command(
    lambda dialect: (
        dialect.insert(PASS)
        .values({"id": 1, **{name: sa.bindparam(name) for name in PassState._fields}})
        .on_conflict_do_update(index_elements=["id"], set_={name: sa.bindparam(name) for name in PassState._fields})
    )
)


async def sweep_call_records(store: Store, *, days: int, now: float, steps: int = STEPS, rows: int = ROWS, blocks: int = BLOCKS) -> int:
    """Remove records of data that was used more than `days` days before `now`, in Unix seconds; how many they were.

    At most `steps` steps, each of which reads `rows` rows or `blocks` blocks or removes 500 records: the next run goes on from there.
    """
    state = await store.write(begin_pass, now=now, every=max(DAY, days * DAY // PASSES))
    if state is None:
        return 0
    place: PassPlace | None = PassPlace(*state[2:])
    total, before = 0, int(now) - days * DAY
    while place is not None and steps > 0:
        found = await store.read(Long(old_records), place=place, before=before, rows=rows, blocks=blocks)
        parts = [found.records[start : start + AT_ONCE] for start in range(0, len(found.records), AT_ONCE)]
        removed = sum([await store.write(Long(remove_records), records=part, now=now) for part in parts[:steps]])
        total, steps = total + removed, steps - 1 - len(parts)
        if removed < len(found.records):  # the rest is read again
            break
        place = found.following
    await store.write(save_pass, state=PassState(state.begun, int(place is not None), *(place or START)))
    return total


def begin_pass(connection: Connection, *, now: float, every: int) -> PassState | None:
    """The pass that runs, or a new one if the last began `every` seconds ago; None while there is none to do."""
    if not older_are_gone(connection, now=now, revision=REVISION):
        return None
    state = connection.first(FIND_PASS)
    if state is None or (not state.running and state.begun + every <= now):
        state = PassState(int(now), 1, *START)
        save_pass(connection, state=state)
    return state if state.running else None


def save_pass(connection: Connection, *, state: PassState) -> None:
    """Store how far a pass came."""
    connection.run(SAVE_PASS, **state._asdict())


def old_records(connection: Connection, *, place: PassPlace, before: int, rows: int, blocks: int) -> OldRecords:
    """The records from `place` on, as many as a step reads, of data that was used before `before`, in Unix seconds."""
    given = {**place._asdict(), "rows": rows, "blocks": blocks}
    return OldRecords(connection.all(OLD, **given, before=before), connection.first(FOLLOWING, **given))


def remove_records(connection: Connection, *, records: Sequence[RecordKey], now: float) -> int:
    """Remove records and remember their ids, in one transaction; how many. 0 while an older program runs beside."""
    if not older_are_gone(connection, now=now, revision=REVISION):
        return 0
    removed = connection.all(REMOVE, records=packed([tuple(record) for record in records]))
    by_organisation: dict[str, list[str]] = {}
    for record in removed:
        by_organisation.setdefault(record.organisation, []).append(record.event)
    for organisation, events in by_organisation.items():
        insert_digests(connection, organisation=organisation, events=events)
    return len(removed)
