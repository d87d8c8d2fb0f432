"""Notes on lines: an append-only history and one text, both an organisation's own."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, first_row, insert_once, upsert, writes


class NoteRow(NamedTuple):
    id: Key
    note: str
    author: str | None
    created: BigInt


class SubscriberNoteTable(TableDescription, row=NoteRow, table=True):
    """One entry of an organisation's support history of a line; append-only."""

    organisation: str
    iccid: str
    __table_args__ = (sa.Index("subscriber_note_line", "organisation", "iccid", "id"),)


class SubscriberNotesTable(TableDescription, table=True):
    """An organisation's one text about a line."""

    organisation: str = Field(primary_key=True)
    iccid: str = Field(primary_key=True)
    notes: str
    updated: BigInt


SUBSCRIBER_NOTE = SubscriberNoteTable.table

SUBSCRIBER_NOTES = SubscriberNotesTable.table

MOST_NOTES_SHOWN = 100


class LineNotes(NamedTuple):
    """Everything an organisation wrote about a line; the history newest first."""

    notes: str
    history: Sequence[NoteRow]


NOTE_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(SUBSCRIBER_NOTE.c[name] for name in NoteRow._fields)

LIST_NEWEST_NOTES = Query(
    NoteRow,
    sa.select(*NOTE_COLUMNS)
    .where(SUBSCRIBER_NOTE.c.organisation == sa.bindparam("organisation"), SUBSCRIBER_NOTE.c.iccid == sa.bindparam("iccid"))
    .order_by(SUBSCRIBER_NOTE.c.id.desc())
    .limit(MOST_NOTES_SHOWN),
)

PUT_NOTES = Command(upsert(SUBSCRIBER_NOTES, SUBSCRIBER_NOTES.c.keys(), key=["organisation", "iccid"]))

NOTES_OF_LINE = (SUBSCRIBER_NOTES.c.organisation == sa.bindparam("organisation")) & (SUBSCRIBER_NOTES.c.iccid == sa.bindparam("iccid"))

CLEAR_NOTES = Command(lambda _: sa.delete(SUBSCRIBER_NOTES).where(NOTES_OF_LINE))

FIND_NOTES = Query(str, lambda _: sa.select(SUBSCRIBER_NOTES.c.notes).where(NOTES_OF_LINE))

PLACE_FOR_NOTES = Command(insert_once(SUBSCRIBER_NOTES, SUBSCRIBER_NOTES.c.keys(), key=["organisation", "iccid"]))


class NotesState(NamedTuple):
    """The one text about a line, and when it was set, Unix seconds."""

    notes: str
    updated: int


@first_row(NotesState)
def find_notes_state(*, organisation: str, iccid: str) -> sa.Executable:
    """The one text; None where it was never set, or cleared."""
    return sa.select(SUBSCRIBER_NOTES.c.notes, SUBSCRIBER_NOTES.c.updated).where(NOTES_OF_LINE)


@first_row(NotesState)
def hold_notes_row(*, organisation: str, iccid: str) -> sa.Executable:
    return sa.select(SUBSCRIBER_NOTES.c.notes, SUBSCRIBER_NOTES.c.updated).where(NOTES_OF_LINE).with_for_update()


def hold_notes(connection: Connection, *, organisation: str, iccid: str) -> NotesState | None:
    """The one text, for a transaction that goes on to set it: nobody else does so meanwhile, also where there is none yet."""
    connection.run(PLACE_FOR_NOTES, organisation=organisation, iccid=iccid, notes="", updated=0)
    found = hold_notes_row(connection, organisation=organisation, iccid=iccid)
    return found if found is not None and found.notes else None


@writes
def add_note(*, organisation: str, iccid: str, row: NoteRow) -> sa.Executable:
    """Append `row` to the history of a line."""
    return sa.insert(SUBSCRIBER_NOTE).values(organisation=organisation, iccid=iccid, **row._asdict())


def put_notes(connection: Connection, *, organisation: str, iccid: str, notes: str, now: float) -> None:
    """Replace the one text of a line; an empty one deletes it. `now`: Unix seconds."""
    if notes:
        connection.run(PUT_NOTES, organisation=organisation, iccid=iccid, notes=notes, updated=int(now))
    else:
        connection.run(CLEAR_NOTES, organisation=organisation, iccid=iccid)


def read_notes(connection: Connection, *, organisation: str, iccid: str) -> LineNotes:
    """The text, and the newest 100 entries of the history; older ones are stored and not shown."""
    blob = connection.first(FIND_NOTES, organisation=organisation, iccid=iccid)
    history = connection.all(LIST_NEWEST_NOTES, organisation=organisation, iccid=iccid)
    return LineNotes(blob or "", history)
