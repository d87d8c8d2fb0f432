"""The whole test command: `./run test`. With arguments it is pytest alone: `./run test tests/storage -k claim`."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS = {
    "ruff check": ["ruff", "check", "--quiet", "."],
    "ruff format": ["ruff", "format", "--check", "--quiet", "."],
    "types (basedpyright)": ["basedpyright"],
    "layers (import-linter)": ["lint-imports", "--no-logo"],
}


class Checked(NamedTuple):
    """How a check went."""

    passed: bool
    seconds: float
    output: str


class Checks:
    """The checks, one after the other beside the tests: these wait for servers and disks often enough to leave them the time."""

    def __init__(self) -> None:
        self.found: dict[str, Checked] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for name, command in CHECKS.items():
            self.found[name] = checked(command)

    def wait(self) -> dict[str, Checked]:
        """All of them, once they are done."""
        self._thread.join()
        return self.found

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Above pytest's closing line, so that this line stays the last one; what a check said is shown only when it failed."""
        terminalreporter.section("checks")
        for name, check in self.wait().items():
            terminalreporter.write_line(f"{name:<24} {'passed' if check.passed else 'FAILED'} in {check.seconds:.1f} s")
            if not check.passed:
                terminalreporter.write_line(check.output)


def checked(command: list[str]) -> Checked:
    """Run one check."""
    started = time.perf_counter()
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Checked(done.returncode == 0, time.perf_counter() - started, done.stdout.strip())


def keep_bytecode() -> None:
    """Hundreds of processes start here: where no bytecode may be written beside the sources, it is kept apart, not made anew by each."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".venv" / "bytecode")


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    keep_bytecode()
    if arguments:
        return int(pytest.main(arguments))
    checks = Checks()
    workers = str((os.cpu_count() or 2) + 1)  # one more than cores: a test that starts a server waits for it
    status = int(pytest.main(["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"], plugins=[checks]))
    return status or int(any(not check.passed for check in checks.wait().values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
