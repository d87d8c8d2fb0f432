"""Secrets of the command line: arguments can be read by everybody on the machine while a command runs, and stay in a shell's history."""

import sys
from pathlib import Path

import typer

from transports.cli.failure import Failure
from transports.cli.terminal_text import harmless

LONGEST = 64 * 1024


def secret_text(option: str, given: str) -> str:
    """What `-` (standard input, asked for without echo where a person sits) or `@FILE` holds, without the end of its line."""
    if given == "-":
        text = typer.prompt(option.removeprefix("--"), hide_input=True, err=True) if sys.stdin.isatty() else read_input(option)
    elif given.startswith("@"):
        text = read_file(option, Path(given[1:]))
    else:
        raise Failure(
            f"{option}: a secret is not taken from the command line, where others can read it; nothing was sent. "
            f"Give `{option} -` and type it or pipe it (`{option} - < FILE`), or `{option} @FILE`"
        )
    return str(text).removesuffix("\n").removesuffix("\r")


def input_text(option: str, given: str) -> str:
    """The text of an option that may hold a secret: itself, standard input (`-`) or a file (`@FILE`)."""
    if given == "-":
        return read_input(option)
    return read_file(option, Path(given[1:])) if given.startswith("@") else given


def read_input(option: str) -> str:
    """All of standard input."""
    try:
        return sys.stdin.read(LONGEST + 1)[:LONGEST]
    except UnicodeDecodeError:
        raise Failure(f"{option}: standard input is not text") from None


def read_file(option: str, path: Path) -> str:
    """All of a file."""
    try:
        return path.read_text()[:LONGEST]
    except OSError as error:
        raise Failure(f"{option}: {harmless(str(path))} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise Failure(f"{option}: {harmless(str(path))} is not text") from None


def warn_of_argument(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    """An option callback. Choice: a key that is given as an argument still works, and a person is told once how not to."""
    source = context.get_parameter_source(parameter.name or "")
    if given and sys.stderr.isatty() and source is not None and source.name == "COMMANDLINE":
        variable = parameter.envvar if isinstance(parameter.envvar, str) else "the environment"
        option = parameter.opts[0]
        sys.stderr.write(f"{option}: others on this machine can read the arguments of a command; {variable} is not shown to them\n")
    return given
