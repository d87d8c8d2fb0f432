"""Operator answers: `{data}` around what the upstream said, lists in pages, members that were asked for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Generic, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.raw_array import RawArray
from operations.deps import Ctx
from registry.errors import BadRequest
from registry.model import CamelInput, Passed
from registry.schema import members_of
from registry.teaching import seen

T = TypeVar("T")
M = TypeVar("M", bound=Mapping[str, object])

FieldName = Annotated[str, Field(min_length=1, max_length=40)]


class Data(TypedDict, Generic[T]):
    """The upstream's answer under `data`."""

    data: T


class PageOf(CamelInput):
    """Which part of a list. Without a limit, over HTTP, all of it."""

    limit: Annotated[int | None, Field(ge=1, le=1000, description="Page size, 1-1000.")] = None
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")] = None


class PartOf(PageOf):
    """Which part of a list, and which members of its rows."""

    fields: Annotated[list[FieldName] | None, Field(max_length=40, description="Only these members; * for all.")] = None

    @property
    def whole(self) -> bool:
        """Neither a page nor a choice of members was asked for."""
        return self.limit is None and self.starting_after is None and self.fields is None


def listed(ctx: Ctx, rows: Sequence[M], params: PageOf, key: Callable[[M], int] | None = None) -> Data[list[M]]:
    """One page. With `key` the rows are in its order and the cursor is the last row's; without, it is the last row's place."""
    return {"data": chosen(ctx, page_of(ctx, rows, params, key), params.fields if isinstance(params, PartOf) else None)}


def page_of(ctx: Ctx, rows: Sequence[M], params: PageOf, key: Callable[[M], int] | None = None) -> list[M]:
    """The rows of the page, whole: for rows that are made into others, which is done for one page only."""
    keys = [key(row) for row in rows] if key is not None else list(range(1, len(rows) + 1))
    start = after(keys, params.starting_after)
    end = len(rows) if params.limit is None else start + params.limit
    if end < len(rows):
        ctx.next_cursor = str(keys[end - 1])
        ctx.note = f"{end - start} of {len(rows)}."
    return list(rows[start:end])


def after(keys: Sequence[int], cursor: str | None) -> int:
    """Where a page begins: behind the cursor's row, or where it stood."""
    if cursor is None:
        return 0
    place = position(cursor)
    return next((index for index, key in enumerate(keys) if key > place), len(keys))


def position(cursor: str) -> int:
    """The number that a cursor is."""
    if not (cursor.isascii() and cursor.isdigit()):
        raise BadRequest("starting_after: not a cursor of this list", param="starting_after", hint="Take it from the page before")
    return int(cursor)


def reduced(row: M, wanted: Sequence[str]) -> M:
    """The members that were asked for, in that order; what a row does not have is left out."""
    return cast(M, {name: row[name] for name in wanted if name in row})


def chosen(ctx: Ctx, rows: list[M], wanted: Sequence[str] | None) -> list[M]:
    """The rows with the members that were asked for, or with all.

    Choice: unknown names are taken among known ones, since rows differ; where nothing would be left of any row, they are mistakes.
    """
    if wanted is None or "*" in wanted:
        return rows
    parts = [reduced(row, wanted) for row in rows]
    if parts and not any(parts) and members_of(ctx.call.operation).isdisjoint(wanted):
        raise BadRequest(
            f"fields: got {seen(', '.join(wanted))}; no row has such members",
            param="fields",
            hint=f"The first row has {', '.join(rows[0])}",
        )
    return parts


def passed_data(inner: RawArray) -> Passed:
    """The upstream's array under `data`, handed on as it comes."""
    return Passed(inner.within(b'{"data":', b"}"))
