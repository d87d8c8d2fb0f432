"""Notes: the smallest thing a test operation can write. A counter row each, so that no table exists for tests alone."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from pydantic import Field
from typing_extensions import TypedDict

from registry.free_text import FreeText
from storage.engine.sql import Connection, Query
from storage.organisations import ChangeTable

CHANGE = ChangeTable.table


class Row(NamedTuple):
    name: str
    value: int


ALL = Query(Row, sa.select(CHANGE.c.name, CHANGE.c.value).where(CHANGE.c.name.like("note:%")).order_by(CHANGE.c.name))
ADD = Query(
    Row,
    lambda dialect: (
        dialect.insert(CHANGE)
        .values(name=sa.bindparam("name"), value=1)
        .on_conflict_do_update(index_elements=["name"], set_={"value": CHANGE.c.value + 1})
        .returning(CHANGE.c.name, CHANGE.c.value)
    ),
)


def add_note_row(connection: Connection, *, name: str) -> "Note":
    row = connection.first(ADD, name=f"note:{name}")
    assert row is not None
    return {"name": name, "writes": row.value}


def every_note(connection: Connection) -> list[Row]:
    return connection.all(ALL)


Name = Annotated[str, Field(min_length=1, max_length=100, description="Name of the note, 1-100 characters.")]


class Note(TypedDict):
    name: FreeText
    writes: int
