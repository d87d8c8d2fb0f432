"""`python -m benchmarks`: measure, keep the samples, write RESULTS.md. `--quick` prints the page and keeps nothing."""

import argparse
import datetime
import importlib.metadata
import json
import platform
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.cdr import cdr
from benchmarks.contestant import ROOT, Seed, sow
from benchmarks.issuing import issuing
from benchmarks.processes import machine
from benchmarks.results import RESULTS, SAMPLES, SCENARIOS, load, render
from benchmarks.scale import scale
from benchmarks.startup import start
from benchmarks.upstream import upstream
from benchmarks.webhooks import webhooks

PACKAGES = (
    "uvicorn",
    "uvloop",
    "httptools",
    "starlette",
    "fastapi",
    "pydantic",
    "sqlmodel",
    "sqlalchemy",
    "orjson",
    "httpx",
    "aiohttp",
    "msgspec",
    "duckdb",
    "mcp",
    "fastmcp",
)
RUN: dict[str, Callable[[Seed, measure.Plan], list[dict[str, object]]]] = {
    "get": measure.get,
    "post": measure.post,
    "mcp": measure.mcp,
    "route": measure.route,
    "start": start,
    "upstream": upstream,
    "webhooks": webhooks,
    "issuing": issuing,
    "cdr": cdr,
    "scale": scale,
}
SECONDS = {
    "get": 1.0,
    "post": 1.5,
    "mcp": 1.2,
    "route": 0.6,
    "start": 0.0,
    "upstream": 1.0,
    "webhooks": 2.0,
    "issuing": 5.0,
    "cdr": 1.0,
    "scale": 1.5,
}
INTENTS = 200


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Side-by-side measurements on this machine.")
    parser.add_argument("--quick", action="store_true", help="few short rounds; prints the page and keeps nothing")
    parser.add_argument("--only", default=",".join(SCENARIOS), help=f"some of {','.join(SCENARIOS)}")
    parser.add_argument("--rounds", type=int, help="rounds per case (7; quick: 3)")
    parser.add_argument("--rows", type=sizes, help="records in the tables of cdr (1000000,10000000; quick: 50000)")
    parser.add_argument("--work", type=Path, help="folder for the databases; it must lie on the disk that is to be measured")
    parser.add_argument("--render", action="store_true", help="only write RESULTS.md from the samples that are there")
    return parser.parse_args()


def sizes(text: str) -> tuple[int, ...]:
    """Numbers with commas between."""
    return tuple(int(part) for part in text.split(","))


def facts(seed: Seed) -> dict[str, Any]:
    """What a reader must know beside the rows."""
    from operations.catalogue import CATALOGUE

    return {"tools": len(json.loads((seed.folder / "tools.json").read_text())), "operations": len(CATALOGUE.operations)}


def uncommitted_files(root: Path = ROOT) -> list[str]:
    """Files that no commit holds, beside documents and samples: what is measured with them would be nobody's."""
    words = ["git", "--no-optional-locks", "status", "--porcelain", "--", ".", ":!docs", ":!*.md", ":!benchmarks/samples"]
    return [line[3:] for line in subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stdout.splitlines()]


def revision() -> str:
    """What is measured; read once, before the first process starts."""
    told = subprocess.run(
        ["git", "--no-optional-locks", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return (told or "none") + (" and changes" if uncommitted_files() else "")


def about(plan: measure.Plan, measured: str) -> dict[str, Any]:
    """The circumstances of a run."""
    versions = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "machine": machine(),
        "revision": measured,
        "versions": versions | {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def keep(name: str, sample: dict[str, Any], folder: Path) -> None:
    """One line per row, so that a change can be read."""
    rows = ",\n".join(json.dumps(row) for row in sample["rows"])
    head = json.dumps({"run": sample["run"], "facts": sample["facts"]}, indent=1)
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(f'{head[:-2]},\n "rows": [\n{rows}\n]\n}}\n')


def say(text: str) -> None:
    """How far it is."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    given = parse()
    chosen = [name for name in SCENARIOS if name in given.only.split(",")]
    if given.render:
        RESULTS.write_text(render(load()))
        return
    measured = revision()
    rounds = given.rounds or (3 if given.quick else 7)
    rows = given.rows or ((50_000,) if given.quick else measure.ROWS)
    with tempfile.TemporaryDirectory(dir=given.work, prefix="bench-") as work:
        folder = Path(work) / "samples" if given.quick else SAMPLES
        seed = sow(Path(work) / "seed", INTENTS)
        for name in chosen:
            plan = measure.Plan(rounds, SECONDS[name] / (2 if given.quick else 1), say, rows)
            keep(name, {"run": about(plan, measured), "facts": facts(seed), "rows": RUN[name](seed, plan)}, folder)
        page = render(load(folder))
    if given.quick:
        print(page)
    else:
        RESULTS.write_text(page)


if __name__ == "__main__":
    main()
