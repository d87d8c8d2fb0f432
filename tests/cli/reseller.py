"""The command line as a user runs it: a process, its output and its exit code."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-P", "-m", "transports.cli"]


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without the settings of the machine the tests run on."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "RESELLER_"))}
    return {**inherited, "PYTHONPATH": str(ROOT), **(given or {})}


def reseller(*words: str | Path, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a pipe."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=environment(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def said(*words: str | Path, cwd: Path, **settings: str) -> str:
    """What a command that succeeds prints."""
    done = reseller(*words, cwd=cwd, **settings)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def refused(*words: str | Path, cwd: Path, **settings: str) -> tuple[int, str]:
    """The exit code and the message of a command that fails; it prints no answer and no traceback."""
    done = reseller(*words, cwd=cwd, **settings)
    assert done.returncode != 0, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr
