"""Operations that exist for the tests of the door."""

from collections.abc import AsyncGenerator

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.vocabulary import ListOf, PageLimit, StartingAfter, list_page
from registry.operation import Auth, Document, Input, Nothing, Once, Scope, StreamedAnswer, operation
from tests.note_rows import Name, Note, add_note_row, every_note


class NoteRef(Input):
    name: Name


class NewNote(Input):
    name: Name
    quantity_mb: float | None = Field(None, gt=0, le=1_000_000, description="Megabytes, above 0, at most 1000000.")
    tags: list[str] = Field([], description="Labels.")


class NoteList(Input):
    limit: PageLimit = 10
    starting_after: StartingAfter = None
    prefix: str = ""


class LineRef(Input):
    iccid: str


class KeyRef(Input):
    key: str


class UsageRef(LineRef):
    key: str


class Seen(TypedDict):
    route: str
    value: str


@operation("GET", "/v1/notes/{name}")
async def get_note(ctx: Ctx, params: NoteRef) -> Seen:
    """Read one note."""
    return {"route": ctx.call.operation.id, "value": params.name}


@operation("GET", "/v1/notes")
async def list_notes(ctx: Ctx, params: NoteList) -> ListOf[Note]:
    """List notes."""
    rows = [Note(name=row.name[5:], writes=row.value) for row in await ctx.deps.store.read(every_note)]
    rest = [row for row in rows if row["name"] > (params.starting_after or "") and row["name"].startswith(params.prefix)]
    if len(rest) > params.limit:
        ctx.next_cursor = rest[params.limit - 1]["name"]
    return list_page(rest, params.limit)


@operation("POST", "/v1/notes", scope=Scope.ANY, status=201)
async def create_note(ctx: Ctx, params: NewNote) -> Note:
    """Write a note."""
    return await ctx.settle_result(add_note_row, name=params.name)


@operation("DELETE", "/v1/notes/{name}", scope=Scope.WRITE, confirm=True)
async def delete_note(ctx: Ctx, params: NoteRef) -> Seen:
    """Remove a note."""
    return await ctx.settle({"route": ctx.call.operation.id, "value": params.name})


@operation(
    "POST", "/v1/subscribers/issue-from-inventory", scope=Scope.ANY, once=Once(required=True, forever=True, alias="X-Idempotency-Key")
)
async def issue(ctx: Ctx, params: Nothing) -> Seen:
    """Issue a line."""
    del params
    return await ctx.settle({"route": ctx.call.operation.id, "value": ctx.call.idempotency_key or ""})


@operation("GET", "/v1/subscribers/issue-from-inventory/{key}")
async def get_issuance(ctx: Ctx, params: KeyRef) -> Seen:
    """Read an issuance."""
    return {"route": ctx.call.operation.id, "value": params.key}


@operation("GET", "/v1/subscribers/{iccid}/{key}/usage")
async def get_usage(ctx: Ctx, params: UsageRef) -> Seen:
    """Read usage."""
    return {"route": ctx.call.operation.id, "value": f"{params.iccid} {params.key}"}


@operation("DELETE", "/v1/subscribers/{iccid}/packages", scope=Scope.WRITE)
async def remove_packages(ctx: Ctx, params: LineRef) -> Seen:
    """Remove packages."""
    return await ctx.settle({"route": ctx.call.operation.id, "value": params.iccid})


@operation("GET", "/v1/subscribers/{iccid}/packages")
async def list_packages(ctx: Ctx, params: LineRef) -> Seen:
    """List packages."""
    return {"route": ctx.call.operation.id, "value": params.iccid}


@operation("GET", "/v1/picture")
async def get_picture(ctx: Ctx, params: Nothing) -> Document:
    """Draw a picture."""
    del ctx, params
    return Document(b"<svg/>", "image/svg+xml", {"Cache-Control": "private, max-age=60", "Content-Disposition": "inline"})


@operation("GET", "/v1/broken")
async def break_down(ctx: Ctx, params: Nothing) -> Seen:
    """Fail."""
    raise RuntimeError("no answer for ak_0123456789abcdef of somebody@example.com")


@operation("GET", "/v1/misspelt")
async def misspell(ctx: Ctx, params: Nothing) -> Document:
    """Answer with a header that cannot be sent."""
    del ctx, params
    return Document(b"", "text/plain", {"X-Name": "\N{SNOWMAN}"})


@operation("GET", "/v1/split")
async def split_header(ctx: Ctx, params: Nothing) -> Document:
    """Answer with a header of two lines."""
    del ctx, params
    return Document(b"", "text/plain", {"X-Name": "a\r\nX-Other: b"})


@operation("GET", "/v1/large")
async def get_large(ctx: Ctx, params: Nothing) -> Document:
    """Answer with more than a socket takes."""
    del ctx, params
    return Document(b"x" * 8_000_000, "text/plain")


async def six_pieces() -> AsyncGenerator[bytes]:
    """Some 2 MB."""
    for _ in range(6):
        yield b" " * 350_000


@operation("GET", "/v1/streams")
async def get_stream(ctx: Ctx, params: Nothing) -> Seen | StreamedAnswer:
    """Answer in pieces, of which nobody knows how many there are."""
    del ctx, params
    return StreamedAnswer(six_pieces())


@operation("GET", "/v1/streams/known")
async def get_known_stream(ctx: Ctx, params: Nothing) -> Seen | StreamedAnswer:
    """Answer in pieces whose size is known."""
    del ctx, params
    return StreamedAnswer(six_pieces(), size=2_100_000)


@operation("POST", "/v1/large", scope=Scope.ANY)
async def write_large(ctx: Ctx, params: Nothing) -> list[str]:
    """Change something and answer with much."""
    del params
    return await ctx.settle(["x" * 2_000_000])


@operation("POST", "/v1/pushes", scope=Scope.NONE, auth=Auth.SIGNATURE, status=200)
async def take_push(ctx: Ctx, params: Nothing) -> Seen:
    """Take a signed push."""
    del params
    return await ctx.settle({"route": ctx.call.operation.id, "value": ctx.call.headers.get("x-signature", "")})
