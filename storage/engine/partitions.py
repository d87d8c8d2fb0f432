"""Partitions of history on PostgreSQL: a table whose rows are of some time is divided by months of that time.

The first partition takes whatever is older, the months follow without a gap, and the default partition takes what nobody has made room for
yet. A month is made two months ahead. Where rows came before it was made, the default partition becomes that of their months, and no row
moves. SQLite has no partitions: its tables are whole, and the statements are the same.

Bounds of partitions are values of the column that holds the time: ids that begin with it, or Unix seconds.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import sqlalchemy as sa

from registry.errors import StoreUnavailable
from registry.ids import first_id, id_created_at
from storage.engine.sql import Command, Connection, Query, text_query

PartitionBound: TypeAlias = str | int | float

PARTITION_LOCK_MS = 500
"""How long a change of partitions waits for a table: who comes after it waits as long."""

MONTHS_AHEAD = 2

MOST_MOVED = 10_000
"""Rows of a time to come that are moved in one transaction, while everybody waits."""


class History(NamedTuple):
    """A table that is divided. `column` holds the time; `first` is its smallest value at a moment, `moment` the moment of a value.

    `primary_key` and `unique`: the rules of each partition. They are rules of all, where they have the column in them, or what is always
    in the same month. Choice: the whole has none, since `pg_restore --clean` cannot drop what a partition has from its whole.
    """

    name: str
    column: str
    first: Callable[[float], PartitionBound]
    moment: Callable[[PartitionBound], float]
    parse: Callable[[str], PartitionBound]
    primary_key: str
    unique: str = ""


class Partition(NamedTuple):
    """A partition: values from `lower` to before `upper`. The first one has no lower bound."""

    name: str
    lower: PartitionBound | None
    upper: PartitionBound


class CatalogueEntry(NamedTuple):
    """Something of the catalogue, and how it is made."""

    name: str
    text: str


class TableOwner(NamedTuple):
    """The role that a table belongs to, and whether it (1) is the user of this session."""

    role: str
    is_self: int


def history_by_ids(name: str, column: str, prefix: str, primary_key: str) -> History:
    """A table with ids of this prefix, which begin with the time."""
    return History(name, column, partial(first_id, prefix), moment_of_text, str, primary_key)


def moment_of_text(id: PartitionBound) -> float:
    """When an id was made, Unix seconds."""
    return id_created_at(str(id))


def sql_text(text: str) -> sa.TextClause:
    """A text whose colons are no parameters."""
    return sa.text(re.sub(r"(?<!:):(?!:)", r"\:", text))


def run_sql(connection: Connection, text: str) -> int:
    """Run a command that names tables; how many rows it changed."""
    return connection.run(Command(sql_text(text)))


def bound_literal(value: PartitionBound) -> str:
    """A bound as text: ids of ours and numbers need no escape."""
    if isinstance(value, str) and not re.fullmatch(r"[a-z]+_[0-9a-z]+", value):
        raise ValueError("the bound of a partition is no id of ours")
    return f"'{value}'" if isinstance(value, str) else repr(value)


IS_PARTITIONED = text_query(int, "select count(*) as yes from pg_class where oid = to_regclass(:name) and relkind = 'p'", "yes")

LIST_PARTITIONS = text_query(
    CatalogueEntry,
    "select c.relname::text as name, pg_get_expr(c.relpartbound, c.oid) as text from pg_inherits i"
    " join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass(:name)",
)

TABLE_OWNER = text_query(
    TableOwner,
    "select quote_ident(rolname) as role, (rolname = current_user)::int as is_self from pg_roles"
    " where oid = (select relowner from pg_class where oid = to_regclass(:name))",
)

PARTITION_RANGE = re.compile(r"FROM \('?([^')]+)'?\) TO \('?([^')]+)'?\)")


def is_partitioned(connection: Connection, *, history: History) -> bool:
    """Whether the table is divided; never on SQLite."""
    if connection.dialect_name != "postgresql":
        return False
    return connection.first(IS_PARTITIONED, name=history.name) == 1


def partitions_of(connection: Connection, *, history: History) -> list[Partition]:
    """Its partitions but the default one, the oldest first."""
    found = list[Partition]()
    for name, text in connection.all(LIST_PARTITIONS, name=history.name):
        bounds = PARTITION_RANGE.search(text)
        if bounds is not None:
            lower = None if bounds[1] == "MINVALUE" else history.parse(bounds[1])
            found.append(Partition(name, lower, history.parse(bounds[2])))
    return sorted(found, key=lambda each: history.moment(each.upper))


def month_start(at: float, months: int = 0) -> float:
    """The first moment (UTC) of the month that is so many after that of `at`. Unix seconds."""
    day = datetime.fromtimestamp(at, UTC)
    month = day.year * 12 + day.month - 1 + months
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()


def wait_briefly(connection: Connection) -> None:
    """From here on this transaction gives up on a table that somebody uses for longer."""
    run_sql(connection, f"set local lock_timeout = '{PARTITION_LOCK_MS}ms'")


def lock_as_owner(connection: Connection, history: History) -> None:
    """For this transaction nobody else uses the table, and what is made belongs to its owner."""
    wait_briefly(connection)
    for role, is_self in connection.all(TABLE_OWNER, name=history.name):
        if not is_self:
            run_sql(connection, f"set local role {role}")
    run_sql(connection, f"lock table {history.name} in access exclusive mode")


def default_partition_name(history: History) -> str:
    return f"{history.name}_default"


def first_partition_name(history: History) -> str:
    return f"{history.name}_first"


def add_rules(connection: Connection, history: History, name: str) -> None:
    """Give a new partition its own rules, and the rights of the whole: workers look into single partitions."""
    copy_rights(connection, source=history.name, target=name)
    run_sql(connection, f"alter table {name} add primary key ({history.primary_key})")
    if history.unique:
        run_sql(connection, f"alter table {name} add unique ({history.unique})")


def copy_rights(connection: Connection, *, source: str, target: str) -> None:
    """Whoever may do something with a table may do it with the other one, and nobody else, whatever rights new tables are given."""
    run_sql(
        connection,
        f"""do $$ declare granted record; begin
        for granted in select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as role
            from pg_class, aclexplode(relacl) where oid = '{target}'::regclass
        loop execute format('revoke all on {target} from %s', granted.role); end loop;
        for granted in select privilege_type || columns as privilege, case when is_grantable then ' with grant option' else '' end as more,
            case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as role
            from (select '' as columns, relacl as rights from pg_class where oid = '{source}'::regclass union all
            select format(' (%I)', attname), attacl from pg_attribute where attrelid = '{source}'::regclass) held, aclexplode(rights)
        loop execute format('grant %s on {target} to %s', granted.privilege, granted.role || granted.more); end loop; end $$""",
    )


def add_partition(connection: Connection, *, history: History, now: float) -> bool:
    """Make the next partition, unless there are two whole months ahead; whether it was made. `now`: Unix seconds.

    The whole is locked first: who waited for a part of it would go on with the partitions that it had planned for.
    """
    lower = partitions_of(connection, history=history)[-1].upper
    begin, limit = history.moment(lower), month_start(now, 1 + MONTHS_AHEAD)
    if begin >= limit:
        return False
    lock_as_owner(connection, history)
    upper, name = history.first(month_start(begin, 1)), f"{history.name}_{datetime.fromtimestamp(begin, UTC):%Y_%m}"
    if any_row(connection, f"select 1 from {default_partition_name(history)} where {history.column} < {bound_literal(upper)}"):
        upper = free_default(connection, history, name, history.first(limit))
    else:
        run_sql(connection, f"create table {name} (like {history.name} including all)")
        add_rules(connection, history, name)
    run_sql(
        connection,
        f"alter table {history.name} attach partition {name} for values from ({bound_literal(lower)}) to ({bound_literal(upper)})",
    )
    return True


def free_default(connection: Connection, history: History, name: str, limit: PartitionBound) -> PartitionBound:
    """Make a partition with this name of the default one and its rows, and an empty default one; where it ends, which is `limit` at most.

    Choice: the rows of all its months stay in one partition. A read that waited sees what was there when it began: it would find rows
    neither where they were nor where they had been moved to. Rows from after `limit`, of a wrong clock, are moved: StoreUnavailable if
    they are very many.
    """
    default, late = default_partition_name(history), f"{history.column} >= {bound_literal(limit)}"
    newest = newest_of(connection, history, default)
    is_late = not is_lower_bound(newest, limit)
    if is_late and any_row(connection, f"select 1 from {default} where {late} offset {MOST_MOVED}"):
        raise StoreUnavailable(f"{default} has more than {MOST_MOVED} rows from {limit} on, of a clock that was wrong")
    run_sql(connection, f"alter table {history.name} detach partition {default}")
    run_sql(connection, f"alter table {default} rename to {name}")
    add_default(connection, history)
    if is_late:
        run_sql(connection, f"with moved as (delete from {name} where {late} returning *) insert into {default} select * from moved")
        newest = newest_of(connection, history, name)
    return history.first(month_start(history.moment(newest), 1))


def newest_of(connection: Connection, history: History, name: str) -> PartitionBound:
    """The largest value of a table that has rows."""
    text = f"select {history.column} as value from {name} order by {history.column} desc limit 1"
    return cast("PartitionBound", connection.all(Query(object, sql_text(text).columns(sa.column("value"))))[0])


def add_default(connection: Connection, history: History) -> None:
    """Make an empty default partition."""
    run_sql(connection, f"create table {default_partition_name(history)} partition of {history.name} default")
    add_rules(connection, history, default_partition_name(history))


def gather_statistics(connection: Connection, *, history: History) -> None:
    """Have PostgreSQL look at a divided table as a whole, which it does not by itself; nobody waits for it."""
    run_sql(connection, f"analyze {history.name}")


def rows_in_default(connection: Connection, *, history: History, most: int) -> int:
    """How many rows came for which there was no partition, up to `most`."""
    text = f"select count(*) as rows from (select 1 from {default_partition_name(history)} limit {most}) as found"
    return connection.first(Query(int, sql_text(text).columns(sa.column("rows", sa.Integer)))) or 0


def rows_kept_from(connection: Connection, *, history: History, before: float) -> float:
    """From which moment on rows are kept, if those before `before` may go: a month is kept until all of it is old. Unix seconds.

    The first partition has no beginning: its rows go in steps, as those of a whole table.
    """
    if not is_partitioned(connection, history=history):
        return before
    limit = history.first(before)
    for each in partitions_of(connection, history=history):
        if each.lower is not None and not is_lower_bound(limit, each.lower) and is_lower_bound(limit, each.upper):
            return history.moment(each.lower)
    return before


def is_lower_bound(one: PartitionBound, other: PartitionBound) -> bool:
    """Whether a bound is before another one of the same table."""
    return str(one) < str(other) if isinstance(one, str) else float(one) < float(other)


def drop_old_partitions(connection: Connection, *, history: History, before: float, unless: str = "") -> bool:
    """Drop the partitions whose rows are all from before then (Unix seconds); whether there were any.

    An empty one takes their place, for rows that come late. `unless`: the query of rows that keep them, with `{upper}` for their end.
    """
    if not is_partitioned(connection, history=history):
        return False
    limit = history.first(before)
    old = [each for each in partitions_of(connection, history=history) if not is_lower_bound(limit, each.upper)]
    if not old or (len(old) == 1 and not any_row(connection, f"select 1 from {old[0].name}")):
        return False
    upper = bound_literal(old[-1].upper)
    if unless and any_row(connection, unless.format(upper=upper)):
        return False
    lock_as_owner(connection, history)
    if unless and any_row(connection, unless.format(upper=upper)):  # it came while the table was still everybody's
        return False
    for each in old:
        run_sql(connection, f"drop table {each.name}")
    run_sql(connection, f"create table {first_partition_name(history)} partition of {history.name} for values from (minvalue) to ({upper})")
    add_rules(connection, history, first_partition_name(history))
    return True


def any_row(connection: Connection, text: str) -> bool:
    """Whether the query finds something."""
    counted = sql_text(f"select count(*) as yes from ({text} limit 1) as found").columns(sa.column("yes", sa.Integer))
    return connection.first(Query(int, counted)) == 1
