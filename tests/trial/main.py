"""`python3 ./run trial [--seconds S] [--only TRIAL] [--write]`: production in one piece, and what falls around it, with real processes.

Standard error says which trial begins, and how many of its aims were missed; the table of all comes at the end. The exit code is 1 when an
aim is missed, 2 when the machine lacks something.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import httpx

from tests.fuzz.loop import say
from tests.harness.processes import ROOT
from tests.trial.installation import lacks
from tests.trial.kills import kill
from tests.trial.mixed_load import load
from tests.trial.outages import outage
from tests.trial.plan import TrialPlan
from tests.trial.proof import ProofRow, is_busy, missed, progress, proof_page, proof_table, surroundings, write_page
from tests.trial.replacements import replace
from tests.trial.shared_limits import limits

Trial = Callable[[TrialPlan], Coroutine[None, None, list[ProofRow]]]
TRIALS: Mapping[str, Trial] = {"load": load, "kill": kill, "outage": outage, "limits": limits, "replace": replace}
FAULTS = (AssertionError, OSError, SystemExit, httpx.HTTPError, subprocess.SubprocessError)
"""What ends a trial early; TimeoutError is an OSError."""
PROOFS_PAGE = ROOT / "docs" / "proofs.md"
SHORTEST = 1.0


def reader() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run trial", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the load, of the kills and of the outages (60)")
    parser.add_argument("--only", action="append", choices=list(TRIALS), default=[], help="a trial; may be repeated; all by default")
    parser.add_argument("--rate", type=float, default=100.0, help="calls a second that need the charging system while it hangs (100)")
    parser.add_argument("--seed", type=int, default=1, help="of what is asked")
    parser.add_argument("--write", action="store_true", help="write docs/proofs.md")
    return parser


def attempt(name: str, trial: Trial, given: argparse.Namespace) -> list[ProofRow]:
    """One trial, in a folder of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"trial-{name}-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        try:
            return asyncio.run(trial(TrialPlan(Path(folder), given.seconds, given.rate, given.seed)))
        except FAULTS as error:
            return [ProofRow(name, "did not come to its end", f"{type(error).__name__}: {str(error)[:500]}".replace("\n", " "), "", False)]


def attempts(trials: Mapping[str, Trial], given: argparse.Namespace) -> list[ProofRow]:
    """One trial after the other; each is named before it begins, since it may be silent for minutes."""
    proofs: list[ProofRow] = []
    for name, trial in trials.items():
        say(f"trial {name}: starting", sys.stderr)
        found = attempt(name, trial, given)
        say(f"trial {name}: {progress(found)}", sys.stderr)
        proofs += found
    return proofs


def main(arguments: Sequence[str]) -> int:
    parser = reader()
    given = parser.parse_args(arguments)
    if given.seconds < SHORTEST or given.rate <= 0:
        parser.error(f"--seconds must be at least {SHORTEST:g}, --rate more than 0")
    if lacking := lacks():
        say(f"no trial on this machine: {lacking}")
        return 2
    about, busy = surroundings(), is_busy()
    proofs = attempts({name: TRIALS[name] for name in given.only or TRIALS}, given)
    say(f"{about}\n\n{proof_table(proofs)}")
    if given.write:
        write_page(PROOFS_PAGE, proof_page(about, proofs, busy=busy))
    return int(bool(missed(proofs)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
