"""`python3 ./run prove --part PART [--part PART]`: the long proofs at full length, and what they reached in docs/proofs.md.

Each part runs the command that it names, whole, on the files of one commit, and writes its closing lines with the commit and the date. A
part that is cut off, or that the machine cannot run, writes nothing: it counts as not run. Parts may be run on different days, one after
the other; a commit that changes more than documents makes all of them old.
"""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.__main__ import uncommitted_files
from tests.endurance.circumstances import circumstances
from tests.harness.processes import ROOT
from tests.trial.main import PROOFS_PAGE
from tests.trial.proof import SECTION

FULL_LENGTH = "## At full length"


class Part(NamedTuple):
    """A proof. `closing`: so many of the last lines that the command prints are its figures."""

    words: Sequence[str]
    closing: int = 1

    @property
    def command(self) -> str:
        return "python3 ./run " + " ".join(self.words)


LONG_PROOFS: Mapping[str, Part] = {
    "simulation": Part(("simulate", "--seeds", "100000", "--fresh"), 2),
    "planted bugs": Part(("simulate", "--planted"), 1),
    "kills, SQLite": Part(("kill", "--runs", "500", "--engine", "sqlite")),
    "kills, PostgreSQL": Part(("kill", "--runs", "500", "--engine", "postgres")),
    "endurance, SQLite": Part(("endure", "--engine", "sqlite", "--minutes", "30"), 1),
    "endurance, PostgreSQL": Part(("endure", "--engine", "postgres", "--minutes", "30"), 1),
    "fuzz, HTTP": Part(("fuzz", "calls", "sequences", "machines", "--examples", "300", "--minutes", "600"), 2),
    "fuzz, MCP": Part(("fuzz", "tools", "--examples", "300", "--minutes", "600"), 2),
    "faults": Part(("test", "tests/faults", "tests/top_ups/test_unknown.py", "tests/issuance/test_unknown.py"), 1),
}


class ProofCutOff(Exception):
    """The command did not come to its end."""


class Outcome(NamedTuple):
    """What a part came to: the figures at its end, the seconds that it took, whether it held."""

    figures: str
    seconds: float
    held: bool


def run_part(part: Part, start: Sequence[str]) -> Outcome:
    """Runs a part and shows what it prints. `start`: the words that begin its command. Raises ProofCutOff where a signal ends it.

    Ctrl-C is passed on, once: the command ends the servers and databases that it has started.
    """
    began, last = time.monotonic(), list[str]()
    with subprocess.Popen([*start, *part.words], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                sys.stdout.write(line)
                sys.stdout.flush()
                if line.strip():
                    last = [*last, line.strip()][-part.closing :]
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            raise ProofCutOff from None
    if process.returncode not in (0, 1) or not last:  # 1: it came to its end, and something did not hold
        raise ProofCutOff
    return Outcome("; ".join(last), time.monotonic() - began, process.returncode == 0)


def row_of(name: str, part: Part, outcome: Outcome, about: Mapping[str, object]) -> str:
    """The row of the table."""
    cells = (
        name,
        f"`{part.command}`",
        str(about["revision"]),
        str(about["date"]),
        outcome.figures.strip("= ").replace("|", "/"),
        f"{outcome.seconds / 60:.0f} min",
        "yes" if outcome.held else "**no**",
    )
    return "| " + " | ".join(cells) + " |"


def keep_row(text: str, name: str, row: str) -> str:
    """The page with this row in the place of the part's former one; the parts stand in their order."""
    before, found, rest = text.partition(FULL_LENGTH)
    section, more = (rest[:ends], rest[ends:]) if (ends := rest.find(SECTION)) >= 0 else (rest, "")
    if not found:
        raise SystemExit(f"{PROOFS_PAGE.name} has no section {FULL_LENGTH.strip('# ')!r}: the rows of this command belong there")
    lines = section.split("\n")
    table = [number for number, line in enumerate(lines) if line.startswith("|")]
    begins, last = table[0], table[-1] + 1
    rows = {line.split(" | ")[0].strip("| "): line for line in lines[begins + 2 : last]}
    rows[name] = row
    kept = [*lines[begins : begins + 2], *(rows[each] for each in LONG_PROOFS if each in rows)]
    return before + found + "\n".join([*lines[:begins], *kept, *lines[last:]]) + more


def prove(names: Sequence[str], start: Sequence[str], page: Path) -> int:
    """Runs the parts one after the other. 0: all held."""
    code = 0
    for name in names:
        part, about = LONG_PROOFS[name], circumstances()
        sys.stdout.write(f"{name}: {part.command}\n")
        sys.stdout.flush()
        try:
            outcome = run_part(part, start)
        except ProofCutOff:
            sys.stdout.write(f"{name}: cut off, which counts as not run\n")
            return 2
        page.write_text(keep_row(page.read_text(), name, row_of(name, part, outcome, about)))
        code = code or int(not outcome.held)
    return code


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--part", action="append", choices=list(LONG_PROOFS), default=[], help="may be repeated; all by default, which takes hours"
    )
    given = parser.parse_args(arguments)
    if changed := uncommitted_files():
        parser.error("commit first, or put aside: " + ", ".join(changed))
    return prove(given.part or list(LONG_PROOFS), [sys.executable, str(ROOT / "run")], PROOFS_PAGE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
