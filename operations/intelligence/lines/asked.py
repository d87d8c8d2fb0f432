"""What composites about lines are asked: one line, or the caller's fleet, page by page."""

from typing import Annotated, NamedTuple

from pydantic import Field

from operations.deps import Ctx
from operations.intelligence.fleet.reading import FleetLine, line_of
from operations.intelligence.ranking import PageCursor, Rows
from operations.services.network.lines import reached_line
from operations.services.network.reached import Upstream
from operations.services.network.upstream import reach
from operations.vocabulary import Iccid
from registry.errors import OcsError
from registry.model import CamelInput


class LinesAsked(CamelInput):
    """Which lines."""

    iccid: Annotated[Iccid | None, Field(description="One line; without it the fleet.")] = None
    limit: Rows = 100
    starting_after: PageCursor = None


class Asked(NamedTuple):
    """The way to the lines; the one that was named, or nothing for the fleet."""

    upstream: Upstream
    line: FleetLine | None


async def lines_asked(ctx: Ctx, params: LinesAsked) -> Asked:
    """The access rule: a line that is named must be the caller's."""
    upstream = await reach(ctx)
    if params.iccid is None:
        return Asked(upstream, None)
    line = line_of((await reached_line(ctx, upstream, params.iccid)).row)
    if line is None:
        raise OcsError("The charging system answered without the line's ICCID", before_execution=True)
    return Asked(upstream, line)
