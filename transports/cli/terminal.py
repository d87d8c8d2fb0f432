"""The terminal: failures in one line, text that commands no terminal, progress, secrets and moments that a person gives."""

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, TypeVar

import orjson
import typer

from operations.times import LATEST_UNIX_SECONDS, unix_seconds
from registry.call import Progress, no_progress
from registry.characters import COMMANDING_CHARACTERS
from registry.clock import Clock
from transports.settings import Settings
from transports.settings_files import load_settings


class Failure(Exception):
    """Printed to stderr without a traceback; the exit code says whose fault it was."""

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class Unreachable(Failure):
    """Nobody answers there now: the same call may be answered later."""


def harmless_text(text: str) -> str:
    r"""`text` with control characters as \u escapes, which JSON reads as the same characters."""
    return COMMANDING_CHARACTERS.sub(lambda found: json.dumps(found[0])[1:-1] if found[0] != "\x7f" else r"\u007f", text)


def text_for(stream: TextIO, text: str) -> str:
    """`text` as `stream` gets it. Choice: a pipe gets it unchanged, since programs read it and no terminal obeys it."""
    return harmless_text(text) if stream.isatty() else text


JsonObject = dict[str, object]


def table_cell(value: object, widest: int | None = None) -> str:
    """A value on one line, without control characters: compact JSON if it is no text; cut at `widest` characters."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if widest is None or len(clean) <= widest else clean[: widest - 3] + "..."


def indented_json(answer: object) -> str:
    """`answer` as JSON of several lines, as stdout gets it."""
    return text_for(sys.stdout, orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())


RowT = TypeVar("RowT")


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


CLEAR_LINE = "\r\x1b[K"


@contextmanager
def progress_line() -> Generator[Progress]:
    """The progress callback for a call; it does nothing in a pipe."""
    stream = sys.stderr
    if not stream.isatty():
        yield no_progress
        return

    written = False

    async def tell(done: float, total: float | None, message: str | None) -> None:
        nonlocal written
        written = True
        share = f"{100 * done / total:.0f} %  " if total else ""
        stream.write(f"{CLEAR_LINE}{share}{message or ''}")
        stream.flush()

    try:
        yield tell
    finally:
        if written:
            stream.write(CLEAR_LINE)
            stream.flush()


LONGEST_INPUT = 64 * 1024


def secret_text(option: str, given: str) -> str:
    """The secret from `-` (standard input, without echo for a person) or `@FILE`, without its line end. Raises Failure."""
    if given == "-":
        text = typer.prompt(option.removeprefix("--"), hide_input=True, err=True) if sys.stdin.isatty() else read_stdin(option)
    elif given.startswith("@"):
        text = read_option_file(option, Path(given[1:]))
    else:
        raise Failure(
            f"{option}: a secret is not taken from the command line, where others can read it; nothing was sent. "
            f"Give `{option} -` and type it or pipe it (`{option} - < FILE`), or `{option} @FILE`"
        )
    return str(text).removesuffix("\n").removesuffix("\r")


def input_text(option: str, given: str) -> str:
    """The text of an option that may hold a secret: itself, or from `-` (standard input) or `@FILE`. Raises Failure."""
    if given == "-":
        return read_stdin(option)
    return read_option_file(option, Path(given[1:])) if given.startswith("@") else given


def read_stdin(option: str) -> str:
    try:
        return sys.stdin.read(LONGEST_INPUT + 1)[:LONGEST_INPUT]
    except UnicodeDecodeError:
        raise Failure(f"{option}: standard input is not text") from None


def read_option_file(option: str, path: Path) -> str:
    try:
        return path.read_text()[:LONGEST_INPUT]
    except OSError as error:
        raise Failure(f"{option}: {harmless_text(str(path))} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise Failure(f"{option}: {harmless_text(str(path))} is not text") from None


def warn_of_argument(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    """An option callback. Choice: a key given as an argument works, and a person is told once how to avoid that."""
    source = context.get_parameter_source(parameter.name or "")
    if given and sys.stderr.isatty() and source is not None and source.name == "COMMANDLINE":
        variable = parameter.envvar if isinstance(parameter.envvar, str) else "the environment"
        option = parameter.opts[0]
        sys.stderr.write(f"{option}: others on this machine can read the arguments of a command; {variable} is not shown to them\n")
    return given


AGO_PATTERN = re.compile(r"([0-9]{1,6})([smhdw])")
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
MOMENT_RULE = "must be Unix seconds, a time with its offset such as 2026-11-20T09:00:00Z, or how long ago it was: 30m, 2h, 1d"


def past_moment(option: str, text: str, clock: Clock) -> int:
    """Whole Unix seconds. Raises Failure for a moment in the future."""
    now = clock.now()
    found = parse_moment(option, text, now)
    if found > now:
        raise Failure(f"{option} {text}: has not come yet; {MOMENT_RULE}")
    return int(found)


def parse_moment(option: str, text: str, now: float) -> float:
    """Unix seconds, from any of the forms of MOMENT_RULE. `now`: Unix seconds. Raises Failure."""
    ago = AGO_PATTERN.fullmatch(text)
    if ago is not None:
        return max(0.0, now - int(ago[1]) * UNIT_SECONDS[ago[2]])
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return min(float(text), LATEST_UNIX_SECONDS)
    try:
        found = unix_seconds(text)
    except ValueError:
        raise Failure(f"{option} {text[:60]}: {MOMENT_RULE}") from None
    return found if isinstance(found, float) and found >= 0 else 0.0


def to_stderr(text: str) -> None:
    """Write `text` as a line for the person at the terminal."""
    sys.stderr.write(text_for(sys.stderr, text) + "\n")


def command_settings(**options: object) -> Settings:
    """The settings of a command: its `options` before the environment, and that before the file `.env` of this directory.

    Raises `BadSettings` where they cannot be read or contradict each other.
    """
    return load_settings(os.environ, env_file=Path(".env"), **options)
