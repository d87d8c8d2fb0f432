"""The test command: `./run test` tries what the commit draws, `./run test --whole` all; named files are handed to pytest alone."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import pytest

from tests import draw, ramdisk

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SPREAD = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")
"""On three workers. One that dies ends the run: whoever takes over its last test waits forever for the next one (pytest-xdist 3.8)."""

QUICK = {
    "ruff check": ["ruff", "check", "--quiet", "."],
    "ruff format": ["ruff", "format", "--check", "--quiet", "."],
    "layers (import-linter)": ["lint-imports", "--no-logo"],
}
TYPES = "types (basedpyright)"
LONGEST_CHECK = 600
"""For so many seconds a check may be waited for."""


class Types:
    """The check of the types. It takes minutes of one core, so it runs beside the tests, as one of them: yielding, it would end last."""

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._process = subprocess.Popen(
            [str(BIN / "basedpyright")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def said(self) -> str | None:
        """Waits for it; what it found, or nothing when there is nothing wrong."""
        try:
            if self._process.wait(LONGEST_CHECK) == 0:
                return None
        except subprocess.TimeoutExpired:
            return f"it has not ended {LONGEST_CHECK // 60} minutes after the tests"
        self._output.seek(0)
        return self._output.read().strip() or "it ended without a word"

    def end(self) -> None:
        """If it still runs, nobody waits for it: it and what it started end."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Summary:
    """Repeats how the checks went above pytest's closing line, so that this line stays the last one."""

    def __init__(self, failed: list[str], types: Types) -> None:
        self.failed, self._types = failed, types

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.INTERRUPTED:  # whoever wants to stop does not wait for the types
            return
        wrong = self._types.said()
        terminalreporter.section("checks")
        if wrong is not None:
            self.failed.append(TYPES)
            terminalreporter.write_line(wrong)
        for name in (*QUICK, TYPES):
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
        timeout=LONGEST_CHECK,
    )
    print(f"{'passed' if done.returncode == 0 else 'FAILED'} in {time.perf_counter() - started:.1f} s", flush=True)
    if done.returncode != 0:
        print(done.stdout.strip(), flush=True)
    return done.returncode == 0


HELP = f"""\
usage: python3 ./run test [--whole | FILES OR OPTIONS OF PYTEST]

  run test              the checks, every quick test, and one in {draw.ONE_IN} of the long tests, the cases and the operations
  run test --whole      the checks and all tests: half an hour or more on two cores; before a release
  run test tests/kill   all tests of what is named, by pytest alone; -h shows its options

Each commit draws others, so that between them the commits try all. What the last commit changed, or nobody yet committed, is never
drawn away. TEST_DRAW=KEY run test draws again what a run has drawn that named this key. A drawn run does not prove that a long
test which it left out still passes.
"""


def everything(*, whole: bool) -> int:
    """The checks and the tests. Failing checks are told at the end, too: nothing keeps the tests from running."""
    share = () if whole else ("--draw", draw.usual_key())
    with tempfile.TemporaryFile("w+") as output:
        types = Types(output)
        try:
            failed = [name for name, command in QUICK.items() if not passes(name, command)]
            print(f"{TYPES:<24} runs beside the tests", flush=True)
            status = int(pytest.main([*SPREAD, *share], plugins=[Summary(failed, types)]))
            return status or int(bool(failed) or types.said() is not None)
        finally:
            types.end()


def keep_bytecode() -> None:
    """Hundreds of processes start here: where no bytecode may be written beside the sources, it is kept apart, not made anew by each."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".venv" / "bytecode")


def hear_interrupts() -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and so would every program of the tests that are ended by it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main(arguments: list[str]) -> int:
    if arguments == ["--help"]:
        print(HELP, end="")
        return 0
    os.chdir(ROOT)
    keep_bytecode()
    hear_interrupts()
    ramdisk.use()  # before anything is started: what has this folder ends with this process, however it ends
    if arguments in ([], ["--whole"]):
        return everything(whole=bool(arguments))
    return int(pytest.main(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
