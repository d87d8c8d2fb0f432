"""The whole test command: `./run test`. With arguments it is pytest alone: `./run test tests/storage -k claim`."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS = {
    "ruff check": ["ruff", "check", "--quiet", "."],
    "ruff format": ["ruff", "format", "--check", "--quiet", "."],
    "types (basedpyright)": ["basedpyright"],
    "layers (import-linter)": ["lint-imports", "--no-logo"],
}


class Summary:
    """Repeats how the checks went above pytest's closing line, so that this line stays the last one."""

    def __init__(self, failed: list[str]) -> None:
        self.failed = failed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("checks")
        for name in CHECKS:
            terminalreporter.write_line(f"{name:<24} {'FAILED, see above' if name in self.failed else 'passed'}")


def passes(name: str, command: list[str]) -> bool:
    """Run one check and say at once how it went; its output is shown only when it failed."""
    print(f"{name:<24} ", end="", flush=True)
    started = time.perf_counter()
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"{'passed' if done.returncode == 0 else 'FAILED'} in {time.perf_counter() - started:.1f} s", flush=True)
    if done.returncode != 0:
        print(done.stdout.strip(), flush=True)
    return done.returncode == 0


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
    failed = [name for name, command in CHECKS.items() if not passes(name, command)]
    status = int(pytest.main(["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"], plugins=[Summary(failed)]))
    return status or int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
