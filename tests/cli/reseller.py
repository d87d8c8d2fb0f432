"""The command line as a user runs it: words in, output and exit code out."""

import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tests.harness.processes import environment
from transports.cli.main import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run_reseller(*words: str | Path, cwd: Path, stdin: str = "", **settings: str) -> Done:
    """Run a command to its end, in a pipe. In this process, which saves the imports; what must be a process of its own uses COMMAND."""
    streams = (io.BytesIO(), io.BytesIO())
    out, err = (io.TextIOWrapper(stream, write_through=True) for stream in streams)
    argv, typed = patch.object(sys, "argv", ["reseller", *map(str, words)]), patch.object(sys, "stdin", io.StringIO(stdin))
    code: object = 0
    with chdir(cwd), patch.dict(os.environ, environment(settings), clear=True), argv, typed, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert code is None or isinstance(code, int), code
    return Done(code or 0, streams[0].getvalue().decode(), streams[1].getvalue().decode())


def printed(*words: str | Path, cwd: Path, stdin: str = "", **settings: str) -> str:
    done = run_reseller(*words, cwd=cwd, stdin=stdin, **settings)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def refused(*words: str | Path, cwd: Path, stdin: str = "", **settings: str) -> tuple[int, str]:
    """The exit code and the message of a command that fails; it prints no answer and no traceback."""
    done = run_reseller(*words, cwd=cwd, stdin=stdin, **settings)
    assert done.returncode != 0, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr
