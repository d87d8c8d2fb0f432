"""An answer for people on a terminal, or for programs in a pipe."""

import io
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import orjson

from registry.call import Reply
from transports.cli import event_stream
from transports.cli.terminal_text import harmless, shown_on

if TYPE_CHECKING:
    from rich.table import Table

Json = dict[str, object]
WIDEST = 60
DEEPEST = 600
BORDERS = 3  # characters that a table needs beside each column
UNDRAWN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def show(reply: Reply, *, as_json: bool) -> None:
    """Print the answer: JSON unless a person is looking."""
    person = sys.stdout.isatty() and not as_json
    if "json" in reply.media_type:
        sys.stdout.write((pretty(reply.body) if person else shown_on(sys.stdout, plain(reply.body))) + "\n")
    elif reply.media_type.startswith(event_stream.MEDIA_TYPE):
        print_line(event_stream.text(reply.body) if person else event_stream.lines(reply.body))
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


def pretty(body: bytes) -> str:
    """For a person; what cannot be drawn is JSON, since the call was made and its answer may be the only one."""
    try:
        return drawn(orjson.loads(body)).rstrip("\n")
    except UNDRAWN:
        return harmless(plain(body))


def plain(body: bytes) -> str:
    """For a program; what is nested too deeply to be indented, or no JSON at all, as it came."""
    try:
        return indented(orjson.loads(body))
    except UNDRAWN:
        return body.decode(errors="replace")


def indented(answer: object) -> str:
    """As JSON for people."""
    return shown_on(sys.stdout, orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())


def drawn(answer: object) -> str:
    """A list as a table, an object as a record, and an eSIM's code as a picture."""
    if not isinstance(answer, dict):
        return indented(answer)
    answer = cast(Json, answer)
    data = answer.get("data")
    rows = cast("list[object]", data) if isinstance(data, list) else []
    if isinstance(data, dict) and data:
        beside = {name: field for name, field in answer.items() if name not in ("data", "object")}
        shown = drawn_record({**beside, **cast(Json, data)})
    elif rows and all(isinstance(row, dict) for row in rows):
        shown = drawn_rows(cast("list[Json]", rows))
    elif rows:
        shown = "\n".join(cell(row) for row in rows)
    else:
        shown = drawn_record(flat(answer))
    code = activation_code(answer)
    return f"{shown}\n\nScan with the phone that gets the eSIM:\n\n{qr(code)}" if code else shown


def drawn_rows(rows: list[Json]) -> str:
    """A list, one row a line; where that would cut words and ids, which are there to be copied, a field a line."""
    from rich.console import Console  # rich is loaded for a person only
    from rich.table import Table
    from rich.text import Text

    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "object"]
    cells = [[cell(row.get(name, ""), WIDEST) for name in columns] for row in rows]
    widths = [max(longest_word(text) for text in column) for column in zip(map(cell, columns), *cells, strict=True)]
    if not columns or sum(widths) + BORDERS * len(columns) + 1 > Console().width:
        records = (drawn_record({name: field for name, field in row.items() if name != "object"}) for row in rows)
        return "The rows are wider than this terminal, so each is shown a field a line.\n\n" + "\n".join(records)
    table = Table()
    for name, width in zip(columns, widths, strict=True):
        table.add_column(Text(cell(name)), min_width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    return printed(table)


def longest_word(text: str) -> int:
    """Columns between two places where a line may break."""
    from rich.cells import cell_len  # as above

    return max(map(cell_len, text.split()), default=0)


def drawn_record(value: Mapping[str, object]) -> str:
    """One object, a field a line; texts whole, and of a list as much as a person reads."""
    from rich.table import Table  # as above
    from rich.text import Text

    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # to the last character, over several lines where need be
    for name, field in value.items():
        text = cell(field)
        if len(text) > DEEPEST and not isinstance(field, str):
            text = text[:DEEPEST] + "... (--json shows it whole)"
        table.add_row(Text(cell(name), style="bold"), Text(text))
    return printed(table)


def printed(table: "Table") -> str:
    """What the terminal has to be sent."""
    from rich.console import Console  # as above

    console = Console()
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def flat(value: Json) -> Json:
    """Objects in an object as dotted names; what lies deeper stays JSON."""
    found: Json = {}
    for name, field in value.items():
        inner = cast(Json, field) if isinstance(field, dict) else {}
        found.update({f"{name}.{key}": part for key, part in inner.items()} or {name: cast(object, field)})
    return found


def cell(value: object, widest: int | None = None) -> str:
    """A value on one line: compact JSON where it is no text, without control characters, and short where it has to be."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if widest is None or len(clean) <= widest else clean[: widest - 3] + "..."


def activation_code(answer: Json) -> str | None:
    """The LPA string of an issued eSIM, if that is what the answer holds."""
    esim = answer.get("esim")
    code = cast(Json, esim).get("qr_code") if isinstance(esim, dict) else None
    return code if isinstance(code, str) else None


def qr(code: str) -> str:
    """The QR code to scan from the terminal."""
    import segno  # drawn for a person only

    picture = io.StringIO()
    segno.make(code, error="m", micro=False).terminal(picture, compact=True)
    return picture.getvalue()


def print_line(text: str) -> None:
    """The command's output; names in it may be customers'."""
    sys.stdout.write(shown_on(sys.stdout, text) + "\n")


def explain(reply: Reply, command: str) -> str:
    """A refusal, and the next thing to do."""
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


def refusal_body(reply: Reply) -> Json:
    """What the refusal says; whoever stands between may have answered something else."""
    try:
        body = cast(object, orjson.loads(reply.body)) if "json" in reply.media_type else None
    except orjson.JSONDecodeError:
        body = None
    return cast(Json, body) if isinstance(body, dict) else {"error": f"HTTP {reply.status}"}
