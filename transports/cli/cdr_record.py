"""A line of a file as a call record, held to the rules of the operation; what is wrong with it is told by the field's name."""

import csv
from collections.abc import Sequence
from typing import NamedTuple, cast

import orjson
from pydantic import ValidationError

from operations.invoicing.cdr_ingest import NewCdrEvent, refuse_future
from registry import guard, teaching
from registry.errors import BadRequest
from transports.cli.cdr_file import CdrFile, Format, Line, Reading
from transports.cli.failure import Failure

COLUMNS = tuple(NewCdrEvent.model_fields)
NEEDED = tuple(name for name, info in NewCdrEvent.model_fields.items() if info.is_required())
WHOLE = ("bytes_up", "bytes_down", "occurred_at")
DIGITS = 16


class BadLine(NamedTuple):
    """A line that is no record, without what it holds: that may be personal data."""

    number: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


def header(file: CdrFile, reading: Reading) -> tuple[Sequence[str], Line | None]:
    """The columns of a CSV file, and the line that names them; JSON lines have none."""
    if file.format is Format.JSON_LINES:
        return (), None
    first = next((line for line in reading.lines() if line.raw is None or line.raw.strip()), None)
    if first is None or first.raw is None:
        raise Failure(f"{file.path}: has no header; its first line names the columns: {', '.join(COLUMNS)}")
    try:
        columns = [name.strip().lower() for name in cells(first.raw)]
    except ValueError as error:
        raise Failure(f"{file.path}: the header cannot be read: {error}; the file is CSV in UTF-8 with commas") from None
    check_columns(file, columns)
    return columns, first


def check_columns(file: CdrFile, columns: Sequence[str]) -> None:
    """Each once, all that are needed, and no other."""
    missing = [name for name in NEEDED if name not in columns]
    unknown = [teaching.printable(name[:40]) for name in dict.fromkeys(columns) if name not in COLUMNS]
    twice = [name for name in COLUMNS if columns.count(name) > 1]
    wrong = [f"{what} {', '.join(names)}" for what, names in (("lacks", missing), ("has unknown", unknown), ("repeats", twice)) if names]
    if wrong:
        raise Failure(
            f"{file.path}: the header {'; it '.join(wrong)}. Columns are {', '.join(COLUMNS)}, in any order; the last two may miss"
        )


def record(line: Line, columns: Sequence[str], now: float) -> dict[str, object] | BadLine:
    """The record as the operation takes it."""
    try:
        if line.raw is None:
            raise ValueError("longer than 64 KiB, which no record is")
        event = read_row(line.raw, columns) if columns else read_object(line.raw)
        refuse_future([event], now)
        return event.model_dump(exclude_none=True)
    except ValidationError as error:
        return BadLine(line.number, teaching.refuse(NewCdrEvent, error).message)
    except BadRequest as refusal:
        return BadLine(line.number, refusal.message.removeprefix("events[0]."))
    except ValueError as error:
        return BadLine(line.number, str(error))


def read_row(raw: bytes, columns: Sequence[str]) -> NewCdrEvent:
    """A row of CSV."""
    found = cells(raw)
    if len(found) != len(columns):
        raise ValueError(f"has {len(found)} columns, and the header has {len(columns)}")
    values = {name: value_of(name, cell) for name, cell in zip(columns, found, strict=True) if cell or name in NEEDED}
    return NewCdrEvent.model_validate(values)


def cells(raw: bytes) -> list[str]:
    """The cells of a row, without space around them. A quote that is not closed ends with its line: no record goes over two."""
    try:
        return [cell.strip() for cell in next(csv.reader([raw.decode()], strict=True))]
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except csv.Error:
        raise ValueError("is not CSV: a quote is not closed on its line, or stands inside a cell") from None


def value_of(name: str, cell: str) -> str | int:
    """Numbers where they belong; everything else is text, and refused where it should be a number."""
    return int(cell) if name in WHOLE and cell.isascii() and cell.isdigit() and len(cell) <= DIGITS else cell


def read_object(raw: bytes) -> NewCdrEvent:
    """A line of JSON."""
    try:
        found = cast(object, guard.parse(raw))
    except BadRequest as refusal:
        raise ValueError(refusal.message.replace("The body", "it").replace(" at line 1,", " at")) from None
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object")
    try:
        return NewCdrEvent.model_validate(found)
    except ValidationError:
        return NewCdrEvent.model_validate_json(orjson.dumps(guard.with_whole_numbers(raw)))
