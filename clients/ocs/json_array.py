"""Big arrays of answers: one that is passed on as raw JSON is found without decoding it, and read while it is written; a list of lines
is decoded in slices, so that nobody waits for the whole of it.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from functools import cache
from types import TracebackType
from typing import Self, TypeAlias, cast

import anyio.lowlevel
import orjson

from clients.http import OutboundFailed
from clients.ocs.outcome import answer_status, open_answer
from clients.ocs.wire_schema import Json, UnreadableAnswer, wire_integer, wire_object
from registry.errors import OcsError

ARRAY_DEPTH_LIMIT = 1000
EXACT_SEARCH_BYTES = 2048
JSON_STRING = rb'"(?>[^"\\]|\\.)*+"'
JSON_MARK = re.compile(JSON_STRING + rb'|["\[\]{}]', re.DOTALL)
REST_OF_JSON_STRING = re.compile(rb'(?>[^"\\]|\\.)*+"', re.DOTALL)
CLOSED_MARKS = re.compile(rb'"[^"]*+"')
ROW_MARKS_LIMIT = 1024
FEW_MARKS = 2048
UNMARKED_BYTES = bytes(byte for byte in range(256) if byte not in b'"[]{}')


@cache
def answer_head_pattern(path: tuple[str, ...]) -> re.Pattern[bytes]:
    """The usual beginning of an answer: the status, then the members of `path` up to the array. Group 1 is the status object."""
    status = rb"\s*\{\s*\"status\"\s*:\s*(\{(?>[^\"{}]|" + JSON_STRING + rb")*+\})\s*,"
    steps = rb"\{".join(rb"\s*" + re.escape(f'"{name}"'.encode()) + rb"\s*:\s*" for name in path)
    return re.compile(status + steps + rb"(?=\[)", re.DOTALL)


class JsonArrayScan:
    """Follows an array, part by part, to its closing bracket.

    It keeps quotes and brackets alone, and drops strings and pairs that close, all by built-in byte operations: about as fast as copying.
    Rows of one shape leave the same marks, which are dropped a row at a time.
    """

    def __init__(self) -> None:
        self._open = b""
        """What is still open inside the array: brackets, then a quote when a part ended within a string."""
        self._escape = b""
        self._begun: bool = False
        self._row = b""
        """The marks of a row that came before; they open and close everything, so nothing changes when they are left out."""

    def feed(self, part: bytes) -> int | None:
        """How many bytes of `part` belong to the array when it ends here, else None. The first part begins with `[`."""
        before = self._open, self._escape, self._begun
        if not self._ends(part):
            return None
        self._open, self._escape, self._begun = before
        if len(part) <= EXACT_SEARCH_BYTES:
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
        self._open = _reduce_marks(self._without_rows(self._open + self._structure(self._escape + part[skipped:])))
        if self._open.startswith(b"]"):
            return True
        if self._open.startswith(b"}") or len(self._open) > ARRAY_DEPTH_LIMIT:
            raise UnreadableAnswer("the brackets do not match, or are nested too deeply")
        return False

    def _without_rows(self, marks: bytes) -> bytes:
        marks = marks.replace(self._row, b"") if self._row else marks
        if len(marks) > FEW_MARKS and (row := _row_marks(marks)):
            self._row = row
            marks = marks.replace(row, b"")
        return marks

    def _end(self, part: bytes) -> int:
        skipped = 0 if self._begun else 1
        return skipped - len(self._escape) + _exact_end(self._escape + part[skipped:], self._open)

    def _structure(self, data: bytes) -> bytes:
        self._escape = b""
        if b"\\" in data:
            if (len(data) - len(data.rstrip(b"\\"))) % 2:
                data, self._escape = data[:-1], b"\\"
            data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        return data.translate(None, UNMARKED_BYTES)


def _row_marks(marks: bytes) -> bytes:
    """The marks of the first object between two others; empty where a string of it holds a bracket, because such marks count."""
    start = marks.find(b"}{") + 1
    end = marks.find(b"}{", start) + 1
    row = marks[start:end] if 0 < start < end <= start + ROW_MARKS_LIMIT else b""
    kept = row.replace(b'""', b"")
    return b"" if b'"' in kept or _reduce_marks(kept) else row


def _reduce_marks(marks: bytes) -> bytes:
    marks = marks.replace(b'""', b"")
    if b'"' in marks:  # strings that hold brackets, or one that goes on in the next part
        marks = CLOSED_MARKS.sub(b"", marks)
        cut = marks.find(b'"')
        marks = marks if cut < 0 else marks[: cut + 1]
    length = -1
    while length != len(marks):
        length = len(marks)
        marks = marks.replace(b"{}", b"").replace(b"[]", b"")
    return marks


def _exact_end(data: bytes, before: bytes) -> int:
    """The end of the array in `data`, byte by byte: for one part of an answer only."""
    depth, position = 1 + len(before.rstrip(b'"')), 0
    if before.endswith(b'"') and (rest := REST_OF_JSON_STRING.match(data)):
        position = rest.end()
    for token in JSON_MARK.finditer(data, position):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                return token.end()
    raise UnreadableAnswer("the brackets do not match")


ARRAY_HEAD_BYTES = 64 * 1024
ANSWER_BYTES_LIMIT = 64 << 20
DRAINED_CHUNKS = 16
"""Chunks read after the array so that the connection can serve again."""


class JsonArrayStream(AsyncGenerator[bytes]):
    """The bytes of one JSON array. Until it is read to its end or closed it holds a connection.

    `aclose` gives the connection back even when nothing was read, which a plain generator would not do. An OcsError in the middle means
    that the rest did not arrive.
    """

    def __init__(self, parts: AsyncGenerator[bytes]) -> None:
        self._parts = parts
        self._held = AsyncExitStack()

    def hold(self, held: AsyncExitStack) -> None:
        """Keeps `held` open until the array is closed."""
        self._held.push_async_callback(held.aclose)

    def within(self, before: bytes, after: bytes) -> Self:
        """The same array between `before` and `after`, such as `{"data":` and `}`."""
        self._parts = _surrounded(before, self._parts, after)
        return self

    async def asend(self, value: None, /) -> bytes:
        try:
            return await self._parts.asend(value)
        except BaseException:  # the end too
            await self._held.aclose()
            raise

    async def athrow(
        self, typ: type[BaseException] | BaseException, val: BaseException | object = None, tb: TracebackType | None = None, /
    ) -> bytes:
        """An error from outside ends the array: nothing here could recover from it."""
        await self.aclose()
        raise val if isinstance(val, BaseException) else typ

    async def aclose(self) -> None:
        """Gives the connection back. A second call does nothing."""
        await self._parts.aclose()
        await self._held.aclose()


async def _surrounded(before: bytes, parts: AsyncGenerator[bytes], after: bytes) -> AsyncGenerator[bytes]:
    async with aclosing(parts):
        yield before
        async for part in parts:
            yield part
        yield after


async def begin_array(chunks: AsyncIterator[bytes], path: tuple[str, ...]) -> tuple[int, JsonArrayStream]:
    """Read the beginning: the status code, and the array at `path`. Small or unusually ordered answers are decoded instead."""
    head, complete = await _read_up_to(chunks, ARRAY_HEAD_BYTES)
    found = None if complete else answer_head_pattern(path).match(head)
    if found is None:
        rest, _ = (b"", True) if complete else await _read_up_to(chunks, ANSWER_BYTES_LIMIT)
        document = open_answer(head + rest)
        return answer_status(document), JsonArrayStream(_decoded_array(document, path))
    code = wire_integer(open_answer(found.group(1)).get("code"))
    return code, JsonArrayStream(_array_parts(head[found.end() :], chunks))


async def _read_up_to(chunks: AsyncIterator[bytes], most: int) -> tuple[bytes, bool]:
    """Read until there are `most` bytes; whether that was everything."""
    read = bytearray()
    async for chunk in chunks:
        read += chunk
        if len(read) >= most:
            return bytes(read), False
    return bytes(read), True


def _decoded_array(document: dict[str, Json], path: tuple[str, ...]) -> AsyncGenerator[bytes]:
    value: Json = document
    for name in path:
        value = None if value is None else wire_object(value).get(name)
    if value is not None and not isinstance(value, list):
        raise UnreadableAnswer("an array is expected")
    return _single_part(orjson.dumps(value or []))


async def _single_part(part: bytes) -> AsyncGenerator[bytes]:
    yield part


async def _array_parts(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Choice: members that follow the array are left out; the array's own end is found exactly."""
    scan = JsonArrayScan()
    part: bytes | None = first
    while part is not None:
        try:
            end = scan.feed(part)
        except UnreadableAnswer:
            break
        yield part[:end]
        if end is not None:
            await _drain_chunks(chunks)
            return
        part = await _next_chunk(chunks)
    raise OcsError("The charging system's answer broke off. Call again.")


async def _next_chunk(chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(chunks, None)
    except OutboundFailed:
        return None


async def _drain_chunks(chunks: AsyncIterator[bytes]) -> None:
    for _ in range(DRAINED_CHUNKS):
        if await _next_chunk(chunks) is None:
            return


LONG_ANSWER_BYTES = 1 << 18
"""Decoding so much takes a millisecond or two, and five times its memory."""
SLICE_BYTES = 1 << 15
ROWS_A_TURN = 25
"""Making so many rows fit takes half a millisecond."""
FitRow: TypeAlias = Callable[[Json], Json]
"""Puts a row right, in place. Raises UnreadableAnswer."""
LINES_ARRAY = re.compile(rb'"subscriberList"\s*:\s*(?=\[)')
BETWEEN_ROWS = b"},"
ENDS_TRIED = 50
"""Objects in a row end like it: from the back, so many are taken for the row's end before more of the answer is looked at."""


async def open_long_answer(body: bytes, fit: FitRow) -> dict[str, Json]:
    """The decoded answer, its lines made fit: other tasks get a turn between slices of its list of lines."""
    found = LINES_ARRAY.search(body)
    if found is None:
        return await open_short_answer(body, fit)
    rows, begun = list[Json](), found.end() + 1
    while (end := _slice_end(body, begun)) is not None:
        rows += map(fit, _slice_rows(body[begun:end]))
        begun = end + 1
        await anyio.lowlevel.checkpoint()
    end = begun + _exact_end(body[begun:], b"")
    rows += map(fit, _slice_rows(body[begun : end - 1]))
    document = open_answer(body[: found.end()] + b"[]" + body[end:])
    for value in document.values():
        if isinstance(value, dict) and value.get("subscriberList") == []:
            value["subscriberList"] = rows
    await _fit_lines(document, fit, fitted=rows)  # the list that was sliced may be another one than the answer's
    return document


async def open_short_answer(body: bytes, fit: FitRow) -> dict[str, Json]:
    """The same of an answer that is decoded at once."""
    document = open_answer(body)
    await _fit_lines(document, fit)
    return document


async def _fit_lines(document: dict[str, Json], fit: FitRow, *, fitted: list[Json] | None = None) -> None:
    """Make every list of lines fit but the one that is already, and none of a refusal's."""
    if answer_status(document):
        return
    for value in document.values():
        rows = value.get("subscriberList") if isinstance(value, dict) else None
        if isinstance(rows, list) and rows is not fitted:
            for start in range(0, len(rows), ROWS_A_TURN):
                rows[start : start + ROWS_A_TURN] = map(fit, rows[start : start + ROWS_A_TURN])
                await anyio.lowlevel.checkpoint()


def _slice_end(body: bytes, begun: int) -> int | None:
    """Where a slice of whole rows that begins at `begun` ends: at the comma behind it; None where the rest is short."""
    size = SLICE_BYTES
    while begun + size < len(body):
        end = body.rfind(BETWEEN_ROWS, begun, begun + size)
        for _ in range(ENDS_TRIED):
            if end < 0:
                break
            if _closes_everything(body[begun : end + 1]):
                return end + 1
            end = body.rfind(BETWEEN_ROWS, begun, end)
        size *= 2  # a row is longer, or holds many objects
    return None


def _closes_everything(part: bytes) -> bool:
    """Whether every string, object and array that begins in `part` ends there."""
    if b"\\" in part:
        part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
    return not _reduce_marks(part.translate(None, UNMARKED_BYTES))


def _slice_rows(part: bytes) -> list[Json]:
    """The rows of a part of an array."""
    try:
        return cast("list[Json]", orjson.loads(b"[%b]" % part))
    except orjson.JSONDecodeError:
        raise UnreadableAnswer("a row of a list cannot be read") from None
