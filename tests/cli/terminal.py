"""A command at a terminal: a pseudo-terminal instead of pipes."""

import os
import pty
import select
import subprocess
from pathlib import Path

from tests.cli.reseller import COMMAND, environment


def at_terminal(*words: str, cwd: Path, columns: int = 140, **settings: str) -> tuple[int, str]:
    """Exit code and everything shown."""
    ours, theirs = pty.openpty()
    given = {**environment(settings), "COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, *words], cwd=cwd, env=given, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        shown = read_all(ours)
        code = process.wait(30)
    os.close(ours)
    return code, shown


def read_all(descriptor: int) -> str:
    """Until the other side has closed, which a pseudo-terminal tells as an error."""
    shown = b""
    while select.select([descriptor], [], [], 30)[0]:
        try:
            read = os.read(descriptor, 65_536)
        except OSError:
            break
        if not read:
            break
        shown += read
    return shown.decode()
