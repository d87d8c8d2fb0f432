"""`python3 ./run endure --minutes N [--engine sqlite|postgres|both]`: a mixed load at 70 % of what the machine can do, for so long.

First the capacity is measured under the very circumstances of the run: eSIMs are drawn and bought and systems fail as in the load, for a
minute, of which the first third does not count, and until no delivery is late. Callers who never rest push deliveries aside: of 7,500 that
a minute of them owed, 4,400 were late at its end. 70 % of what was counted without that took as much of the processors as all of it.

Then calls come at their share of the capacity; memory, answers and times are noted, and at the end every ledger is held against every
other. SIGINT ends the load early; what was done until then is judged all the same.
"""

import argparse
import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.__main__ import keep
from benchmarks.endurance_page import SHORTEST_MINUTES, judgement, judges_memory, name_of
from benchmarks.results import RESULTS, SAMPLES, load, render
from tests.endurance.circumstances import circumstances
from tests.harness.processes import ROOT, environment
from tests.harness.service_processes import ENGINES, Engine

RECORDS = 2_500_000
"""A file that is larger than what SQLite maps and caches (256 and 64 MB) fills its caches in the warm-up, and not all the while."""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run endure", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help=f"how long the load lasts (30); memory is judged from {SHORTEST_MINUTES}"
    )
    parser.add_argument("--engine", choices=(*ENGINES, "both"), default="both", help="both: at the same time, each with its own servers")
    parser.add_argument("--seed", type=int, default=1, help="of the calls and of the faults outside")
    parser.add_argument("--share", type=float, default=0.7, help="of the capacity (0.7)")
    parser.add_argument("--capacity-seconds", type=float, default=60.0, help="how long the capacity is measured (60)")
    parser.add_argument("--records", type=int, help=f"call records in the SQLite file before the run ({RECORDS}; none in a short run)")
    parser.add_argument("--outages", action="store_true", help="each outside system hangs for a while in the middle, one after the other")
    parser.add_argument("--work", help="folder for the databases; it must lie on the disk that is to be used")
    parser.add_argument("--out", type=Path, help="folder for the results; else beside those of the benchmarks, and shown there")
    return parser.parse_args(arguments)


class Running:
    def __init__(self, engine: Engine, process: Process) -> None:
        self.engine: Engine = engine
        self._process = process

    async def until(self, word: str) -> str:
        """Tell what it says until it says this; what follows the word."""
        assert self._process.stdout is not None
        while line := (await self._process.stdout.readline()).decode().rstrip("\n"):
            if line.startswith(word):
                return line.removeprefix(word).strip()
            say(f"{self.engine}: {line}")
        raise SystemExit(f"{self.engine} ended before it said {word}")

    def tell(self, word: str) -> None:
        """It hears, unless it has ended."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(f"{word}\n".encode())

    async def end(self) -> None:
        """Its input ends, which ends it; it takes its own processes with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 60)
        if self._process.returncode is None:
            self._process.kill()


async def started(engine: Engine, given: argparse.Namespace) -> Running:
    """A process of a session of its own: a key pressed at the terminal reaches only the command, which tells the others."""
    plan = {
        "engine": engine,
        "seed": given.seed,
        "seconds": given.minutes * 60,
        "capacity_seconds": given.capacity_seconds,
        "share": given.share,
        "work": given.work,
        "outages": given.outages,
        "records": (RECORDS if given.minutes >= SHORTEST_MINUTES else 0) if given.records is None else given.records,
    }
    command = (sys.executable, "-P", "-m", "tests.endurance.engine", json.dumps(plan))
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environment(), stdin=PIPE, stdout=PIPE, limit=2**26, start_new_session=True
    )
    return Running(engine, process)


async def run(given: argparse.Namespace) -> list[dict[str, Any]]:
    """All engines at once, step by step together."""
    engines: tuple[Engine, ...] = ENGINES if given.engine == "both" else (given.engine,)
    running = [await started(engine, given) for engine in engines]

    def stop() -> None:
        say("ending early")
        for each in running:
            each.tell("stop")

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await asyncio.gather(*(each.until("ready") for each in running))
        for each in running:
            each.tell("go")
        return [json.loads(told) for told in await asyncio.gather(*(each.until("result") for each in running))]
    finally:
        await asyncio.gather(*(each.end() for each in running))


def main(arguments: Sequence[str]) -> int:
    given = read(arguments)
    about = circumstances()
    worst = 0
    for result in asyncio.run(run(given)):
        rows = result.pop("rows")
        folder: Path = given.out or SAMPLES
        keep(name_of(result["engine"]), {"run": about, "facts": result, "rows": rows}, folder)
        wrong = judgement(result, rows)
        worst = max(worst, int(bool(wrong)))
        load_of = f"{result['rate']} of {result['capacity']} calls/s for {result['seconds']:.0f} s"
        say(f"{result['engine']}: {load_of}: {'FAILED' if wrong else 'held'}")
        for line in wrong:
            say(f"    {line}")
        if not judges_memory(result):
            say(f"    memory is not judged: a run of less than {SHORTEST_MINUTES} minutes shows caches that fill, not leaks")
    if given.out is None:
        RESULTS.write_text(render(load()))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
