"""How a whole table becomes a divided one on PostgreSQL, while everybody works on it.

It has rules that its partitions cannot have, so it is changed only when no program runs, or will start, that needs them. Then, in steps:
what such a rule kept is copied to its small table; the rows are checked to be from before a moment to come, which locks nobody out; and in
one short transaction the table becomes the first partition of a new one of the same name. Each step may be repeated and begun again.
"""

import re
from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.expired_keys import close_to_older
from storage.calls.replicas import all_know
from storage.connection import Connection
from storage.copied_rows import last_copied, note_copied
from storage.partitions import (
    AUDIT,
    Answer,
    Bound,
    History,
    Named,
    add_default,
    copy_rights,
    exists,
    first_of,
    is_partitioned,
    literal,
    month_start,
    say,
    take_over,
    wait_briefly,
)
from storage.schema import EventTable
from storage.schema_steps import SchemaStepTable
from storage.statement import Query, table

STEP, EVENT = table(SchemaStepTable), table(EventTable)
REVISION = "0022"
"""The schema from which on programs write to partitions."""
SOONEST_SECONDS = 14 * 86_400
"""So long before it is full, at least, the first partition is made: until then nobody is refused if the change is not finished."""
TOO_LATE_SECONDS = 86_400


class Revision(NamedTuple):
    """A schema version that was made."""

    revision: str


class Copied(NamedTuple):
    """The last id of the rows that were copied, and how many they were."""

    last: str | None
    rows: int


class Column(NamedTuple):
    """The sequence that a column counts by."""

    sequence: str | None


MADE = Query(Revision, sa.select(STEP.c.revision).where(STEP.c.revision >= REVISION).limit(1))
COPY = Query(
    Copied,
    sa.text(
        "with oldest as materialized (select id, dedup from event where id > :last order by id limit :most), copied as"
        " (insert into event_digest (digest) select distinct sha256(convert_to(dedup, 'UTF8')) from oldest on conflict do nothing)"
        " select max(id) as last, count(*) as rows from oldest"
    ).columns(sa.column("last", sa.Text), sa.column("rows", sa.Integer)),
)
INDEXES = Query(
    Named,
    sa.text(
        "select c.relname::text as name, case when i.indisprimary then 'primary' when i.indisunique then 'unique'"
        " else pg_get_indexdef(c.oid) end as text from pg_index i join pg_class c on c.oid = i.indexrelid"
        " where i.indrelid = to_regclass(:name) order by 1"
    ).columns(sa.column("name", sa.Text), sa.column("text", sa.Text)),
)
CHECKED = Query(
    Named,
    sa.text(
        "select conname::text as name, pg_get_constraintdef(oid) as text from pg_constraint"
        " where conrelid = to_regclass(:table) and conname = :name"
    ).columns(sa.column("name", sa.Text), sa.column("text", sa.Text)),
)
SEQUENCE = Query(Column, sa.text("select pg_get_serial_sequence(:table, :column) as sequence").columns(sa.column("sequence", sa.Text)))
# A member that may use the owner's rights, and act as it. Servers before 16 know no members that may not.
IS_OWNED = Query(
    Answer,
    sa.text(
        "select count(*) as yes from pg_class where oid = to_regclass(:name) and pg_has_role(current_user, relowner, 'USAGE')"
        " and pg_has_role(current_user, relowner,"
        " case when current_setting('server_version_num')::int < 160000 then 'MEMBER' else 'SET' end)"
    ).columns(sa.column("yes", sa.Integer)),
)
LIMIT = re.compile(r"< \(?'?([0-9a-z_.]+)")


def is_ours(connection: Connection, *, now: float) -> bool:
    """Whether all programs that run, or will start, write to partitions. `now`: Unix seconds.

    Choice: the database is closed to older programs only when none runs any more, so that an upgrade can be given up while it goes on.
    One that had just looked whether it may start is a running process by the next call, a minute later.
    """
    if connection.dialect_name != "postgresql" or connection.first(MADE) is None:
        return False
    return all_know(connection, revision=REVISION, now=now) and not close_to_older(connection, revision=REVISION)


def may_change(connection: Connection, *, history: History) -> bool:
    """Whether the table is of the user of the database that this process is, or of a role that it may act as."""
    found = connection.first(IS_OWNED, name=history.name)
    return found is not None and found.yes == 1


def copy_digests(connection: Connection, *, most: int) -> int:
    """Remember what the next oldest events may happen once for; how many events that were."""
    copied = connection.first(COPY, last=last_copied(connection, table=EVENT.name), most=most)
    if copied is None or copied.last is None:
        return 0
    note_copied(connection, table=EVENT.name, last=copied.last)
    return copied.rows


def check_name(history: History) -> str:
    """The name of the rule that all rows are from before the first month."""
    return f"{history.name}_before"


def end_of_first(connection: Connection, *, history: History, now: float) -> Bound:
    """Where the first partition ends: as an earlier run has said, else at the beginning of a month that is not near."""
    found = connection.first(CHECKED, table=history.name, name=check_name(history))
    limit = None if found is None else LIMIT.search(found.text)
    if limit is not None:
        end = history.parse(limit[1])
        if history.moment(end) > now + TOO_LATE_SECONDS:
            return end
        drop_check(connection, history=history)
    end = history.first(month_start(now + SOONEST_SECONDS, 1))
    wait_briefly(connection)
    rule = f"check ({history.column} < {literal(end)}) not valid"
    say(connection, f"alter table {history.name} add constraint {check_name(history)} {rule}")
    return end


def drop_check(connection: Connection, *, history: History) -> None:
    """Rows of any time may come again."""
    wait_briefly(connection)
    say(connection, f"alter table {history.name} drop constraint if exists {check_name(history)}")


def check_rows(connection: Connection, *, history: History, end: Bound) -> bool:
    """Read all rows, which keeps nobody from writing: whether they are from before the end of the first partition."""
    if exists(connection, f"select 1 from {history.name} where {history.column} >= {literal(end)}"):
        return False
    say(connection, f"alter table {history.name} validate constraint {check_name(history)}")
    return True


def switch(connection: Connection, *, history: History, end: Bound) -> None:
    """The table, whose rows were checked, becomes the first partition of a new one of its name."""
    if is_partitioned(connection, history=history):
        return
    name, first = history.name, first_of(history)
    take_over(connection, history)
    indexes = connection.all(INDEXES, name=name)
    counted = connection.first(SEQUENCE, table=name, column="id") if history is AUDIT else None
    say(connection, f"alter table {name} rename to {first}")
    for index, _ in indexes:
        say(connection, f"alter index {index} rename to {index}_first")
    say(connection, f"create table {name} (like {first} including defaults including storage) partition by range ({history.column})")
    copy_rights(connection, source=first, target=name)
    for index, text in indexes:
        if text == "unique" and not history.unique:  # its small table keeps the rule
            say(connection, f"alter table {first} drop constraint {index}_first")
        elif text not in ("primary", "unique"):
            say(connection, text)
    if counted is not None and counted.sequence is not None:  # else it would go with the first partition
        say(connection, f"alter sequence {counted.sequence} owned by {name}.id")
    say(connection, f"alter table {name} attach partition {first} for values from (minvalue) to ({literal(end)})")
    say(connection, f"alter table {first} drop constraint {check_name(history)}")
    add_default(connection, history)
