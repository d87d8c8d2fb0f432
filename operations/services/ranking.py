"""A ranking of a whole fleet: made once and kept for a minute, so that its pages show one state."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from operations.deps import Ctx
from operations.services.passing import after
from operations.services.reached import Upstream

T = TypeVar("T")
Rows = Annotated[int, Field(ge=1, le=500, description="Lines per page, 1-500.")]
PageCursor = Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")]


async def kept_ranking(
    upstream: Upstream, key: tuple[object, ...], load: Callable[[], Awaitable[T]], *, whole: Callable[[T], bool], cursor: str | None
) -> T:
    """The ranking of a minute. One that misses lines is for its further pages alone: whoever asks for the first again has it go on."""
    made = False

    async def make() -> T:
        nonlocal made
        made = True
        return await load()

    place = (upstream.identity, upstream.account_id, *key)  # an organisation may be connected to another account
    found = await upstream.reads.get(place, make)
    if made or cursor is not None or whole(found):
        return found
    upstream.reads.forget(*place)
    return await upstream.reads.get(place, make)


def page_of(ctx: Ctx, rows: Sequence[T], limit: int, cursor: str | None) -> list[T]:
    """Some of the rows, and in the answer's head where the next ones begin."""
    start = after(range(1, len(rows) + 1), cursor)
    if start + limit < len(rows):
        ctx.next_cursor = str(start + limit)
        ctx.note = f"{limit} of {len(rows)}."
    return list(rows[start : start + limit])
