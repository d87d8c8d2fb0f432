"""A ranking of a whole fleet, page by page; kept_finding.py keeps what it is made of."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from operations.deps import Ctx
from operations.services.network.passing import after

T = TypeVar("T")
Rows = Annotated[int, Field(ge=1, le=500, description="Lines per page, 1-500.")]
PageCursor = Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")]


def page_of(ctx: Ctx, rows: Sequence[T], limit: int, cursor: str | None) -> list[T]:
    """Some of the rows, and in the answer's head where the next ones begin."""
    start = after(range(1, len(rows) + 1), cursor)
    if start + limit < len(rows):
        ctx.next_cursor = str(start + limit)
        ctx.note = f"{limit} of {len(rows)}."
    return list(rows[start : start + limit])
