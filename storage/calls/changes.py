"""Change counters: a cache is good while its counter stands still."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import ChangeTable
from storage.statement import Command, Query, table

CHANGE = table(ChangeTable)
CALLERS = "callers"


class Counter(NamedTuple):
    """How often something changed."""

    value: int


READ = Query(Counter, sa.select(CHANGE.c.value).where(CHANGE.c.name == sa.bindparam("name")))
BUMP = Command(
    lambda dialect: (
        dialect.insert(CHANGE)
        .values(name=sa.bindparam("name"), value=1)
        .on_conflict_do_update(index_elements=["name"], set_={"value": CHANGE.c.value + 1})
    )
)


def read_counter(connection: Connection, *, name: str) -> int:
    """The counter's value; 0 before the first change."""
    row = connection.first(READ, name=name)
    return row.value if row else 0


def bump(connection: Connection, *, name: str) -> None:
    """Say that something a cache may hold has changed; in the transaction of the change."""
    connection.run(BUMP, name=name)
