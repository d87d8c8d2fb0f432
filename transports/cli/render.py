"""An answer for people on a terminal, or for programs in a pipe; also one that is a stream of events."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import orjson

from registry.call import Reply
from transports.cli.terminal import harmless_text, text_for

if TYPE_CHECKING:
    from rich.table import Table


EVENT_STREAM_TYPE = "text/event-stream"
JsonObject = dict[str, object]
RowT = TypeVar("RowT")


class StreamEvent(NamedTuple):
    name: str
    data: JsonObject


def stream_events(body: bytes) -> Iterator[StreamEvent]:
    """Every event with JSON in it; comments only keep the connection alive."""
    for block in body.decode(errors="replace").split("\n\n"):
        parts = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
        fields = {name: value for name, _, value in parts}
        if "data" in fields:
            yield StreamEvent(fields.get("event", "message"), cast(JsonObject, orjson.loads(fields["data"])))


def event_text(body: bytes) -> str:
    """The streamed text without control characters, and the quota that it used."""
    events = list(stream_events(body))
    text = "".join(str(event.data.get("text", "")) for event in events if event.name == "delta")
    clean = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    used = [f"{event.data.get('used')} of {event.data.get('limit')} AI calls used today" for event in events if event.name == "quota"]
    return "\n\n".join([*([clean] if clean else []), *used])


def stream_failure(body: bytes) -> str | None:
    """Why the answer stopped early; None if it did not."""
    last = next((event.data for event in stream_events(body) if event.name == "error"), None)
    return None if last is None else f"{last.get('error')}  [{last.get('code')}]"


CURSOR_FIELD = "starting_after"


def next_cursor(reply: Reply) -> str | None:
    """The cursor of the answer's headers, else the last id of a list that says it has more; None at the end."""
    if reply.next_cursor is not None or "json" not in reply.media_type:
        return reply.next_cursor
    try:
        answer = cast(object, orjson.loads(reply.body))
    except orjson.JSONDecodeError:
        return None
    page = cast("dict[str, object]", answer) if isinstance(answer, dict) else {}
    rows = page.get("data")
    last = cast("list[object]", rows)[-1] if isinstance(rows, list) and rows and page.get("has_more") is True else None
    id = cast("dict[str, object]", last).get("id") if isinstance(last, dict) else None
    return str(id) if isinstance(id, str | int) else None


WIDEST_CELL = 60
LONGEST_FIELD = 600
COLUMN_BORDERS = 3  # characters that a table needs beside each column
NOT_DRAWABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def print_reply(reply: Reply, *, as_json: bool) -> None:
    """Prints the answer: as JSON unless a person reads it."""
    person = sys.stdout.isatty() and not as_json
    if "json" in reply.media_type:
        sys.stdout.write((terminal_json(reply.body) if person else text_for(sys.stdout, plain_json(reply.body))) + "\n")
    elif reply.media_type.startswith(EVENT_STREAM_TYPE):
        print_line(
            event_text(reply.body) if person else "\n".join(orjson.dumps(event._asdict()).decode() for event in stream_events(reply.body))
        )
    elif sys.stdout.isatty():
        print_line(document_text(reply))
    else:
        sys.stdout.buffer.write(reply.body)
        sys.stdout.buffer.flush()


def document_text(reply: Reply) -> str:
    """A document on a terminal: text as text, anything else only named."""
    kind = reply.media_type.partition(";")[0]
    if kind.startswith("text/") or kind.endswith(("+xml", "/xml")):
        return reply.body.decode(errors="replace").rstrip("\n")
    return f"{len(reply.body)} bytes of {kind}, which a terminal does not show: send the output to a file, > FILE"


def terminal_json(body: bytes) -> str:
    """`body` for a person. JSON where it cannot be drawn, since the call was made and its answer may be the only one."""
    try:
        return draw_answer(orjson.loads(body)).rstrip("\n")
    except NOT_DRAWABLE:
        return harmless_text(plain_json(body))


def plain_json(body: bytes) -> str:
    """`body` for a program, indented; as it is if it is nested too deeply or is no JSON."""
    try:
        return indented_json(orjson.loads(body))
    except NOT_DRAWABLE:
        return body.decode(errors="replace")


def indented_json(answer: object) -> str:
    return text_for(sys.stdout, orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())


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
    """A table, one row a line; where it would cut words and ids, a field a line, since people copy them."""
    from rich.console import Console  # rich is loaded for a person only
    from rich.table import Table
    from rich.text import Text

    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "object"]
    cells = [[table_cell(row.get(name, ""), WIDEST_CELL) for name in columns] for row in rows]
    widths = [max(longest_word(text) for text in column) for column in zip(map(table_cell, columns), *cells, strict=True)]
    if not columns or sum(widths) + COLUMN_BORDERS * len(columns) + 1 > Console().width:
        records = (draw_record({name: field for name, field in row.items() if name != "object"}) for row in rows)
        return "The rows are wider than this terminal, so each is shown a field a line.\n\n" + "\n".join(records)
    table = Table()
    for name, width in zip(columns, widths, strict=True):
        table.add_column(Text(table_cell(name)), min_width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    return rendered_table(table)


def longest_word(text: str) -> int:
    from rich.cells import cell_len  # as above

    return max(map(cell_len, text.split()), default=0)


def draw_record(value: Mapping[str, object]) -> str:
    """One object, a field a line; texts whole, and of a list as much as a person reads."""
    from rich.table import Table  # as above
    from rich.text import Text

    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # to the last character, over several lines where need be
    for name, field in value.items():
        text = table_cell(field)
        if len(text) > LONGEST_FIELD and not isinstance(field, str):
            text = text[:LONGEST_FIELD] + "... (--json shows it whole)"
        table.add_row(Text(table_cell(name), style="bold"), Text(text))
    return rendered_table(table)


def rendered_table(table: "Table") -> str:
    from rich.console import Console  # as above

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


def table_cell(value: object, widest: int | None = None) -> str:
    """A value on one line, without control characters: compact JSON if it is no text; cut at `widest` characters."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if widest is None or len(clean) <= widest else clean[: widest - 3] + "..."


def activation_code(answer: JsonObject) -> str | None:
    """The LPA string of an issued eSIM, if that is what the answer holds."""
    esim = answer.get("esim")
    code = cast(JsonObject, esim).get("qr_code") if isinstance(esim, dict) else None
    return code if isinstance(code, str) else None


def qr_picture(code: str) -> str:
    import segno  # drawn for a person only

    picture = io.StringIO()
    segno.make(code, error="m", micro=False).terminal(picture, compact=True)
    return picture.getvalue()


def print_rows(rows: Sequence[RowT], cells: Callable[[RowT], Iterable[str]], *, as_json: bool) -> None:
    """Print `rows` as one JSON object, or each as a line of its `cells` with tabs between them."""
    if as_json:
        print_line(indented_json({"data": rows}))
        return
    for row in rows:
        print_line("\t".join(map(table_cell, cells(row))))


def print_line(text: str) -> None:
    """Print a line of the command's output; names in it may be customers', so a terminal gets it without control characters."""
    sys.stdout.write(text_for(sys.stdout, text) + "\n")


def explain_refusal(reply: Reply, command: str) -> str:
    """The refusal, and what to do next. `command`: what to type again."""
    body = refusal_body(reply)
    lines = [f"{body.get('error', body.get('message', ''))}  [{body.get('code', reply.status)}]"]
    if body.get("hint") and reply.status != 202:  # a header's name is of no use here, and the command is told below
        lines.append(f"  {body['hint']}")
    following = {
        401: "Here the credential is given with --key or RESELLER_API_KEY\n  or once and for all: `reseller login --url URL`",
        402: f"Upgrade: {body.get('upgrade_url')}",
        409: f"Connect: {body.get('connect_url')}" if body.get("connect_url") else "",
        429: f"Starts again at {body.get('reset_at')}; a larger tier: {body.get('upgrade_url')}",
        202: f"To do it: {command} --confirm-token {body.get('confirm_token')}",
    }.get(reply.status, "")
    lines += [f"  {following}"] if following else []
    lines += [f"  request id {body['request_id']}"] if body.get("request_id") else []
    return "\n".join(lines)


def refusal_body(reply: Reply) -> JsonObject:
    """The body of a refusal; a proxy's answer has only its status."""
    try:
        body = cast(object, orjson.loads(reply.body)) if "json" in reply.media_type else None
    except orjson.JSONDecodeError:
        body = None
    return cast(JsonObject, body) if isinstance(body, dict) else {"error": f"HTTP {reply.status}"}
