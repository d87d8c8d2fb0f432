"""A file of call records: its format, and its lines with where they end."""

import gzip
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from transports.cli.failure import Failure

LONGEST = 64 * 1024
BOM = b"\xef\xbb\xbf"


class Format(StrEnum):
    """How records are written."""

    CSV = "csv"
    JSON_LINES = "jsonl"


ENDINGS = {".csv": Format.CSV, ".jsonl": Format.JSON_LINES, ".ndjson": Format.JSON_LINES, ".json": Format.JSON_LINES}


class Line(NamedTuple):
    """A line without its end; `after` is the offset behind it. What is longer than a record can be has no text."""

    number: int
    raw: bytes | None
    after: int


@dataclass(frozen=True, slots=True)
class CdrFile:
    """Which file, and how it is read; offsets are those of the unpacked text."""

    path: Path
    format: Format
    packed: bool

    @contextmanager
    def opened(self) -> Generator["Reading"]:
        """The file from its beginning."""
        try:
            raw = self.path.open("rb")
        except OSError as error:
            raise Failure(f"{self.path}: cannot be read ({error.strerror})") from None
        with raw:
            yield Reading(self.path, raw, cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if self.packed else raw)


class Reading:
    """An open file."""

    def __init__(self, path: Path, raw: BinaryIO, text: BinaryIO) -> None:
        self._path, self._raw, self._text = path, raw, text
        self.size = path.stat().st_size

    @property
    def done(self) -> int:
        """Bytes of the file, as it lies on the disk, that were read."""
        return self._raw.tell()

    def lines(self, *, offset: int = 0, number: int = 0) -> Iterator[Line]:
        """All lines behind an offset, at which line `number` has ended."""
        try:
            self._text.seek(offset)
            while raw := self._text.readline(LONGEST + 2):
                more, size = raw, len(raw)
                while not more.endswith(b"\n") and (more := self._text.readline(LONGEST)):
                    size += len(more)
                number += 1
                text = raw.rstrip(b"\r\n") if size == len(raw) else None
                if text is not None and offset == 0:
                    text = text.removeprefix(BOM)
                offset += size
                yield Line(number, text if text is None or len(text) <= LONGEST else None, offset)
        except (gzip.BadGzipFile, zlib.error, EOFError):
            raise Failure(f"{self._path}: is not whole gzip; get the file again, what is stored of it counts once", exit_code=1) from None
        except OSError as error:
            raise Failure(f"{self._path}: cannot be read ({error.strerror or error})") from None


def cdr_file(path: Path, format: Format | None) -> CdrFile:
    """The file, read as its name or the option says."""
    if path.is_dir():
        raise Failure(f"{path}: is a directory; name a file of call records in it")
    endings = [ending.lower() for ending in path.suffixes]
    packed = endings[-1:] == [".gz"]
    named = ENDINGS.get((endings[:-1] if packed else endings)[-1] if len(endings) > packed else "")
    found = format or named
    if found is None:
        raise Failure(f"--format: {path.name} does not say what it is; give --format csv or --format jsonl")
    if not path.is_file():
        raise Failure(f"{path}: no such file")
    return CdrFile(path, found, packed)
