"""A small ledger for the tests of the engine: named counters in the `change` table."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Command, Connection, Query
from storage.organisations import ChangeTable

CHANGE_TABLE = ChangeTable.table


class ChangeCount(NamedTuple):
    name: str
    value: int


class Total(NamedTuple):
    total: int


INSERT = Command(sa.insert(CHANGE_TABLE))
INSERT_IF_NEW = Command(lambda dialect: dialect.insert(CHANGE_TABLE).on_conflict_do_nothing())
BY_NAME = Query(ChangeCount, sa.select(CHANGE_TABLE.c.name, CHANGE_TABLE.c.value).where(CHANGE_TABLE.c.name == sa.bindparam("name")))
ALL = Query(ChangeCount, sa.select(CHANGE_TABLE.c.name, CHANGE_TABLE.c.value).order_by(CHANGE_TABLE.c.name))
SUM = Query(Total, sa.select(sa.func.sum(CHANGE_TABLE.c.value).label("total")))
BUMP = Query(
    ChangeCount,
    sa.update(CHANGE_TABLE)
    .where(CHANGE_TABLE.c.name == sa.bindparam("key"), CHANGE_TABLE.c.value <= sa.bindparam("limit") - sa.bindparam("step"))
    .values(value=CHANGE_TABLE.c.value + sa.bindparam("step"))
    .returning(CHANGE_TABLE.c.name, CHANGE_TABLE.c.value),
)


def insert(connection: Connection, name: str, value: int = 0) -> int:
    return connection.run(INSERT, name=name, value=value)


def insert_many(connection: Connection, *names: str) -> int:
    return connection.run_many(INSERT, [{"name": name, "value": 1} for name in names])


def insert_then_fail(connection: Connection, name: str) -> None:
    insert(connection, name)
    raise LookupError(name)


def bump(connection: Connection, key: str, *, limit: int = 1_000_000, step: int = 1) -> int | None:
    row = connection.first(BUMP, key=key, limit=limit, step=step)
    return None if row is None else row.value


def value_of(connection: Connection, name: str) -> int | None:
    row = connection.first(BY_NAME, name=name)
    return None if row is None else row.value


def names(connection: Connection) -> list[str]:
    return [row.name for row in connection.all(ALL)]


def total_count(connection: Connection) -> int:
    row = connection.first(SUM)
    assert row is not None
    return row.total
