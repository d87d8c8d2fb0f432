"""Histories: the tables that PostgreSQL divides by months, and how a whole table becomes a divided one while everybody works on it.

It has rules that its partitions cannot have, so it is changed only when no program runs, or will start, that needs them. Then, in steps:
what such a rule kept is copied to its small table; the rows are checked to be from before a moment to come, which locks nobody out; and in
one short transaction the table becomes the first partition of a new one of the same name. Each step may be repeated and begun again.
"""

import re
from typing import NamedTuple, cast

import sqlalchemy as sa
from sqlmodel import Field

from storage.audit import AUDIT_HISTORY, AUDIT_READ_HISTORY
from storage.deliveries import ATTEMPT_HISTORY, DELIVERY_HISTORY
from storage.engine.database_url import brief_connection
from storage.engine.drivers import DriverConnection
from storage.engine.partitions import (
    CatalogueEntry,
    History,
    PartitionBound,
    add_default,
    any_row,
    bound_literal,
    copy_rights,
    first_partition_name,
    is_partitioned,
    lock_as_owner,
    month_start,
    partitions_of,
    rows_in_default,
    run_sql,
    wait_briefly,
)
from storage.engine.sql import Connection, Query, StatementBuild, TableDescription, postgresql_dialect, text_query, upsert, value_or, writes
from storage.events import EVENT, EVENT_HISTORY
from storage.replicas import SCHEMA_STEP, all_programs_know, close_to_older_programs


class CopiedRowsTable(TableDescription, table=True):
    """The rows of a table that are copied: all up to the id `last`."""

    name: str = Field(primary_key=True)
    last: str


MOST_DEFAULT_ROWS = 10_000


class PartitionState(NamedTuple):
    """The tables that are still whole; rows without a partition, of each table that has any (MOST_COUNTED or more is that); and the
    moment up to which each divided table has partitions (Unix seconds).
    """

    whole: list[str]
    without: dict[str, int]
    until: dict[str, float]


def partition_state(url: str) -> PartitionState:
    """The partitions of the server at `url`. Raises StoreUnavailable; waits for the network."""
    found = PartitionState([], {}, {})
    with brief_connection(url) as raw:
        connection = Connection(cast("DriverConnection", raw), postgresql_dialect())
        for history in HISTORIES:
            if not is_partitioned(connection, history=history):
                found.whole.append(history.name)
                continue
            if rows := rows_in_default(connection, history=history, most=MOST_DEFAULT_ROWS):
                found.without[history.name] = rows
            found.until[history.name] = history.moment(partitions_of(connection, history=history)[-1].upper)
    return found


HISTORIES = (AUDIT_READ_HISTORY, AUDIT_HISTORY, ATTEMPT_HISTORY, DELIVERY_HISTORY, EVENT_HISTORY)

PARTITION_REVISION = "0022"
"""The schema from which on programs write to partitions."""

SOONEST_SECONDS = 14 * 86_400
"""So long before it is full, at least, the first partition is made: until then nobody is refused if the change is not finished."""

TOO_LATE_SECONDS = 86_400


class CopiedEvents(NamedTuple):
    """The last id of the rows that were copied, and how many they were."""

    last: str | None
    rows: int


FIND_MADE_REVISION = Query(str, lambda _: sa.select(SCHEMA_STEP.c.revision).where(SCHEMA_STEP.c.revision >= PARTITION_REVISION).limit(1))

COPY_EVENT_DIGESTS = text_query(
    CopiedEvents,
    "with oldest as materialized (select id, dedup from event where id > :last order by id limit :most), copied as"
    " (insert into event_digest (digest) select distinct sha256(convert_to(dedup, 'UTF8')) from oldest on conflict do nothing)"
    " select max(id) as last, count(*) as rows from oldest",
)

LIST_INDEXES = text_query(
    CatalogueEntry,
    "select c.relname::text as name, case when i.indisprimary then 'primary' when i.indisunique then 'unique'"
    " else pg_get_indexdef(c.oid) end as text from pg_index i join pg_class c on c.oid = i.indexrelid"
    " where i.indrelid = to_regclass(:name) order by 1",
)

FIND_FIRST_CHECK = text_query(
    CatalogueEntry,
    "select conname::text as name, pg_get_constraintdef(oid) as text from pg_constraint"
    " where conrelid = to_regclass(:table) and conname = :name",
)

FIND_SEQUENCE = text_query(str, "select pg_get_serial_sequence(:table, :column) as sequence", "sequence")

# A member that may use the owner's rights, and act as it. Servers before 16 know no members that may not.
IS_OWNED = text_query(
    int,
    "select count(*) as yes from pg_class where oid = to_regclass(:name) and pg_has_role(current_user, relowner, 'USAGE')"
    " and pg_has_role(current_user, relowner,"
    " case when current_setting('server_version_num')::int < 160000 then 'MEMBER' else 'SET' end)",
    "yes",
)

FIRST_CHECK_LIMIT = re.compile(r"< \(?'?([0-9a-z_.]+)")


def all_write_partitions(connection: Connection, *, now: float) -> bool:
    """Whether all programs that run, or will start, write to partitions. `now`: Unix seconds.

    Choice: the database is closed to older programs only when none runs any more, so that an upgrade can be given up while it goes on.
    One that had just looked whether it may start is a running process by the next call, a minute later.
    """
    if connection.dialect_name != "postgresql" or connection.first(FIND_MADE_REVISION) is None:
        return False
    return all_programs_know(connection, revision=PARTITION_REVISION, now=now) and not close_to_older_programs(
        connection, revision=PARTITION_REVISION
    )


def may_change_history(connection: Connection, *, history: History) -> bool:
    """Whether the table is of the user of the database that this process is, or of a role that it may act as."""
    return connection.first(IS_OWNED, name=history.name) == 1


def copy_event_digests(connection: Connection, *, most: int) -> int:
    """Remember what the next oldest events may happen once for; how many events that were."""
    copied = connection.first(COPY_EVENT_DIGESTS, last=last_copied(connection, table=EVENT.name), most=most)
    if copied is None or copied.last is None:
        return 0
    note_copied(connection, table=EVENT.name, last=copied.last)
    return copied.rows


def first_check_name(history: History) -> str:
    """The name of the rule that all rows are from before the first month."""
    return f"{history.name}_before"


def end_of_first(connection: Connection, *, history: History, now: float) -> PartitionBound:
    """Where the first partition ends: as an earlier run has said, else at the beginning of a month that is not near."""
    found = connection.first(FIND_FIRST_CHECK, table=history.name, name=first_check_name(history))
    limit = None if found is None else FIRST_CHECK_LIMIT.search(found.text)
    if limit is not None:
        end = history.parse(limit[1])
        if history.moment(end) > now + TOO_LATE_SECONDS:
            return end
        drop_first_check(connection, history=history)
    end = history.first(month_start(now + SOONEST_SECONDS, 1))
    wait_briefly(connection)
    rule = f"check ({history.column} < {bound_literal(end)}) not valid"
    run_sql(connection, f"alter table {history.name} add constraint {first_check_name(history)} {rule}")
    return end


def drop_first_check(connection: Connection, *, history: History) -> None:
    """Rows of any time may come again."""
    wait_briefly(connection)
    run_sql(connection, f"alter table {history.name} drop constraint if exists {first_check_name(history)}")


def check_first_rows(connection: Connection, *, history: History, end: PartitionBound) -> bool:
    """Read all rows, which keeps nobody from writing: whether they are from before the end of the first partition."""
    if any_row(connection, f"select 1 from {history.name} where {history.column} >= {bound_literal(end)}"):
        return False
    run_sql(connection, f"alter table {history.name} validate constraint {first_check_name(history)}")
    return True


def switch_to_partitions(connection: Connection, *, history: History, end: PartitionBound) -> None:
    """The table, whose rows were checked, becomes the first partition of a new one of its name."""
    if is_partitioned(connection, history=history):
        return
    name, first = history.name, first_partition_name(history)
    lock_as_owner(connection, history)
    indexes = connection.all(LIST_INDEXES, name=name)
    counted = connection.first(FIND_SEQUENCE, table=name, column="id") if history is AUDIT_HISTORY else None
    run_sql(connection, f"alter table {name} rename to {first}")
    for index, _ in indexes:
        run_sql(connection, f"alter index {index} rename to {index}_first")
    run_sql(connection, f"create table {name} (like {first} including defaults including storage) partition by range ({history.column})")
    copy_rights(connection, source=first, target=name)
    for index, text in indexes:
        if text == "unique" and not history.unique:  # its small table keeps the rule
            run_sql(connection, f"alter table {first} drop constraint {index}_first")
        elif text not in ("primary", "unique"):
            run_sql(connection, text)
    if counted is not None:  # else it would go with the first partition
        run_sql(connection, f"alter sequence {counted} owned by {name}.id")
    run_sql(connection, f"alter table {name} attach partition {first} for values from (minvalue) to ({bound_literal(end)})")
    run_sql(connection, f"alter table {first} drop constraint {first_check_name(history)}")
    add_default(connection, history)


COPIED_ROWS = CopiedRowsTable.table


@value_or("")
def last_copied(*, table: str) -> sa.Executable:
    """The id of the last row that is copied; nothing where none is."""
    return sa.select(COPIED_ROWS.c.last).where(COPIED_ROWS.c.name == table)


@writes
def note_copied(*, table: str, last: str) -> StatementBuild:
    """The rows up to this one are copied."""
    return upsert(COPIED_ROWS, key=["name"], name=table, last=last)
