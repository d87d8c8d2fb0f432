"""A file of call records: its lines, each as a record held to the rules of the operation, and how far an import of it has come."""

import base64
import binascii
import csv
import gzip
import hashlib
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple, cast

import orjson
from pydantic import BaseModel, Field, ValidationError

from operations.invoicing.call_records import NewCdrEvent, refuse_future_cdrs
from registry import guard, validation_errors
from registry.characters import printable_text
from registry.clock import SystemClock
from registry.errors import BadRequest
from transports.cli.stored_logins import logins_file, stored_token
from transports.cli.target import TargetOptions
from transports.cli.terminal import Failure, command_settings

LONGEST_LINE = 64 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CdrFormat(StrEnum):
    """How records are written."""

    CSV = "csv"
    JSON_LINES = "jsonl"


FILE_ENDINGS = {".csv": CdrFormat.CSV, ".jsonl": CdrFormat.JSON_LINES, ".ndjson": CdrFormat.JSON_LINES, ".json": CdrFormat.JSON_LINES}


class CdrLine(NamedTuple):
    """A line without its end; `after` is the offset behind it. What is longer than a record can be has no text."""

    number: int
    raw: bytes | None
    after: int


@dataclass(frozen=True, slots=True)
class CdrFile:
    """Which file, and how it is read; offsets are those of the unpacked text."""

    path: Path
    format: CdrFormat
    packed: bool

    @contextmanager
    def opened(self) -> Generator["CdrReader"]:
        try:
            raw = self.path.open("rb")
        except OSError as error:
            raise Failure(f"{self.path}: cannot be read ({error.strerror})") from None
        with raw:
            yield CdrReader(self.path, raw, cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if self.packed else raw)


class CdrReader:
    def __init__(self, path: Path, raw: BinaryIO, text: BinaryIO) -> None:
        self._path, self._raw, self._text = path, raw, text
        self.size = path.stat().st_size

    @property
    def done(self) -> int:
        """Bytes of the file, as it is on the disk, that were read."""
        return self._raw.tell()

    def lines(self, *, offset: int = 0, number: int = 0) -> Iterator[CdrLine]:
        """All lines behind `offset`, at which line `number` ended."""
        try:
            self._text.seek(offset)
            while raw := self._text.readline(LONGEST_LINE + 2):
                more, size = raw, len(raw)
                while not more.endswith(b"\n") and (more := self._text.readline(LONGEST_LINE)):
                    size += len(more)
                number += 1
                text = raw.rstrip(b"\r\n") if size == len(raw) else None
                if text is not None and offset == 0:
                    text = text.removeprefix(BYTE_ORDER_MARK)
                offset += size
                yield CdrLine(number, text if text is None or len(text) <= LONGEST_LINE else None, offset)
        except (gzip.BadGzipFile, zlib.error, EOFError):
            raise Failure(f"{self._path}: is not whole gzip; get the file again, what is stored of it counts once", exit_code=1) from None
        except OSError as error:
            raise Failure(f"{self._path}: cannot be read ({error.strerror or error})") from None


def find_cdr_file(path: Path, format: CdrFormat | None) -> CdrFile:
    """The file with the format that its name or the option says. Raises Failure."""
    if path.is_dir():
        raise Failure(f"{path}: is a directory; name a file of call records in it")
    endings = [ending.lower() for ending in path.suffixes]
    packed = endings[-1:] == [".gz"]
    named = FILE_ENDINGS.get((endings[:-1] if packed else endings)[-1] if len(endings) > packed else "")
    found = format or named
    if found is None:
        raise Failure(f"--format: {path.name} does not say what it is; give --format csv or --format jsonl")
    if not path.is_file():
        raise Failure(f"{path}: no such file")
    return CdrFile(path, found, packed)


CDR_COLUMNS = tuple(NewCdrEvent.model_fields)
NEEDED_COLUMNS = tuple(name for name, info in NewCdrEvent.model_fields.items() if info.is_required())
WHOLE_NUMBER_COLUMNS = ("bytes_up", "bytes_down", "occurred_at")
MOST_DIGITS = 16


class BadLine(NamedTuple):
    """A line that is no record, without what it holds: that may be personal data."""

    number: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


def read_header(file: CdrFile, reading: CdrReader) -> tuple[Sequence[str], CdrLine | None]:
    """The columns of a CSV file, and the line that names them; JSON lines have none."""
    if file.format is CdrFormat.JSON_LINES:
        return (), None
    first = next((line for line in reading.lines() if line.raw is None or line.raw.strip()), None)
    if first is None or first.raw is None:
        raise Failure(f"{file.path}: has no header; its first line names the columns: {', '.join(CDR_COLUMNS)}")
    try:
        columns = [name.strip().lower() for name in csv_cells(first.raw)]
    except ValueError as error:
        raise Failure(f"{file.path}: the header cannot be read: {error}; the file is CSV in UTF-8 with commas") from None
    check_columns(file, columns)
    return columns, first


def check_columns(file: CdrFile, columns: Sequence[str]) -> None:
    """Raises Failure unless every needed column occurs, each once, and no other."""
    missing = [name for name in NEEDED_COLUMNS if name not in columns]
    unknown = [printable_text(name[:40]) for name in dict.fromkeys(columns) if name not in CDR_COLUMNS]
    twice = [name for name in CDR_COLUMNS if columns.count(name) > 1]
    wrong = [f"{what} {', '.join(names)}" for what, names in (("lacks", missing), ("has unknown", unknown), ("repeats", twice)) if names]
    if wrong:
        raise Failure(
            f"{file.path}: the header {'; it '.join(wrong)}. Columns are {', '.join(CDR_COLUMNS)}, in any order; the last two may miss"
        )


def read_record(line: CdrLine, columns: Sequence[str], now: float) -> dict[str, object] | BadLine:
    try:
        if line.raw is None:
            raise ValueError("longer than 64 KiB, which no record is")
        event = read_row(line.raw, columns) if columns else read_object(line.raw)
        refuse_future_cdrs([event], now)
        return event.model_dump(exclude_none=True)
    except ValidationError as error:
        return BadLine(line.number, validation_errors.refuse_input(NewCdrEvent, error).message)
    except BadRequest as refusal:
        return BadLine(line.number, refusal.message.removeprefix("events[0]."))
    except ValueError as error:
        return BadLine(line.number, str(error))


def read_row(raw: bytes, columns: Sequence[str]) -> NewCdrEvent:
    found = csv_cells(raw)
    if len(found) != len(columns):
        raise ValueError(f"has {len(found)} columns, and the header has {len(columns)}")
    values = {name: cell_value(name, cell) for name, cell in zip(columns, found, strict=True) if cell or name in NEEDED_COLUMNS}
    return NewCdrEvent.model_validate(values)


def csv_cells(raw: bytes) -> list[str]:
    """The cells of a row, without surrounding spaces. A quote that is not closed ends with its line, since no record spans two lines."""
    try:
        return [cell.strip() for cell in next(csv.reader([raw.decode()], strict=True))]
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except csv.Error:
        raise ValueError("is not CSV: a quote is not closed on its line, or stands inside a cell") from None


def cell_value(name: str, cell: str) -> str | int:
    """A number in the columns of numbers; otherwise text, which is refused where a number is needed."""
    return int(cell) if name in WHOLE_NUMBER_COLUMNS and cell.isascii() and cell.isdigit() and len(cell) <= MOST_DIGITS else cell


def read_object(raw: bytes) -> NewCdrEvent:
    try:
        found = cast(object, guard.parse_json(raw))
    except BadRequest as refusal:
        raise ValueError(refusal.message.replace("The body", "it").replace(" at line 1,", " at")) from None
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object")
    try:
        return NewCdrEvent.model_validate(found)
    except ValidationError:
        return NewCdrEvent.model_validate_json(orjson.dumps(guard.parse_whole_numbers(raw)))


FIRST_BLOCK = 64 * 1024

LineCount = Annotated[int, Field(ge=0)]


class ImportProgress(BaseModel):
    """What was acknowledged so far: the offset behind it, its last line, and the counts."""

    offset: LineCount = 0
    line: LineCount = 0
    stored: LineCount = 0
    skipped: LineCount = 0
    bad: LineCount = 0

    @property
    def records(self) -> int:
        """Lines that are a record or should be one, without the header and empty lines."""
        return self.stored + self.skipped + self.bad


class ProgressFile:
    """The file that the progress of one import is kept in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.works = True

    def read(self) -> ImportProgress:
        """The progress of the import; its beginning when nothing is known."""
        try:
            return ImportProgress.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return ImportProgress()

    def write(self, progress: ImportProgress) -> None:
        """Replaces the file as a whole; if that fails, the import continues without it."""
        fresh = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(progress.model_dump_json().encode())
            fresh.replace(self._path)
        except OSError:
            self.works = False

    def forget(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            self.works = False


async def progress_file(where: TargetOptions, file: CdrFile) -> ProgressFile:
    """One file for each imported file in its present state and each organisation: in the data directory, or beside the logins."""
    folder = logins_file().parent if where.url else command_settings(data=where.data).data
    seen = file.path.stat()
    with file.path.open("rb") as opened:
        block = hashlib.sha256(opened.read(FIRST_BLOCK)).hexdigest()
    whom = (where.url.rstrip("/"), where.key or await organisation_of_login(where.url)) if where.url else (where.org or "",)
    identity = [str(file.path.resolve()), seen.st_size, seen.st_mtime_ns, block, file.format, file.packed, *whom]
    return ProgressFile(folder / "imports" / f"{hashlib.sha256(orjson.dumps(identity)).hexdigest()[:32]}.json")


async def organisation_of_login(url: str) -> str:
    """The organisation that the stored login acts for, by its token; the server decides whether it may."""
    token = await stored_token(url, SystemClock()) or ""
    claims = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        payload = cast("dict[str, object]", orjson.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))))
        return str(payload.get("org_id") or payload["sub"])
    except (binascii.Error, ValueError, LookupError, AttributeError):
        return token
