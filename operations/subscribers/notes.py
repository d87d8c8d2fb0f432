"""Notes on lines. They are ours: nothing of them reaches the charging system, and no connection to it is needed."""

from typing import Annotated

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import own_line_of_account
from operations.vocabulary import Iccid
from registry.errors import OcsError
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, operation
from registry.policy import stamp
from storage.network.notes import NoteRow, add_note, put_notes, read_notes

ICCID = "8988303700000100286"


class NotesOf(Input):
    """Which line."""

    iccid: Iccid


class NewNote(NotesOf):
    """One entry of the history."""

    note: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000), Field(description="1-4000 characters after trim.")
    ]
    author: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] | None,
        Field(description="Who says so, at most 200 characters."),
    ] = None


class NewNotes(NotesOf):
    """The one text."""

    notes: Annotated[str, Field(max_length=4000, description="At most 4000 characters; empty clears it.")]


class SubscriberNote(TypedDict):
    """One entry of the history."""

    id: str
    note: str
    author: str | None
    created: str


class NotesText(TypedDict):
    """The one text."""

    notes: str


class SubscriberNotes(NotesText):
    """The one text, and the history: newest first, at most 100."""

    data: list[SubscriberNote]


class SubscriberNoteAdded(TypedDict):
    """The new entry."""

    data: SubscriberNote


EXAMPLE: SubscriberNote = {
    "id": "not_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "note": "Customer moved to a new phone; profile installed again.",
    "author": "Mia",
    "created": "2026-11-20T09:00:00Z",
}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/notes",
    access=own_line_of_account,
    raises=[OcsError],
    title="Get notes of a line",
    examples=[Example("What do we know about this line?", {"iccid": ICCID}, {"notes": "VIP: call before changes.", "data": [EXAMPLE]})],
)
async def get_subscriber_notes(ctx: Ctx, params: NotesOf, seen: None) -> SubscriberNotes:
    """Get what your organisation wrote about a line.

    `notes` is one text, empty when unset; `data` is the history, newest first, at most 100 entries.

    Only your organisation sees them. A line nobody wrote about has an empty text and no history: the line itself is not looked up.
    """
    found = await ctx.deps.store.read(read_notes, organisation=ctx.organisation, iccid=params.iccid)
    return {"notes": found.notes, "data": [shown(row) for row in found.history]}


@operation(
    "POST",
    "/v1/subscribers/{iccid}/notes",
    access=own_line_of_account,
    raises=[OcsError],
    scope=Scope.WRITE,
    status=201,
    title="Add a note to a line",
    examples=[Example("Remember a call", {"iccid": ICCID, "note": EXAMPLE["note"], "author": EXAMPLE["author"]}, {"data": EXAMPLE})],
)
async def add_subscriber_note(ctx: Ctx, params: NewNote, seen: None) -> SubscriberNoteAdded:
    """Append an entry to the support history of a line.

    Entries stay as they are; `notes`, the one text, is not changed.
    """
    row = NoteRow(ctx.deps.ids.new("not_"), params.note, params.author, int(ctx.now))
    added: SubscriberNoteAdded = {"data": shown(row)}
    return await ctx.settle(added, add_note, organisation=ctx.organisation, iccid=params.iccid, row=row)


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/notes",
    access=own_line_of_account,
    raises=[OcsError],
    scope=Scope.WRITE,
    title="Set the text of a line",
    examples=[
        Example("Pin a text to a line", {"iccid": ICCID, "notes": "VIP: call before changes."}, {"notes": "VIP: call before changes."}),
        Example("Clear it", {"iccid": ICCID, "notes": ""}, {"notes": ""}),
    ],
)
async def put_subscriber_notes(ctx: Ctx, params: NewNotes, seen: None) -> NotesText:
    """Replace the one text about a line; the history is not changed.

    An empty text clears it. The text before is not kept.
    """
    text: NotesText = {"notes": params.notes}
    return await ctx.settle(text, put_notes, organisation=ctx.organisation, iccid=params.iccid, notes=params.notes, now=ctx.now)


def shown(row: NoteRow) -> SubscriberNote:
    """An entry as it is answered."""
    return {"id": row.id, "note": row.note, "author": row.author, "created": stamp(row.created)}
