"""`python -m benchmarks.events`: what the log of events costs, beside the revision before it; keeps samples and writes RESULTS.md.

`--before` names a checkout of that revision, which the same Python runs: `git worktree add --detach DIR REVISION`. Without it only this
revision is measured. `--quick` prints the section and keeps nothing.
"""

import argparse
import asyncio
import datetime
import json
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.__main__ import PACKAGES, keep, revision
from benchmarks.event_latency import latency
from benchmarks.event_pages import pages
from benchmarks.event_posts import COMPARED
from benchmarks.event_work import counted_messages, matching, placing
from benchmarks.events_page import PARTS, name_of, section
from benchmarks.measure import Plan
from benchmarks.names import POSTGRES, SQLITE
from benchmarks.processes import machine
from benchmarks.results import RESULTS, SAMPLES, load, render

Made = list[dict[str, object]]
ROUNDS = {"cost": 11, "messages": 1, "places": 5, "matching": 9, "posts": 9, "webhooks": 9, "stream": 1, "pages": 1}
ALONE: Mapping[str, Callable[[Sequence[str], Path, Plan], Made]] = {
    "messages": lambda engines, folder, plan: asyncio.run(counted_messages(engines, folder, plan)),
    "places": lambda engines, folder, plan: asyncio.run(placing(engines, folder, plan)),
    "matching": lambda engines, folder, plan: matching(plan),
    "stream": latency,
    "pages": pages,
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description="The log of events on this machine.")
    parser.add_argument("--before", type=Path, help="a checkout of the last revision before the log")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--engine", type=lambda text: text.split(","), default=[SQLITE, POSTGRES], help="SQLite,PostgreSQL")
    parser.add_argument("--rounds", type=int, help="rounds of each part")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of a turn of calls (1)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="events that are kept (1000000)")
    parser.add_argument("--work", type=Path, help="folder for the databases; it must lie on the disk that is to be measured")
    parser.add_argument("--note", default="", help="what is to be said below the tables of these parts")
    parser.add_argument("--quick", action="store_true", help="print the section and keep nothing")
    return parser.parse_args()


def say(text: str) -> None:
    """How far it is."""
    print(text, file=sys.stderr, flush=True)


def measured(part: str, given: argparse.Namespace, folder: Path) -> Made:
    """The rows of a part."""
    plan = Plan(given.rounds or ROUNDS[part], given.seconds, say, (given.rows,))
    if part in ALONE:
        return ALONE[part](given.engine, folder, plan)
    return COMPARED[part](given.before.resolve(), given.engine, folder, plan)


def others_of(part: str, given: argparse.Namespace) -> Made:
    """The rows of the databases that are not measured this time, as they were."""
    file = SAMPLES / f"{name_of(part)}.json"
    if given.quick or not file.exists():
        return []
    rows: Made = json.loads(file.read_text())["rows"]
    return [row for row in rows if row.get("engine", given.engine[0]) not in given.engine]


def circumstances(part: str, given: argparse.Namespace, measured_revision: str) -> dict[str, Any]:
    """Where and when, as the other samples say it."""
    versions = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # of a rival, who is not asked here
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "rounds": given.rounds or ROUNDS[part],
        "seconds": given.seconds,
        "machine": machine(),
        "revision": measured_revision,
        "versions": versions,
    }


def main() -> None:
    given = parse()
    of_now, found = revision(), dict[str, Any]()
    wanted = [part for part in PARTS if part in given.only.split(",") and (part in ALONE or given.before is not None)]
    with tempfile.TemporaryDirectory(dir=given.work, prefix="events-") as folder:
        for part in wanted:
            rows = others_of(part, given) + measured(part, given, Path(folder))
            found[name_of(part)] = {"run": circumstances(part, given, of_now), "facts": {"note": given.note}, "rows": rows}
            if not given.quick:
                keep(name_of(part), found[name_of(part)], SAMPLES)
    if given.quick:
        print(section(found))
    else:
        RESULTS.write_text(render(load()))


if __name__ == "__main__":
    main()
