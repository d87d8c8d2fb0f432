"""`python -m benchmarks.fleet_networks`: how much there is to find in planted networks whose seeds nobody chose, cause by cause.

The networks are planted with lines just beside the limits of every cause (`reseller sandbox ocs --plant --borders`). What is counted is the
truth of benchmarks/fleet_truth.py about the lines of the reseller that will be asked.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.commit_seeds import START, head, seeds_of
from benchmarks.fleet_truth import FLEET_CAUSES, FleetCause, LineTruth, fleet_truth
from benchmarks.tables import table
from simulators.network.seed.resellers import FJORD
from simulators.network.seed.scenario import build_scenario_pair
from simulators.network.world import World

NETWORKS, LINES = 20, 400
FEWEST_TRUE, FEWEST_BORDERLINE = 12, 6
"""Lines of each cause that a measurement takes over all its networks."""


class FleetNetwork(NamedTuple):
    """A planted network at its start, the truth about the reseller's lines by ICCID, and how many seconds the two took."""

    seed: int
    world: World
    truth: dict[str, LineTruth]
    planting_seconds: float
    truth_seconds: float


def plant_fleet(seed: int, lines: int = LINES) -> FleetNetwork:
    """The same seed gives the same network and the same truth."""
    began = time.perf_counter()
    planted = build_scenario_pair(seed, START, lines=lines, borders=True)
    grown = time.perf_counter()
    truth = fleet_truth(planted.world, planted.later, reseller_id=FJORD)
    return FleetNetwork(seed, planted.world, truth, grown - began, time.perf_counter() - grown)


class CauseCount(NamedTuple):
    """How many lines of all networks have a cause, are borderline in it, miss it narrowly, or may be told to have it."""

    true: int
    borderline: int
    near: int
    allowed: int
    networks: int
    """In how many networks there is a line that has it."""

    @property
    def enough(self) -> bool:
        return self.true >= FEWEST_TRUE and self.borderline >= FEWEST_BORDERLINE


def count_cause(truths: Sequence[dict[str, LineTruth]], cause: FleetCause) -> CauseCount:
    lines = [line for truth in truths for line in truth.values()]
    return CauseCount(
        sum(cause in line.true for line in lines),
        sum(cause in line.borderline for line in lines),
        sum(cause in line.near for line in lines),
        sum(cause in line.allowed for line in lines),
        sum(any(cause in line.true for line in truth.values()) for truth in truths),
    )


def page(commit: str, truths: Sequence[dict[str, LineTruth]]) -> str:
    """Everything as a table."""
    counts = {cause: count_cause(truths, cause) for cause in FLEET_CAUSES}
    rows = [[f"`{cause}`", *(str(figure) for figure in count)] for cause, count in counts.items()]
    lines = [line for truth in truths for line in truth.values()]
    short = [cause for cause, count in counts.items() if not count.enough]
    troubled, troubles = sum(bool(line.true) for line in lines), sum(len(line.true) for line in lines)
    return "\n".join(
        [
            f"{len(truths)} networks of commit {commit}: {len(lines)} lines of customers, {troubled} of them with {troubles} troubles.",
            "",
            table(["cause", "true", "borderline", "near misses", "allowed", "networks"], rows),
            f"Fewer than {FEWEST_TRUE} true or {FEWEST_BORDERLINE} borderline: {', '.join(short) or 'no cause'}.",
        ]
    )


def as_json(seed: int, truth: dict[str, LineTruth]) -> dict[str, object]:
    """One network for programs: lines with a trouble or a near miss, and what may be told of them."""
    told = {iccid: line for iccid, line in sorted(truth.items()) if line.true or line.near}
    return {
        "seed": seed,
        "lines": {iccid: {name: sorted(causes) for name, causes in line._asdict().items()} for iccid, line in told.items()},
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_networks", description=__doc__)
    parser.add_argument("--commit", help="hash that the seeds are derived from (HEAD)")
    parser.add_argument("--networks", type=int, default=NETWORKS, help="how many networks")
    parser.add_argument("--lines", type=int, default=LINES, help="lines of each network; four fifths are the reseller's that is asked")
    parser.add_argument("--json", type=Path, help="file for the truth about every line")
    return parser.parse_args()


def main() -> None:
    given = parse()
    commit = given.commit or head()
    truths: list[dict[str, LineTruth]] = []
    files: list[dict[str, object]] = []
    for seed in seeds_of(commit, given.networks):
        planted = plant_fleet(seed, given.lines)
        seconds = f"{planted.planting_seconds:.1f} s to plant, {planted.truth_seconds:.1f} s to judge"
        print(f"seed {seed:08x}: {seconds}", file=sys.stderr, flush=True)
        truths.append(planted.truth)
        files.append(as_json(seed, planted.truth))
    if given.json is not None:
        given.json.write_text(json.dumps({"commit": commit, "start": START, "networks": files}, indent=1) + "\n")
    print(page(commit, truths))


if __name__ == "__main__":
    main()
