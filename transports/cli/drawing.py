"""Answers as a person reads them on a terminal: tables, records and pictures. It imports rich, so only what draws imports it."""

import io
from collections.abc import Mapping
from typing import cast

import segno
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transports.cli.terminal import JsonObject, indented_json, table_cell

WIDEST_CELL = 60
LONGEST_FIELD = 600
COLUMN_BORDERS = 3  # characters that a table needs beside each column


def draw_answer(answer: object) -> str:
    """A list as a table, an object as a record, and an eSIM's code as a picture."""
    if not isinstance(answer, dict):
        return indented_json(answer)
    answer = cast(JsonObject, answer)
    data = answer.get("data")
    rows = cast("list[object]", data) if isinstance(data, list) else []
    if isinstance(data, dict) and data:
        beside = {name: field for name, field in answer.items() if name not in ("data", "object")}
        shown = draw_record({**beside, **cast(JsonObject, data)})
    elif rows and all(isinstance(row, dict) for row in rows):
        shown = draw_rows(cast("list[JsonObject]", rows))
    elif rows:
        shown = "\n".join(table_cell(row) for row in rows)
    else:
        shown = draw_record(dotted_fields(answer))
    code = activation_code(answer)
    return f"{shown}\n\nScan with the phone that gets the eSIM:\n\n{qr_picture(code)}" if code else shown


def draw_rows(rows: list[JsonObject]) -> str:
    """A table, one row a line; where it would cut words and ids, a field a line, since people copy them.

    Its cells are without control characters; what remains are the terminal's own, so it is written as it is.
    """
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "object"]
    cells = [[table_cell(row.get(name, ""), WIDEST_CELL) for name in columns] for row in rows]
    widths = [
        max((cell_len(word) for text in column for word in text.split()), default=0)
        for column in zip(map(table_cell, columns), *cells, strict=True)
    ]
    if not columns or sum(widths) + COLUMN_BORDERS * len(columns) + 1 > Console().width:
        records = (draw_record({name: field for name, field in row.items() if name != "object"}) for row in rows)
        return "The rows are wider than this terminal, so each is shown a field a line.\n\n" + "\n".join(records)
    table = Table()
    for name, width in zip(columns, widths, strict=True):
        table.add_column(Text(table_cell(name)), min_width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    return rendered_table(table)


def draw_record(value: Mapping[str, object]) -> str:
    """One object, a field a line; texts whole, and of a list as much as a person reads."""
    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # to the last character, over several lines where need be
    for name, field in value.items():
        text = table_cell(field)
        if len(text) > LONGEST_FIELD and not isinstance(field, str):
            text = text[:LONGEST_FIELD] + "... (--json shows it whole)"
        table.add_row(Text(table_cell(name), style="bold"), Text(text))
    return rendered_table(table)


def rendered_table(table: Table) -> str:
    console = Console()
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def dotted_fields(value: JsonObject) -> JsonObject:
    """Members of inner objects under dotted names; deeper ones stay JSON."""
    found: JsonObject = {}
    for name, field in value.items():
        inner = cast(JsonObject, field) if isinstance(field, dict) else {}
        found.update({f"{name}.{key}": part for key, part in inner.items()} or {name: cast(object, field)})
    return found


def activation_code(answer: JsonObject) -> str | None:
    """The LPA string of an issued eSIM, if that is what the answer holds."""
    esim = answer.get("esim")
    code = cast(JsonObject, esim).get("qr_code") if isinstance(esim, dict) else None
    return code if isinstance(code, str) else None


def qr_picture(code: str) -> str:
    picture = io.StringIO()
    segno.make(code, error="m", micro=False).terminal(picture, compact=True)
    return picture.getvalue()
