"""`python3 ./run fuzz [--only OPERATION] [--as KIND] [--examples N] [--seed S]`: generated calls, sequences of them, state machines."""

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from operations.catalogue import CATALOGUE
from registry.catalogue import AnyOperation
from tests import ramdisk
from tests.fuzz import accounts, limits, loop, outage
from tests.fuzz.app_under_test import AppUnderTest
from tests.fuzz.engine import STEPS, FuzzPlan, FuzzVerdict, fuzz
from tests.fuzz.furnished import KINDS
from tests.fuzz.machines import MACHINES, play
from tests.fuzz.tools_under_test import TOOLS, ToolsUnderTest

PARTS = ("calls", "tools", "sequences", "machines")
COMMANDS = {"loop": loop.main, "limits": limits.main, "outage": outage.main, "accounts": accounts.main}
"""What measures real servers; each has words of its own."""
MEASURES = """commands that measure real servers, each with --help:
  run fuzz loop      how long others wait while somebody sends the worst that they may
  run fuzz limits    what several servers on one database let through together
  run fuzz outage    what others meet while the charging system hangs
  run fuzz accounts  lists and draws of an account with 30,000 lines
"""
SHOWN = 5
SHARE = 8
"""Whoever may do less is asked a share of the examples: the same inputs, and mostly refused."""


@dataclass
class Total:
    """What the whole run came to."""

    ends: float
    calls: int = 0
    statuses: Counter[int] = field(default_factory=Counter[int])
    checks: Counter[str] = field(default_factory=Counter[str])
    failed: list[str] = field(default_factory=list[str])
    left: int = 0

    def over(self) -> bool:
        """Whether the time is; what would have come next is counted."""
        self.left += (late := time.monotonic() > self.ends)
        return late


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def wanted(only: list[str], part: str) -> list[AnyOperation]:
    """The operations whose id is, or begins with, one of the words; of several slices one."""
    found = [o for o in CATALOGUE.operations.values() if not only or any(o.id.startswith(word) for word in only)]
    if not found:
        sys.exit(f"no operation is called {' or '.join(only)}: `reseller reference` lists them")
    number, of = (int(word) for word in part.split("/"))
    return found[number - 1 :: of]


def ask(part: str, operation: AnyOperation | None, plan: FuzzPlan, total: Total) -> None:
    started, again = time.perf_counter(), f"--as {plan.kind} --examples {plan.examples} --seed {plan.seed}"
    made, name = ToolsUnderTest if part == "tools" else AppUnderTest, part if operation is None else operation.id
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        verdict = fuzz(made(Path(folder), operation), plan)
    total.calls += verdict.calls
    total.statuses += verdict.statuses
    total.checks += verdict.checks
    spent, told = time.perf_counter() - started, " ".join(f"{status}:{count}" for status, count in sorted(verdict.statuses.items()))
    say(f"{spent:6.1f} s {verdict.calls:6} calls as {plan.kind:<10} {name:<60} {told}")
    if verdict.failures:
        only = "" if operation is None else f" --only {name}"
        show(verdict, f"python3 ./run fuzz {part}{only} {again}", total)


def show(verdict: FuzzVerdict, again: str, total: Total) -> None:
    """What broke, and how to see it once more."""
    found = sorted(set(verdict.failures))
    total.failed.append(again)
    say(f"FAILED {len(found)} ways; replay with: {again}")
    for failure in found[:SHOWN]:
        say("    " + failure.replace("\n", "\n    "))


def calls(given: argparse.Namespace, total: Total) -> None:
    """Each operation by itself over HTTP, in a house of its own, as each kind of caller."""
    one_by_one("calls", wanted(given.only, given.slice), given, total)


def tools(given: argparse.Namespace, total: Total) -> None:
    """The same of each tool, over MCP."""
    one_by_one("tools", [operation for operation in wanted(given.only, given.slice) if operation.id in TOOLS], given, total)


def one_by_one(part: str, operations: Sequence[AnyOperation], given: argparse.Namespace, total: Total) -> None:
    for operation in operations:
        for kind in given.kinds or KINDS:
            share = given.examples if kind == "admin" or given.kinds else max(1, given.examples // SHARE)
            if not total.over():
                ask(part, operation, FuzzPlan(share, given.seed, kind, shrink=given.shrink), total)


def sequences(given: argparse.Namespace, total: Total) -> None:
    """Sequences of calls in one house, where a call names what the ones before it answered.

    What was answered is drawn from, which Hypothesis takes for flaky and ends at: the next seed goes on, until as many calls were made.
    """
    for kind in given.kinds or ("admin", "member"):
        seed, enough = given.seed, total.calls + given.examples * STEPS
        while total.calls < enough and not total.over():
            ask("sequences", None, FuzzPlan(given.examples, seed, kind, sequences=True, shrink=given.shrink), total)
            seed += 1


def machines(given: argparse.Namespace, total: Total) -> None:
    for name in MACHINES:
        if (given.only and name not in given.only) or total.over():
            continue
        started = time.perf_counter()
        broken = play(name, examples=given.examples, seed=given.seed, shrink=given.shrink)
        say(f"{time.perf_counter() - started:6.1f} s {given.examples:6} examples of the machine {name}")
        if broken is not None:
            total.failed.append(f"python3 ./run fuzz machines --only {name} --examples {given.examples} --seed {given.seed}")
            say(f"FAILED; replay with: {total.failed[-1]}\n{broken}")


def reader() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run fuzz", description=__doc__, epilog=MEASURES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}: all of them if none is named")
    parser.add_argument("--only", action="append", default=[], help="an operation, or how its id begins; or a machine; may be repeated")
    parser.add_argument("--as", dest="kinds", action="append", choices=KINDS, default=[], help="the kind of caller; all by default")
    parser.add_argument("--examples", type=int, default=200, help="for each operation, for the sequences, for each machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slice", default="1/1", help="the K-th of N parts of the operations, as K/N")
    parser.add_argument("--minutes", type=float, default=60.0, help="nothing new begins after that")
    parser.add_argument("--shrink", action="store_true", help="look for the smallest call that fails, too")
    return parser


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:])
    given = reader().parse_args(arguments)
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        sys.exit(f"{', '.join(unknown)}: there is no such part; give some of {', '.join(PARTS)}")
    logging.disable(logging.ERROR)  # refusals of the network are ordered here
    ramdisk.use()
    started = time.monotonic()
    total = Total(started + given.minutes * 60)
    for part, run in {"calls": calls, "tools": tools, "sequences": sequences, "machines": machines}.items():
        if part in given.parts or not given.parts:
            run(given, total)
    counted = " ".join(f"{status}:{count}" for status, count in sorted(total.statuses.items()))
    say(f"{total.calls} calls, {sum(total.checks.values())} checks of {len(total.checks)} kinds, {counted}")
    say(f"{(time.monotonic() - started) / 60:.1f} minutes, {len(total.failed)} failed, {total.left} left for want of time")
    for again in total.failed:
        say(f"    {again}")
    return int(bool(total.failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
