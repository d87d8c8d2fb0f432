"""A command at a terminal: a pseudo-terminal instead of pipes."""

import os
import pty
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Thread
from unittest.mock import patch

from tests.harness.processes import environment
from transports.cli.main import main


def at_terminal(*words: str, cwd: Path, columns: int = 140, settings: Mapping[str, str] | None = None, typed: str = "") -> tuple[int, str]:
    """Exit code and everything shown; `typed` waits there from the beginning.

    In this process, which saves the imports; the terminal is a real one all the same.
    """
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    shown: list[bytes] = []
    reader = Thread(target=read_all, args=(ours, shown))
    reader.start()
    given = {**environment(settings), "COLUMNS": str(columns), "TERM": "xterm"}
    argv, code = patch.object(sys, "argv", ["reseller", *words]), None
    try:
        with (
            os.fdopen(theirs, "w", encoding="utf-8") as out,
            os.fdopen(os.dup(theirs), encoding="utf-8") as keyboard,
            chdir(cwd),
            patch.dict(os.environ, given, clear=True),
            patch.object(sys, "stdin", keyboard),
            argv,
            redirect_stdout(out),
            redirect_stderr(out),
        ):
            main()
    except SystemExit as ended:
        code = ended.code
    finally:
        reader.join()
        os.close(ours)
    assert code is None or isinstance(code, int), code
    return code or 0, b"".join(shown).decode()


def read_all(descriptor: int, shown: list[bytes]) -> None:
    """Until the other side has closed, which a pseudo-terminal tells as an error."""
    while True:
        try:
            read = os.read(descriptor, 65_536)
        except OSError:
            return
        if not read:
            return
        shown.append(read)
