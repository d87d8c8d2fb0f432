"""How far rows of a table were copied, in steps, to a small table before theirs is partitioned (partition_switch.py)."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.connection import Connection
from storage.named import Named
from storage.statement import Command, Query, table


class CopiedRowsTable(Named, table=True):
    """The rows of a table that are copied: all up to the id `last`."""

    name: str = Field(primary_key=True, sa_type=sa.Text)
    last: str = Field(sa_type=sa.Text)


class LastCopied(NamedTuple):
    """The id of the last row that is copied."""

    last: str


COPIED = table(CopiedRowsTable)
FIND = Query(LastCopied, sa.select(COPIED.c.last).where(COPIED.c.name == sa.bindparam("table")))
NOTE = Command(
    lambda dialect: (
        dialect.insert(COPIED)
        .values(name=sa.bindparam("table"), last=sa.bindparam("last"))
        .on_conflict_do_update(index_elements=["name"], set_={"last": sa.bindparam("last")})
    )
)


def last_copied(connection: Connection, *, table: str) -> str:
    """The id of the last row that is copied; nothing where none is."""
    found = connection.first(FIND, table=table)
    return "" if found is None else found.last


def note_copied(connection: Connection, *, table: str, last: str) -> None:
    """The rows up to this one are copied."""
    connection.run(NOTE, table=table, last=last)
