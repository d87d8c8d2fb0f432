"""The query of composites about lines: one line, or the pages of a ranking of the caller's fleet."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeVar

from pydantic import Field

from operations.deps import Ctx
from operations.intelligence.lines.fleet_lines import FleetLine, fleet_line
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.lines import find_own_line
from operations.upstream.paging import cursor_index
from operations.vocabulary import Iccid
from registry.errors import OcsError
from registry.model import CamelInput

RankedRow = TypeVar("RankedRow")
RankingLimit = Annotated[int, Field(ge=1, le=500, description="Lines per page, 1-500.")]
PageCursor = Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")]


def ranking_page(ctx: Ctx, rows: Sequence[RankedRow], limit: int, cursor: str | None) -> list[RankedRow]:
    """Some of the rows, and in the answer's head where the next ones begin."""
    start = cursor_index(range(1, len(rows) + 1), cursor)
    if start + limit < len(rows):
        ctx.next_cursor = str(start + limit)
        ctx.note = f"{limit} of {len(rows)}."
    return list(rows[start : start + limit])


class LinesAsked(CamelInput):
    """Which lines."""

    iccid: Annotated[Iccid | None, Field(description="One line; without it the fleet.")] = None
    limit: RankingLimit = 100
    starting_after: PageCursor = None


class LineTarget(NamedTuple):
    """The way to the lines; the one that was named, or nothing for the fleet."""

    upstream: Upstream
    line: FleetLine | None


async def own_line_or_fleet(ctx: Ctx, params: LinesAsked) -> LineTarget:
    """The access rule: a line that is named must be the caller's."""
    upstream = await connect_upstream(ctx)
    if params.iccid is None:
        return LineTarget(upstream, None)
    line = fleet_line((await find_own_line(ctx, upstream, params.iccid)).row)
    if line is None:
        raise OcsError("The charging system answered without the line's ICCID", before_execution=True)
    return LineTarget(upstream, line)
