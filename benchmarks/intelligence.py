"""`python -m benchmarks.intelligence`: how right the composites are on planted networks whose seeds nobody chose."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from benchmarks.commit_seeds import START, head, seeds_of
from benchmarks.intelligence_advice import advice
from benchmarks.intelligence_ask import Asker
from benchmarks.intelligence_behaviour import anomalies, churn
from benchmarks.intelligence_reference import Reference
from benchmarks.intelligence_scores import Score, costs, country_entry, coverage, diagnosis, health, market, packages
from benchmarks.intelligence_service import serving
from benchmarks.tables import table
from operations.catalogue import CATALOGUE
from simulators.network.seed.scenario import build_scenario

SEEDS = 3
Measure = Callable[[Asker, Reference], Awaitable[list[Score]]]
MEASURES: tuple[Measure, ...] = (churn, anomalies, coverage, packages, costs, country_entry, health, market, diagnosis, advice)
TITLES: tuple[str, ...] = (
    "churn_risk",
    "detect_usage_anomalies",
    "audit_network_coverage",
    "optimize_package",
    "high_cost_subscribers",
    "detect_country_entry",
    "fleet_health",
    "marketing_intelligence",
    "diagnose_subscriber",
)


class Run(NamedTuple):
    """One seed: what was right, how long answers are, and how long it took."""

    seed: int
    lines: int
    scores: list[Score]
    tokens: dict[str, int]
    seconds: float


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intelligence", description=__doc__)
    parser.add_argument("--commit", help="hash that the seeds are derived from (HEAD)")
    parser.add_argument("--lines", type=int, default=400, help="lines of each network; four fifths are the reseller's that asks")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args()


async def run(seed: int, lines: int) -> Run:
    """Plant, serve, ask, and hold the answers against the truth."""
    began = time.perf_counter()
    planted = build_scenario(seed, START, lines=lines)
    world = Reference(planted)
    with tempfile.TemporaryDirectory(prefix="intelligence-") as folder:
        async with serving(planted.world, Path(folder)) as http:
            ask = Asker(http)
            scores = [one for measure in MEASURES for one in await measure(ask, world)]
            tokens = {name: await ask.tokens(path_of(name), inputs(name, world)) for name in TITLES}
    return Run(seed, len(world.lines), scores, tokens, time.perf_counter() - began)


def path_of(name: str) -> str:
    """The last part of an operation's address."""
    return CATALOGUE.operations[name].path.rpartition("/")[2]


def inputs(name: str, world: Reference) -> dict[str, object]:
    """What a model would send: as little as it must, with what the tool door adds."""
    needed: dict[str, object] = {}
    if name in ("detect_country_entry", "diagnose_subscriber"):
        needed["iccid"] = sorted(world.mine(world.planted.truth.troubles))[0]
    if name == "high_cost_subscribers":
        needed |= {"start": world.first_day.isoformat(), "end": world.last_day.isoformat()}
    return {**CATALOGUE.operations[name].tool_defaults, **needed}


def page(commit: str, runs: Sequence[Run]) -> str:
    """Everything as tables."""
    head_ = ["composite", "measure", *(f"seed {run.seed:08x}" for run in runs), "together"]
    rows = [row(runs, place) for place in range(len(runs[0].scores))]
    sizes = [[f"`{name}`", *(str(run.tokens[name]) for run in runs)] for name in TITLES]
    weak = [
        f"- {one.composite}, {one.measure}, seed {run.seed:08x}: {'; '.join(one.weak)}" for run in runs for one in run.scores if one.weak
    ]
    return "\n".join(
        [
            f"Seeds of commit {commit}; lines asked about: {', '.join(str(run.lines) for run in runs)}; "
            f"seconds: {', '.join(f'{run.seconds:.0f}' for run in runs)}.",
            "",
            table(head_, rows),
            "Default MCP answers, in tokens of four characters:",
            "",
            table(["composite", *(f"seed {run.seed:08x}" for run in runs)], sizes),
            "What was not right:",
            "",
            *(weak or ["- nothing"]),
            "",
            "A simulator's truth is not a market's: these figures say that the methods find what was planted, not what customers will do.",
        ]
    )


def row(runs: Sequence[Run], place: int) -> list[str]:
    """One measure over all seeds."""
    scores = [run.scores[place] for run in runs]
    right, of = sum(one.right for one in scores), sum(one.of for one in scores)
    cells = [f"{one.share:.3f} ({one.right}/{one.of})" for one in scores]
    return [f"`{scores[0].composite}`", scores[0].measure, *cells, f"**{right / of if of else 1.0:.3f}**"]


def written(commit: str, runs: Sequence[Run]) -> str:
    """The same for programs."""
    rows = [
        {
            "seed": run.seed,
            "lines": run.lines,
            "seconds": round(run.seconds, 1),
            "tokens": run.tokens,
            "scores": [{**one._asdict(), "share": round(one.share, 4)} for one in run.scores],
        }
        for run in runs
    ]
    return json.dumps({"commit": commit, "start": START, "runs": rows}, indent=1) + "\n"


def main() -> None:
    given = parse()
    commit = given.commit or head()
    runs: list[Run] = []
    for seed in seeds_of(commit, SEEDS):
        print(f"seed {seed:08x}", file=sys.stderr, flush=True)
        runs.append(anyio.run(run, seed, given.lines))
    if given.json is not None:
        given.json.write_text(written(commit, runs))
    print(page(commit, runs))


if __name__ == "__main__":
    main()
