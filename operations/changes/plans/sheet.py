"""The rows of a change set as a table."""

import csv
import io
from collections.abc import Sequence

from operations.changes.plans.views import render_row
from storage.change_rows import UNBOUNDED_COST, ChangeRow

TABLE_HEADINGS = ("number", "iccid", "state", "before", "after", "calls", "undoable", "cost_cents", "code", "reason")
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the first four in full width, which spreadsheets of East Asia take for them."""


def table_heading() -> bytes:
    """The first line of the table."""
    return table_lines([TABLE_HEADINGS])


def table_rows(rows: Sequence[ChangeRow]) -> bytes:
    """A line for each row (CSV, RFC 4180)."""
    return table_lines([row_cells(row) for row in rows])


def row_cells(row: ChangeRow) -> Sequence[object]:
    calls = " ".join(render_row(row)["calls"])
    cost = "" if row.cost >= UNBOUNDED_COST else row.cost
    return (row.number, row.iccid, row.state, row.before, row.after, calls, not row.irreversible, cost, row.code, row.reason)


def table_lines(lines: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([[plain_cell(cell) for cell in line] for line in lines])
    return text.getvalue().encode()


def plain_cell(cell: object) -> object:
    """A text that a spreadsheet would take for a formula begins with an apostrophe (CWE-1236)."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_BEGINNINGS) else cell
