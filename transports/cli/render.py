"""An answer for people on a terminal, or for programs in a pipe."""

import sys
from collections.abc import Mapping
from typing import cast

import orjson

from registry.call import Reply

Json = dict[str, object]
WIDEST = 60
BORDERS = 3  # characters that a table needs beside each column


def show(reply: Reply, *, as_json: bool, pick: str | None = None) -> None:
    """Print the answer: JSON unless a person is looking."""
    if "json" not in reply.media_type:
        sys.stdout.buffer.write(reply.body)
        sys.stdout.buffer.flush()
        return
    answer = cast(Json, orjson.loads(reply.body))
    if as_json or not sys.stdout.isatty():
        print_line(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
        return
    rows = cast(list[Json], answer.get("data", []))
    if rows:
        show_table(rows)
    else:
        show_object(answer)
    code = activation_code(answer)
    if code:
        show_qr(code)


def show_table(rows: list[Json]) -> None:
    """A list, one row a line; where that would cut words and ids, which are there to be copied, a field a line."""
    from rich.console import Console  # rich is loaded for a person only
    from rich.table import Table

    columns = [name for name in rows[0] if name != "object"]
    cells = [[cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(longest_word(text) for text in column) for column in zip(columns, *cells, strict=True)]
    console = Console()
    if sum(widths) + BORDERS * len(columns) + 1 > console.width:
        print_line("The rows are wider than this terminal, so each is shown a field a line.")
        for row in rows:
            print_line("")
            show_object({name: field for name, field in row.items() if name != "object"})
        return
    table = Table()
    for name, width in zip(columns, widths, strict=True):
        table.add_column(name, min_width=width)
    for row in cells:
        table.add_row(*row)
    console.print(table)


def longest_word(text: str) -> int:
    """Columns between two places where a line may break."""
    from rich.cells import cell_len  # as above
    from rich.text import Text

    return max(map(cell_len, Text.from_markup(text).plain.split()), default=0)


def show_object(value: Json) -> None:
    """One object, a field a line."""
    from rich.console import Console  # as above
    from rich.table import Table

    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # to the last character, over several lines where need be
    for name, field in flat(value).items():
        table.add_row(f"[bold]{name}[/bold]", cell(field))
    Console().print(table)


def flat(value: Mapping[str, object], prefix: str = "") -> Json:
    """Nested objects as dotted names."""
    found: Json = {}
    for name, field in value.items():
        if isinstance(field, dict) and field:
            found.update(flat(cast(Json, field), f"{prefix}{name}."))
        else:
            found[prefix + name] = field
    return found


def cell(value: object) -> str:
    """A value in few characters, with rich's markup made harmless."""
    from rich.markup import escape  # as above

    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return escape(clean if len(clean) <= WIDEST else clean[: WIDEST - 3] + "...")


def activation_code(answer: Json) -> str | None:
    """The LPA string of an issued eSIM, if that is what the answer holds."""
    esim = cast(dict[str, str | None] | None, answer.get("esim"))
    return esim.get("qr_code") if esim else None


def show_qr(code: str) -> None:
    """The QR code to scan from the terminal."""
    import segno  # drawn for a person only

    print_line("\nScan with the phone that gets the eSIM:\n")
    segno.make(code, error="m", micro=False).terminal(compact=True)


def print_line(text: str) -> None:
    """The command's output."""
    sys.stdout.write(text + "\n")


def explain(reply: Reply, command: str) -> str:
    """A refusal, and the next thing to do."""
    body = cast(Json, orjson.loads(reply.body)) if "json" in reply.media_type else {"error": f"HTTP {reply.status}"}
    lines = [f"{body.get('error', body.get('message', ''))}  [{body.get('code', reply.status)}]"]
    lines += [f"  {body['hint']}"] if body.get("hint") else []
    following = {
        402: f"Upgrade: {body.get('upgrade_url')}",
        409: f"Connect: {body.get('connect_url')}" if body.get("connect_url") else "",
        429: f"Starts again at {body.get('reset_at')}; a larger tier: {body.get('upgrade_url')}",
        202: f"To do it: {command} --confirm-token {body.get('confirm_token')}",
    }.get(reply.status, "")
    lines += [f"  {following}"] if following else []
    lines += [f"  request id {body['request_id']}"] if body.get("request_id") else []
    return "\n".join(lines)
