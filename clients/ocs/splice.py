"""Finding one array inside a big JSON answer without decoding it: where it begins, and where it ends."""

import re
from functools import cache

from clients.ocs.failure import Unreadable

DEEPEST = 1000
EXACT = 2048
STRING = rb'"(?>[^"\\]|\\.)*+"'
TOKEN = re.compile(STRING + rb'|["\[\]{}]', re.DOTALL)
REST_OF_STRING = re.compile(rb'(?>[^"\\]|\\.)*+"', re.DOTALL)
CLOSED_STRING = re.compile(rb'"[^"]*+"')
LONGEST_ROW = 1024
FEW = 2048
NEITHER_QUOTE_NOR_BRACKET = bytes(byte for byte in range(256) if byte not in b'"[]{}')


@cache
def layout(path: tuple[str, ...]) -> re.Pattern[bytes]:
    """The usual beginning: the status first, then the way to the array. Group 1 is the status object."""
    status = rb"\s*\{\s*\"status\"\s*:\s*(\{(?>[^\"{}]|" + STRING + rb")*+\})\s*,"
    steps = rb"\{".join(rb"\s*" + re.escape(f'"{name}"'.encode()) + rb"\s*:\s*" for name in path)
    return re.compile(status + steps + rb"(?=\[)", re.DOTALL)


class ArrayScan:
    """Follows an array, part by part, to its closing bracket.

    Quotes and brackets alone are kept; strings and pairs that close are then dropped, all by built-in byte operations,
    which makes it about as fast as copying. Rows of one shape leave the same marks: these are dropped a row at a time.
    """

    def __init__(self) -> None:
        self._open = b""
        """What is still open inside the array: brackets, then a quote when a part ended within a string."""
        self._escape = b""
        self._begun: bool = False
        self._row = b""
        """The marks of a row that came before; they open and close everything, so nothing changes when they are left out."""

    def feed(self, part: bytes) -> int | None:
        """How many bytes of this part belong to the array when it ends here, else None. The first part begins with `[`."""
        before = self._open, self._escape, self._begun
        if not self._ends(part):
            return None
        self._open, self._escape, self._begun = before
        if len(part) <= EXACT:
            return self._end(part)
        # Halves: the exact search goes byte by byte, and is far slower.
        half = len(part) // 2
        found = self.feed(part[:half])
        if found is not None:
            return found
        found = self.feed(part[half:])
        return None if found is None else half + found

    def _ends(self, part: bytes) -> bool:
        skipped = 0 if self._begun else 1
        self._begun = True
        self._open = _reduced(self._without_rows(self._open + self._structure(self._escape + part[skipped:])))
        if self._open.startswith(b"]"):
            return True
        if self._open.startswith(b"}") or len(self._open) > DEEPEST:
            raise Unreadable("the brackets do not match, or are nested too deeply")
        return False

    def _without_rows(self, marks: bytes) -> bytes:
        marks = marks.replace(self._row, b"") if self._row else marks
        if len(marks) > FEW and (row := _row(marks)):
            self._row = row
            marks = marks.replace(row, b"")
        return marks

    def _end(self, part: bytes) -> int:
        skipped = 0 if self._begun else 1
        return skipped - len(self._escape) + _end(self._escape + part[skipped:], self._open)

    def _structure(self, data: bytes) -> bytes:
        self._escape = b""
        if b"\\" in data:
            if (len(data) - len(data.rstrip(b"\\"))) % 2:
                data, self._escape = data[:-1], b"\\"
            data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        return data.translate(None, NEITHER_QUOTE_NOR_BRACKET)


def _row(marks: bytes) -> bytes:
    """The marks of the first object between two others, unless a string of it holds a bracket: these must count as they stand."""
    start = marks.find(b"}{") + 1
    end = marks.find(b"}{", start) + 1
    row = marks[start:end] if 0 < start < end <= start + LONGEST_ROW else b""
    kept = row.replace(b'""', b"")
    return b"" if b'"' in kept or _reduced(kept) else row


def _reduced(marks: bytes) -> bytes:
    marks = marks.replace(b'""', b"")
    if b'"' in marks:  # strings that hold brackets, or one that goes on in the next part
        marks = CLOSED_STRING.sub(b"", marks)
        cut = marks.find(b'"')
        marks = marks if cut < 0 else marks[: cut + 1]
    length = -1
    while length != len(marks):
        length = len(marks)
        marks = marks.replace(b"{}", b"").replace(b"[]", b"")
    return marks


def _end(data: bytes, before: bytes) -> int:
    """The exact end, byte by byte: asked for one part of an answer only."""
    depth, position = 1 + len(before.rstrip(b'"')), 0
    if before.endswith(b'"') and (rest := REST_OF_STRING.match(data)):
        position = rest.end()
    for token in TOKEN.finditer(data, position):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                return token.end()
    raise Unreadable("the brackets do not match")
