"""Notes on lines. They are ours: nothing of them reaches the charging system, and no connection to it is needed."""

from typing import Annotated

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.upstream.lines import HasIccid, LineRef, own_line, require_tags
from registry.clock import rfc3339_utc
from registry.errors import OcsError
from registry.free_text import FreeText
from registry.operation import Example, Scope, SpendKind, operation
from registry.versions import ObjectVersion, Versioned
from storage.engine.sql import Connection
from storage.notes import NoteRow, add_note, find_notes_state, hold_notes, put_notes, read_notes


async def note_access(ctx: Ctx, params: HasIccid) -> None:
    """The access rule of notes. Only a credential for certain accounts needs to know the account of the line; tags are ours, too."""
    await require_tags(ctx, params.iccid)
    if ctx.caller.restrictions.account_ids is None:
        return
    if ctx.caller.connection is None:
        ctx.of_account(None)
    await own_line(ctx, params)


NOTE_EXAMPLE_ICCID = "8988303700000100286"


class NewNote(LineRef):
    """One entry of the history."""

    note: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000), Field(description="1-4000 characters after trim.")
    ]
    author: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] | None,
        Field(description="Who says so, at most 200 characters."),
    ] = None


class NotesChange(LineRef):
    """The one text."""

    notes: Annotated[str, Field(max_length=4000, description="At most 4000 characters; empty clears it.")]


class SubscriberNote(TypedDict):
    """One entry of the history."""

    id: str
    note: FreeText
    author: FreeText | None
    created: str


class NotesText(TypedDict):
    """The one text."""

    notes: FreeText


class SubscriberNotes(NotesText):
    """The one text, and the history: newest first, at most 100."""

    data: list[SubscriberNote]


class SubscriberNoteAdded(TypedDict):
    """The new entry."""

    data: SubscriberNote


NOTE_EXAMPLE: SubscriberNote = {
    "id": "not_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "note": "Customer moved to a new phone; profile installed again.",
    "author": "Mia",
    "created": "2026-11-20T09:00:00Z",
}


def read_notes_version(connection: Connection, ctx: Ctx, params: LineRef, hold: bool) -> ObjectVersion:
    """The version of the one text. Choice: a call without a condition holds nothing before it writes, and so waits for nobody."""
    find = hold_notes if hold and ctx.call.if_match is not None else find_notes_state
    found = find(connection, organisation=ctx.organisation, iccid=params.iccid)
    return ObjectVersion([params.iccid, ""]) if found is None else ObjectVersion([params.iccid, found.notes], found.updated)


NOTES_VERSION = Versioned("text", read_notes_version, "get_subscriber_notes", ("put_subscriber_notes",))


@operation(
    "GET",
    "/v1/subscribers/{iccid}/notes",
    versioned=NOTES_VERSION,
    access=note_access,
    raises=[OcsError],
    title="Get notes of a line",
    examples=[
        Example(
            "What do we know about this line?",
            {"iccid": NOTE_EXAMPLE_ICCID},
            {"notes": "VIP: call before changes.", "data": [NOTE_EXAMPLE]},
        )
    ],
)
async def get_subscriber_notes(ctx: Ctx, params: LineRef, seen: None) -> SubscriberNotes:
    """Get what your organisation wrote about a line.

    `notes` is one text, empty when unset; `data` is the history, newest first, at most 100 entries.

    Only your organisation sees them. A line nobody wrote about has an empty text and no history: the line itself is not looked up.
    """
    found = await ctx.deps.store.read(read_notes, organisation=ctx.organisation, iccid=params.iccid)
    return {"notes": found.notes, "data": [render_note(row) for row in found.history]}


@operation(
    "POST",
    "/v1/subscribers/{iccid}/notes",
    spends=SpendKind.NOTHING,
    access=note_access,
    raises=[OcsError],
    scope=Scope.WRITE,
    status=201,
    title="Add a note to a line",
    examples=[
        Example(
            "Remember a call",
            {"iccid": NOTE_EXAMPLE_ICCID, "note": NOTE_EXAMPLE["note"], "author": NOTE_EXAMPLE["author"]},
            {"data": NOTE_EXAMPLE},
        )
    ],
)
async def add_subscriber_note(ctx: Ctx, params: NewNote, seen: None) -> SubscriberNoteAdded:
    """Append an entry to the support history of a line.

    Entries stay as they are; `notes`, the one text, is not changed.
    """
    row = NoteRow(ctx.deps.ids.new("not_"), params.note, params.author, int(ctx.now))
    added: SubscriberNoteAdded = {"data": render_note(row)}
    return await ctx.settle(added, add_note, organisation=ctx.organisation, iccid=params.iccid, row=row)


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/notes",
    spends=SpendKind.NOTHING,
    access=note_access,
    raises=[OcsError],
    scope=Scope.WRITE,
    versioned=NOTES_VERSION,
    title="Set the text of a line",
    examples=[
        Example(
            "Pin a text to a line",
            {"iccid": NOTE_EXAMPLE_ICCID, "notes": "VIP: call before changes."},
            {"notes": "VIP: call before changes."},
        ),
        Example("Clear it", {"iccid": NOTE_EXAMPLE_ICCID, "notes": ""}, {"notes": ""}),
    ],
)
async def put_subscriber_notes(ctx: Ctx, params: NotesChange, seen: None) -> NotesText:
    """Replace the one text about a line; the history is not changed.

    An empty text clears it. The text before is not kept.
    """
    text: NotesText = {"notes": params.notes}
    return await ctx.settle(text, put_notes, organisation=ctx.organisation, iccid=params.iccid, notes=params.notes, now=ctx.now)


def render_note(row: NoteRow) -> SubscriberNote:
    return {"id": row.id, "note": row.note, "author": row.author, "created": rfc3339_utc(row.created)}
