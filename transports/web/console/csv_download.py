"""A list of the console as a file: the same filters as the page, `format=csv` in its address, rows that are read while they are sent.

Choice: UTF-8 with a byte order mark. Excel opens a file without one in the code page of its machine, and names become unreadable; what
reads CSV otherwise leaves the mark out. Cells are divided by commas and lines end in CR LF, as RFC 4180 says; the first line holds the
names that the members have in the API, in every language. A text that a spreadsheet would take for a formula begins with an apostrophe;
numbers stay numbers. A file that is not whole says so in its last line, which begins with #: it never looks like a whole one.
"""

import codecs
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import cast

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from operations.changes.plans.sheet import table_lines
from registry.operation import StreamedAnswer
from transports.http.asgi import Overloaded
from transports.http.concurrency import StreamSlots
from transports.http.response import send_stream
from transports.web.console.events import is_still_signed_in
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallArguments, CallOutcome
from transports.web.site import REFERRER_POLICY

MOST_CSV_ROWS = 100_000
ROWS_READ_AT_ONCE = 100
DOWNLOAD_AGAIN_SECONDS = 30
UTF8_MARK = codecs.BOM_UTF8
CSV_MEDIA_TYPE = "text/csv; charset=utf-8"

CsvRow = Mapping[str, object]


class CsvFile(Response):
    """The file as it is sent: counted while it is read, and read no further once the browser hangs up."""

    def __init__(self, name: str, pieces: AsyncGenerator[bytes], slots: StreamSlots, owner: str) -> None:
        headers = {
            "content-type": CSV_MEDIA_TYPE,
            "content-disposition": f'attachment; filename="{name}"',
            "cache-control": "no-store",
            "x-accel-buffering": "no",
            "x-content-type-options": "nosniff",
            "referrer-policy": REFERRER_POLICY,
            "x-robots-tag": "noindex",
        }
        super().__init__(b"", 200, headers)
        del self.headers["content-length"]
        self._pieces, self._slots, self._owner = pieces, slots, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await self._pieces.aclose()
            await super().__call__(scope, receive, send)
            return
        with self._slots.one_more(self._owner):
            await send_stream(receive, send, self.status_code, self.raw_headers, StreamedAnswer(self._pieces, CSV_MEDIA_TYPE))


def every_row(row: CsvRow) -> bool:
    """Nothing is left out."""
    del row
    return True


def is_csv_asked(visit: ConsoleRequest) -> bool:
    """Whether the address asks for the list as a file."""
    return visit.query.get("format") == "csv"


async def csv_download(
    visit: ConsoleRequest,
    name: str,
    operation: str,
    columns: Sequence[str],
    arguments: CallArguments,
    *,
    rows: str = "data",
    named_by: str = "id",
    at_once: int = ROWS_READ_AT_ONCE,
    keep: Callable[[CsvRow], bool] = every_row,
) -> Response:
    """The list that `operation` answers to `arguments` as the file `name`-<day>.csv; a page with the problem where it is refused.

    `columns`: the members of a row that are written, no others; `rows`: the member of the answer that holds them; `named_by`: the member
    of a row after whose value the next page begins; `at_once`: how many are read by one call. Raises Overloaded where too many are
    downloaded.
    """
    slots, owner = visit.context.downloads, visit.organisation
    require_room(slots, owner)
    asked = {**arguments, "limit": at_once}
    first = await visit.read(operation, **asked)
    if first.problem is not None:
        return visit.draw("refused.html", {}, problem=first.problem)
    require_room(slots, owner)  # others that were asked for at the same moment may have begun meanwhile; from here on nothing waits
    day = datetime.fromtimestamp(visit.now, UTC).date().isoformat()
    found = rows_by_page(visit, PageRead(operation, asked), rows, named_by, first)
    return CsvFile(f"{name}-{day}.csv", csv_pieces(found, columns, keep), slots, owner)


def require_room(slots: StreamSlots, owner: str) -> None:
    """Raises Overloaded where too many lists are being downloaded."""
    if not slots.has_room(owner):
        full = Overloaded("Too many lists are being downloaded now", hint="Wait until one has ended, and download it again")
        full.headers.update({"Retry-After": str(DOWNLOAD_AGAIN_SECONDS)})
        raise full


RowsOrNote = Sequence[CsvRow] | str


async def rows_by_page(
    visit: ConsoleRequest, listed: PageRead, member: str, named_by: str, first: CallOutcome
) -> AsyncGenerator[RowsOrNote]:
    """The rows of each page; at last a sentence, where they are not all because the person has gone or a page was refused."""
    outcome = first
    while True:
        page = cast("list[CsvRow]", outcome.body.get(member, []))
        yield page
        after = outcome.next_cursor or (str(page[-1][named_by]) if page and outcome.body.get("has_more") else "")
        if not after:
            return
        if not await is_still_signed_in(visit):
            yield "you have signed out, or your role has changed"
            return
        outcome = await visit.read(listed.operation, **listed.arguments, starting_after=after)
        if outcome.problem is not None:
            yield outcome.problem.text
            return


async def csv_pieces(found: AsyncGenerator[RowsOrNote], columns: Sequence[str], keep: Callable[[CsvRow], bool]) -> AsyncGenerator[bytes]:
    """The file: its heading, the rows that are kept, and why it ends before the list does."""
    yield UTF8_MARK + table_lines([columns])
    room = MOST_CSV_ROWS
    async with aclosing(found):
        async for page in found:
            if isinstance(page, str):
                yield note_line(page, columns)
                return
            kept = [row for row in page if keep(row)]
            yield table_lines([[csv_cell(row.get(column)) for column in columns] for row in kept[:room]])
            if len(kept) > room:
                yield note_line(f"a file holds {MOST_CSV_ROWS} rows; narrow the filters", columns)
                return
            room -= len(kept)


def note_line(why: str, columns: Sequence[str]) -> bytes:
    """The last line of a file that is not whole."""
    return table_lines([[f"# The list goes on, and this file does not: {why}", *[""] * (len(columns) - 1)]])


def csv_cell(value: object) -> object:
    """A member of a row as a cell: words of a list stand behind each other, whatever has parts is JSON, nothing is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value)):
        return " ".join(cast("list[str]", value))
    return value if isinstance(value, (str, int, float)) else orjson.dumps(value).decode()
