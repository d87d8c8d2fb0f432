"""Operations that exist for the tests of the MCP door: the toolset that plain /mcp shows."""

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.vocabulary import ListOf, PageLimit, StartingAfter, list_page
from registry.errors import NotFound
from registry.free_text import FreeText
from registry.operation import Document, Example, Input, Nothing, Once, Scope, operation
from tests.note_rows import Name, Note, add_note_row, every_note


class NoteRef(Input):
    name: Name


class NewNote(Input):
    name: Name
    tags: list[str] = Field([], description="Labels.")
    megabytes: int | None = Field(None, ge=1, description="Megabytes, at least 1.")


class NoteList(Input):
    limit: PageLimit = 10
    starting_after: StartingAfter = None


class Steps(Input):
    steps: int = Field(3, ge=1, le=9, description="How many steps, 1-9.")


class Plan(TypedDict):
    id: str
    note: FreeText | None


class HandlerGate:
    """Lets a test hold a handler and see how it ended."""

    def __init__(self) -> None:
        self.entered, self.open, self.ended = anyio.Event(), anyio.Event(), ""

    async def pass_through(self) -> None:
        self.entered.set()
        try:
            await self.open.wait()
            self.ended = "finished"
        except anyio.get_cancelled_exc_class():
            self.ended = "cancelled"
            raise


HANDLER_GATES: list[HandlerGate] = []


@operation("GET", "/v1/notes/{name}", examples=[Example("The first note", {"name": "first"})])
async def get_note(ctx: Ctx, params: NoteRef) -> Note:
    """Read one note.

    Use list_notes to find
    its name.

    Only the reference shows this.
    """
    rows = {row.name[5:]: row.value for row in await ctx.deps.store.read(every_note)}
    if params.name not in rows:
        raise NotFound("There is no such note", hint="list_notes shows those that are there")
    return {"name": params.name, "writes": rows[params.name]}


@operation("GET", "/v1/notes")
async def list_notes(ctx: Ctx, params: NoteList) -> ListOf[Note]:
    """List notes."""
    rows = [Note(name=row.name[5:], writes=row.value) for row in await ctx.deps.store.read(every_note)]
    rest = [row for row in rows if row["name"] > (params.starting_after or "")]
    if len(rest) > params.limit:
        ctx.next_cursor = rest[params.limit - 1]["name"]
    return list_page(rest, params.limit)


@operation("GET", "/v1/short-notes", tool_defaults={"limit": 3})
async def list_short_notes(ctx: Ctx, params: NoteList) -> ListOf[Note]:
    """List notes, three at a time."""
    return await list_notes.handler(ctx, params)


@operation("POST", "/v1/notes", scope=Scope.ANY, status=201)
async def create_note(ctx: Ctx, params: NewNote) -> Note:
    """Write a note."""
    return await ctx.settle_result(add_note_row, name=params.name)


@operation("POST", "/v1/copies", scope=Scope.ANY, once=Once(required=True))
async def copy_note(ctx: Ctx, params: NewNote) -> Note:
    """Write a note once per key."""
    return await ctx.settle_result(add_note_row, name=params.name)


@operation("PUT", "/v1/notes/{name}", scope=Scope.WRITE)
async def put_note(ctx: Ctx, params: NoteRef) -> Note:
    """Replace a note."""
    return await ctx.settle_result(add_note_row, name=params.name)


@operation("DELETE", "/v1/notes/{name}", scope=Scope.WRITE, confirm=True)
async def delete_note(ctx: Ctx, params: NoteRef) -> Note:
    """Remove a note for good."""
    return await ctx.settle_result(add_note_row, name=params.name)


@operation("GET", "/v1/names")
async def list_names(ctx: Ctx, params: Nothing) -> list[FreeText]:
    """List only the names of notes."""
    del params
    return [row.name[5:] for row in await ctx.deps.store.read(every_note)]


@operation("GET", "/v1/count")
async def count_slowly(ctx: Ctx, params: Steps) -> Note:
    """Count, and tell how far it is."""
    for step in range(params.steps):
        await ctx.progress(step + 1, params.steps, f"step {step + 1}")
    return {"name": "count", "writes": params.steps}


@operation("GET", "/v1/wait")
async def wait_for_it(ctx: Ctx, params: Nothing) -> Note:
    """Wait until the test opens the gate."""
    del ctx, params
    await HANDLER_GATES[-1].pass_through()
    return {"name": "wait", "writes": 0}


@operation("POST", "/v1/orders", scope=Scope.WRITE, upstream=True, once=Once(required=True))
async def order_upstream(ctx: Ctx, params: NoteRef) -> Note:
    """Order from the provider."""
    await HANDLER_GATES[-1].pass_through()
    ctx.at_close(add_note_row, name=params.name)
    return {"name": params.name, "writes": 1}


@operation("GET", "/v1/hidden")
async def read_hidden(ctx: Ctx, params: Nothing) -> Note:
    """Answer with characters that a person does not see."""
    del ctx, params
    return {"name": "plain\u200b te\u202ext\x1b[31m\x07\nnext", "writes": 1}


@operation("GET", "/v1/broken")
async def break_down(ctx: Ctx, params: Nothing) -> Note:
    """Fail."""
    raise RuntimeError("no answer for ak_0123456789abcdef of somebody@example.com")


@operation("GET", "/v1/picture")
async def get_picture(ctx: Ctx, params: Nothing) -> Document:
    """Draw a picture."""
    del ctx, params
    return Document(b"<svg/>", "image/svg+xml")


class PlanList(Input):
    limit: PageLimit = 10


@operation("GET", "/v1/connectivity/plans")
async def list_connectivity_plans(ctx: Ctx, params: PlanList) -> ListOf[Plan]:
    """List plans."""
    del ctx
    return list_page([{"id": f"cnp_{number:03}", "note": None} for number in range(params.limit)], params.limit)


class IntentRef(Input):
    id: str = Field(description="Intent id.")


@operation("GET", "/v1/connectivity/intents/{id}")
async def get_connectivity_intent(ctx: Ctx, params: IntentRef) -> Plan:
    """Read an intent."""
    if params.id != f"cni_{ctx.organisation}":
        raise NotFound("There is no such intent")
    return {"id": params.id, "note": None}
