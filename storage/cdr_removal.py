"""Call records that are older than they are kept: removed in steps, and a digest of each id stays.

The sums of the months, which invoices are made of, are tables of their own that nothing here touches.

Choice: no index by time. On SQLite it made the import of a batch take half as long again, and a record half as large again. A pass reads
the table from one end to the other instead, in the order in which the database keeps it, so many rows a step, and stores how far it came.
The next pass begins when a thirtieth of the time for which records are kept is over, so that each record is read about thirty times.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.cdr_events import CDR_DIGESTS_REVISION, CDR_EVENT, CdrKey, insert_cdr_digests
from storage.engine.connection import Connection, runs_in_thread, writes
from storage.engine.json_rows import json_rows, pack_rows
from storage.engine.statement import Dialect, Query, StatementBuild
from storage.engine.store import Store
from storage.engine.sweep import SWEEP_STEPS, SWEPT_AT_ONCE
from storage.engine.table import TableDescription, table_of
from storage.replicas import older_programs_are_gone


class CallRecordPassTable(TableDescription, table=True):
    """How far the search for old call records came, one row. `running`: 0 once it reached the end; `begun`: Unix seconds.

    It goes on behind the record with this key on SQLite, and at this block of the table on PostgreSQL.
    """

    id: int = Field(primary_key=True, sa_type=sa.Integer)
    begun: int = Field(sa_type=sa.BigInteger)
    running: int = Field(sa_type=sa.Integer)
    organisation: str = Field(sa_type=sa.Text)
    event: str = Field(sa_type=sa.Text)
    block: int = Field(sa_type=sa.BigInteger)


CALL_RECORD_PASS = table_of(CallRecordPassTable)

SHORTEST_PASS_SECONDS = 86_400

CDR_PASSES = 30
"""Passes in the time for which records are kept, at most one a day."""

PASS_ROWS = 5000

PASS_BLOCKS = 128
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


class OldCdrs(NamedTuple):
    """The old records of a step, and where the next step begins; None behind the last one."""

    records: list[CdrKey]
    following: PassPlace | None


PASS_START = PassPlace("", "", 0)

CDR_KEY = (CDR_EVENT.c.organisation, CDR_EVENT.c.event)

CDR_IS_AFTER = sa.tuple_(*CDR_KEY) > sa.tuple_(sa.bindparam("organisation", type_=sa.Text), sa.bindparam("event", type_=sa.Text))

FROM_BLOCK = sa.bindparam("block", type_=sa.BigInteger)

MANY_BLOCKS = sa.bindparam("blocks", type_=sa.BigInteger)

CDR_IS_OLD = CDR_EVENT.c.occurred_at < sa.bindparam("before", type_=sa.BigInteger)

BEFORE_LAST = sa.bindparam("rows", type_=sa.Integer) - sa.literal_column("1", sa.Integer)

IN_BLOCKS = sa.text("cdr_event.ctid >= ('(' || :block || ',0)')::tid AND cdr_event.ctid < ('(' || (:block + :blocks) || ',0)')::tid")


def following_place_query(dialect: Dialect) -> sa.Executable:
    """Where the step behind this one begins; no row where this one reads to the end."""
    if dialect.name == "sqlite":
        block = sa.literal_column("0", sa.Integer).label("block")
        return sa.select(*CDR_KEY, block).where(CDR_IS_AFTER).order_by(*CDR_KEY).limit(1).offset(BEFORE_LAST)
    bytes_of_block = sa.cast(sa.func.current_setting("block_size"), sa.BigInteger)
    size = sa.func.pg_relation_size(sa.literal_column(f"'{CDR_EVENT.name}'"), type_=sa.BigInteger)
    none = [sa.literal_column("''", sa.Text).label(name) for name in ("organisation", "event")]
    return sa.select(*none, (FROM_BLOCK + MANY_BLOCKS).label("block")).where(size > (FROM_BLOCK + MANY_BLOCKS) * bytes_of_block)


def old_cdrs_query(dialect: Dialect) -> sa.Executable:
    """The keys of the old records that a step reads."""
    if dialect.name == "sqlite":
        read = (
            sa.select(*CDR_KEY, CDR_EVENT.c.occurred_at).where(CDR_IS_AFTER).order_by(*CDR_KEY).limit(sa.bindparam("rows")).subquery("read")
        )
        is_old = read.c.occurred_at < sa.bindparam("before", type_=sa.BigInteger)
        return sa.select(read.c.organisation, read.c.event).where(is_old)
    return sa.select(*CDR_KEY).where(IN_BLOCKS, CDR_IS_OLD)


FIND_FOLLOWING_PLACE = Query(PassPlace, following_place_query)

OLD_CDRS = Query(CdrKey, old_cdrs_query)

REMOVE_CDRS = Query(
    CdrKey,
    lambda dialect: (
        sa.delete(CDR_EVENT)
        .where(sa.tuple_(*CDR_KEY).in_(sa.select(*json_rows(dialect, "records", "given", organisation=sa.Text, event=sa.Text).c)))
        .returning(*CDR_KEY)
    ),
)

FIND_PASS = Query(PassState, sa.select(*(CALL_RECORD_PASS.c[name] for name in PassState._fields)))


async def sweep_call_records(
    store: Store, *, days: int, now: float, steps: int = SWEEP_STEPS, rows: int = PASS_ROWS, blocks: int = PASS_BLOCKS
) -> int:
    """Remove records of data that was used more than `days` days before `now`, in Unix seconds; how many they were.

    At most `steps` steps, each of which reads `rows` rows or `blocks` blocks or removes 500 records: the next run goes on from there.
    """
    state = await store.write(begin_pass, now=now, every=max(SHORTEST_PASS_SECONDS, days * SHORTEST_PASS_SECONDS // CDR_PASSES))
    if state is None:
        return 0
    place: PassPlace | None = PassPlace(*state[2:])
    total, before = 0, int(now) - days * SHORTEST_PASS_SECONDS
    while place is not None and steps > 0:
        found = await store.read(runs_in_thread(old_cdrs), place=place, before=before, rows=rows, blocks=blocks)
        parts = [found.records[start : start + SWEPT_AT_ONCE] for start in range(0, len(found.records), SWEPT_AT_ONCE)]
        removed = sum([await store.write(runs_in_thread(remove_cdrs), records=part, now=now) for part in parts[:steps]])
        total, steps = total + removed, steps - 1 - len(parts)
        if removed < len(found.records):  # the rest is read again
            break
        place = found.following
    await store.write(save_pass, state=PassState(state.begun, int(place is not None), *(place or PASS_START)))
    return total


def begin_pass(connection: Connection, *, now: float, every: int) -> PassState | None:
    """The pass that runs, or a new one if the last began `every` seconds ago; None while there is none to do."""
    if not older_programs_are_gone(connection, now=now, revision=CDR_DIGESTS_REVISION):
        return None
    state = connection.first(FIND_PASS)
    if state is None or (not state.running and state.begun + every <= now):
        state = PassState(int(now), 1, *PASS_START)
        save_pass(connection, state=state)
    return state if state.running else None


@writes
def save_pass(*, state: PassState) -> StatementBuild:
    """Store how far a pass came."""
    return lambda dialect: (
        dialect.insert(CALL_RECORD_PASS)
        .values({"id": 1, **state._asdict()})
        .on_conflict_do_update(index_elements=["id"], set_=state._asdict())
    )


def old_cdrs(connection: Connection, *, place: PassPlace, before: int, rows: int, blocks: int) -> OldCdrs:
    """The records from `place` on, as many as a step reads, of data that was used before `before`, in Unix seconds."""
    given = {**place._asdict(), "rows": rows, "blocks": blocks}
    return OldCdrs(connection.all(OLD_CDRS, **given, before=before), connection.first(FIND_FOLLOWING_PLACE, **given))


def remove_cdrs(connection: Connection, *, records: Sequence[CdrKey], now: float) -> int:
    """Remove records and remember their ids, in one transaction; how many. 0 while an older program runs beside."""
    if not older_programs_are_gone(connection, now=now, revision=CDR_DIGESTS_REVISION):
        return 0
    removed = connection.all(REMOVE_CDRS, records=pack_rows([tuple(record) for record in records]))
    by_organisation: dict[str, list[str]] = {}
    for record in removed:
        by_organisation.setdefault(record.organisation, []).append(record.event)
    for organisation, events in by_organisation.items():
        insert_cdr_digests(connection, organisation=organisation, events=events)
    return len(removed)
