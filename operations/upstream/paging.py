"""Answers of operators: `{data}` around what the charging system said, lists in pages, and only the members that were asked for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Generic, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.json_array import JsonArrayStream
from operations.deps import Ctx
from registry.errors import BadRequest
from registry.operation import CamelInput, StreamedAnswer
from registry.schema import list_row_members
from registry.validation_errors import describe_value

DataT = TypeVar("DataT")
PageRow = TypeVar("PageRow", bound=Mapping[str, object])

FieldName = Annotated[str, Field(min_length=1, max_length=40)]


class Data(TypedDict, Generic[DataT]):
    """The upstream's answer under `data`."""

    data: DataT


class PageQuery(CamelInput):
    """Which part of a list. Without a limit, over HTTP, all of it."""

    limit: Annotated[int | None, Field(ge=1, le=1000, description="Rows, 1-1000.")] = None
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=64, description="The last `next`.")] = None


class FieldsQuery(PageQuery):
    """Which part of a list, and which members of its rows."""

    fields: Annotated[list[FieldName] | None, Field(max_length=40, description="These members; * for all.")] = None

    @property
    def is_unrestricted(self) -> bool:
        """Whether neither a page nor a choice of members was asked for."""
        return self.limit is None and self.starting_after is None and self.fields is None


def paged_data(ctx: Ctx, rows: Sequence[PageRow], params: PageQuery, key: Callable[[PageRow], int] | None = None) -> Data[list[PageRow]]:
    """The page as `page_rows` finds it, with the members that were asked for."""
    return {"data": select_fields(ctx, page_rows(ctx, rows, params, key), params.fields if isinstance(params, FieldsQuery) else None)}


def page_rows(ctx: Ctx, rows: Sequence[PageRow], params: PageQuery, key: Callable[[PageRow], int] | None = None) -> list[PageRow]:
    """The rows of the page in the order of `key`, with all members; sets the context's cursor and note where more rows follow.

    Without `key` they stay in their order, and a cursor is a row's place.
    """
    rows = rows if key is None else sorted(rows, key=key)
    keys = [key(row) for row in rows] if key is not None else list(range(1, len(rows) + 1))
    start = cursor_index(keys, params.starting_after)
    end = len(rows) if params.limit is None else start + params.limit
    if end < len(rows):
        ctx.next_cursor = str(keys[end - 1])
        ctx.note = f"{end - start} of {len(rows)}."
    return list(rows[start:end])


def member_number(name: str) -> Callable[[Mapping[str, object]], int]:
    """The key of a list that goes by the whole number in the member `name`; rows without it come first."""

    def number(row: Mapping[str, object]) -> int:
        return cast(int, row.get(name, 0))

    return number


def cursor_index(keys: Sequence[int], cursor: str | None) -> int:
    """The index at which a page begins: the first of `keys` behind the cursor's, 0 without a cursor. Raises BadRequest."""
    if cursor is None:
        return 0
    place = cursor_value(cursor)
    return next((index for index, key in enumerate(keys) if key > place), len(keys))


def cursor_value(cursor: str) -> int:
    """The number in a cursor. Raises BadRequest."""
    if not (cursor.isascii() and cursor.isdigit()):
        raise BadRequest("starting_after: not a cursor of this list", param="starting_after", hint="Take it from the page before")
    return int(cursor)


def select_fields(ctx: Ctx, rows: list[PageRow], wanted: Sequence[str] | None) -> list[PageRow]:
    """The rows with the members that were asked for, or with all.

    Choice: unknown names are taken among known ones, since rows differ; where nothing would be left of any row, they are mistakes.
    """
    if wanted is None or "*" in wanted:
        return rows
    parts = [cast(PageRow, {name: row[name] for name in wanted if name in row}) for row in rows]
    if parts and not any(parts) and list_row_members(ctx.call.operation).isdisjoint(wanted):
        raise BadRequest(
            f"fields: got {describe_value(', '.join(wanted))}; no row has such members",
            param="fields",
            hint=f"The first row has {', '.join(rows[0])}",
        )
    return parts


def raw_data(inner: JsonArrayStream) -> StreamedAnswer:
    """The charging system's array under `data`, passed on as it arrives."""
    return StreamedAnswer(inner.within(b'{"data":', b"}"))
