"""Which lines a plan is about: given one by one, in a table with values of their own, by a tag, or by facts of the fleet."""

import csv
import io
import re
from typing import Annotated, NamedTuple, Self

from pydantic import FailFast, Field, model_validator

from operations.changes.plans.changes import LineValue
from operations.deps import Ctx
from operations.fleet.fleet_access import own_fleet
from operations.fleet.line_selection import MOST_LINES_GIVEN, LineConditions, select_lines
from operations.vocabulary import Iccid, LineTag
from registry.errors import BadRequest
from registry.operation import CamelInput

LINES_LIMIT = 100_000
TABLE_CHARACTERS_LIMIT = 64 * 1024
"""Choice: no longer than any other text of a request."""
ICCID_TEXT = re.compile(r"89[0-9]{16,20}", re.ASCII)


class PlanLines(CamelInput):
    """Which lines: exactly one of `iccids`, `csv`, `query` and `tagged`."""

    iccids: Annotated[
        list[Iccid] | None, FailFast(), Field(min_length=1, max_length=MOST_LINES_GIVEN, description="These lines, 1-1000.")
    ] = None
    csv: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=TABLE_CHARACTERS_LIMIT,
            description="A table, 64 KiB at most (some 2800 lines): an ICCID in each line, then a comma and the line's own value (status, "
            "list, template, account, speed or days); a first line without an ICCID is a heading.",
        ),
    ] = None
    query: Annotated[LineConditions | None, Field(description="Lines with these facts, at least one; as in query_fleet.")] = None
    tagged: Annotated[LineTag | None, Field(description="Lines that have this tag.")] = None

    @model_validator(mode="after")
    def _one_selection(self) -> Self:
        given = [name for name in ("iccids", "csv", "query", "tagged") if getattr(self, name) is not None]
        if len(given) != 1:
            raise BadRequest(
                f"lines: got {' and '.join(given) or 'none of them'}; say which lines by exactly one of iccids, csv, query and tagged",
                param="lines",
                hint='For example {"query": {"status": "ACTIVE"}}',
            )
        if self.query is not None and self.query == LineConditions():
            raise BadRequest(
                "lines.query: got no filter, which would mean every line",
                param="lines.query",
                hint="Give at least one filter, such as status or accountId",
            )
        return self


class PlanLinesFound(NamedTuple):
    """The lines, each once, and whether any has a value of its own."""

    lines: list[LineValue]
    own_values: bool


async def find_plan_lines(ctx: Ctx, asked: PlanLines) -> PlanLinesFound:
    """The lines that are asked for. Raises BadRequest for none, or too many. A query waits for the network at a first look at the fleet."""
    if asked.iccids is not None:
        ctx.row_bounds()
        return PlanLinesFound([LineValue(iccid, None) for iccid in dict.fromkeys(asked.iccids)], own_values=False)
    if asked.csv is not None:
        ctx.row_bounds()
        return read_table(asked.csv)
    found = await select_lines(ctx, await own_fleet(ctx, asked), asked, LINES_LIMIT)
    iccids = [*(line.iccid for line in found.lines), *found.unlisted]  # those of a tag that no listing shows yet are read, too
    lines = [LineValue(iccid, None) for iccid in dict.fromkeys(iccids)]
    if not lines:
        field = "query" if asked.query is not None else "tagged"
        raise BadRequest(f"lines.{field}: no line matches", param=f"lines.{field}", hint="query_fleet and list_tags show what there is")
    return PlanLinesFound(lines, own_values=False)


def read_table(text: str) -> PlanLinesFound:
    """The lines of a table. Raises BadRequest for a row that is none, named by its number, and for a line that is there twice.

    A byte order mark, which spreadsheets write, is no part of the first cell: with it a first line would be taken for a heading.
    """
    found: dict[str, LineValue] = {}
    for place, cells in enumerate(table_cells(text.removeprefix("\ufeff")), start=1):
        cells = [cell.strip() for cell in cells]
        if not any(cells) or (place == 1 and not cells[0][:1].isdigit() and not ICCID_TEXT.search(cells[0])):
            continue
        line = table_line(place, cells)
        if line.iccid in found:
            raise bad_row(place, f"{line.iccid} is there twice", "Give each line once")
        found[line.iccid] = line
    if not found:
        raise bad_row(1, "no line has an ICCID", "One ICCID in each line")
    return PlanLinesFound(list(found.values()), own_values=any(line.value is not None for line in found.values()))


def table_cells(text: str) -> list[list[str]]:
    """The cells of each line, whichever line ends the table has. Raises BadRequest for what is no table."""
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        what = f"lines.csv: its {len(text)} characters cannot be read as a table; the quotation marks of a cell have to be closed"
        raise BadRequest(what, param="lines.csv", hint="Send CSV (RFC 4180): an ICCID in each line, then a comma and a value") from None


def table_line(place: int, cells: list[str]) -> LineValue:
    if not ICCID_TEXT.fullmatch(cells[0]):
        raise bad_row(place, f"got {cells[0][:30]!r}, which is no ICCID", "An ICCID has 18-22 digits and begins with 89")
    if len(cells) > 2 and any(cells[2:]):
        raise bad_row(place, f"got {len(cells)} columns; there are two, the ICCID and a value", "Leave the other columns out")
    return LineValue(cells[0], cells[1] if len(cells) > 1 and cells[1] else None)


def bad_row(place: int, what: str, hint: str) -> BadRequest:
    return BadRequest(f"lines.csv: line {place}: {what}", param="lines.csv", hint=hint)
