"""Notes on lines: an append-only history and one text, both an organisation's own."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import SubscriberNotesTable, SubscriberNoteTable
from storage.statement import Command, Query, table

NOTE, BLOB = table(SubscriberNoteTable), table(SubscriberNotesTable)
MOST_SHOWN = 100


class NoteRow(NamedTuple):
    """One entry of the history."""

    id: str
    note: str
    author: str | None
    created: int


class Blob(NamedTuple):
    """The one text."""

    notes: str


class Notes(NamedTuple):
    """Everything an organisation wrote about a line; the history newest first."""

    notes: str
    history: Sequence[NoteRow]


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(NOTE.c[name] for name in NoteRow._fields)
INSERT = Command(sa.insert(NOTE).values({name: sa.bindparam(name) for name in (*NoteRow._fields, "organisation", "iccid")}))
NEWEST = Query(
    NoteRow,
    sa.select(*COLUMNS)
    .where(NOTE.c.organisation == sa.bindparam("organisation"), NOTE.c.iccid == sa.bindparam("iccid"))
    .order_by(NOTE.c.id.desc())
    .limit(MOST_SHOWN),
)
PUT = Command(
    lambda dialect: (
        dialect.insert(BLOB)
        .values({name: sa.bindparam(name) for name in ("organisation", "iccid", "notes", "updated")})
        .on_conflict_do_update(index_elements=["organisation", "iccid"], set_={name: sa.bindparam(name) for name in ("notes", "updated")})
    )
)
CLEAR = Command(sa.delete(BLOB).where(BLOB.c.organisation == sa.bindparam("organisation"), BLOB.c.iccid == sa.bindparam("iccid")))
FIND = Query(
    Blob, sa.select(BLOB.c.notes).where(BLOB.c.organisation == sa.bindparam("organisation"), BLOB.c.iccid == sa.bindparam("iccid"))
)


def add_note(connection: Connection, *, organisation: str, iccid: str, row: NoteRow) -> None:
    """Append to the history."""
    connection.run(INSERT, organisation=organisation, iccid=iccid, **row._asdict())


def put_notes(connection: Connection, *, organisation: str, iccid: str, notes: str, now: float) -> None:
    """Replace the one text; an empty one leaves nothing behind."""
    if notes:
        connection.run(PUT, organisation=organisation, iccid=iccid, notes=notes, updated=int(now))
    else:
        connection.run(CLEAR, organisation=organisation, iccid=iccid)


def read_notes(connection: Connection, *, organisation: str, iccid: str) -> Notes:
    """The text, and the newest of the history. Older entries are kept and not shown."""
    blob = connection.first(FIND, organisation=organisation, iccid=iccid)
    history = connection.all(NEWEST, organisation=organisation, iccid=iccid)
    return Notes("" if blob is None else blob.notes, history)
