"""`python -m benchmarks.fleet_quality`: how many of the problems of planted networks fleet_problems finds, and how many it makes up.

Each network is planted from a commit's hash, so that nobody chose it (benchmarks/fleet_networks.py); the service reads it over its wire,
and what it tells is held against the truth of benchmarks/fleet_truth.py, cause by cause.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import httpx

from benchmarks.commit_seeds import head, seeds_of
from benchmarks.fleet_networks import LINES, NETWORKS, FleetNetwork, plant_fleet
from benchmarks.fleet_truth import FLEET_CAUSES, CauseScore, FleetCause, add_scores, score_causes
from benchmarks.intelligence_service import serving
from benchmarks.tables import table
from simulators.network.world import World

PAGE_LINES, LOOKS = 200, 50
Told = Mapping[str, set[FleetCause]]


async def told_of(world: World) -> Told:
    """What fleet_problems tells of each line of the network, after it has been read whole."""
    with tempfile.TemporaryDirectory() as folder:
        async with serving(world, Path(folder)) as http:
            await read_whole(http)
            return await all_problems(http)


async def read_whole(http: httpx.AsyncClient) -> None:
    """Asks until nothing waits to be read: no worker runs here, so questions read the fleet."""
    status: dict[str, object] = {}
    await http.post("/v1/intelligence/churn-risk", json={})  # it needs eight weeks of each line
    for _ in range(LOOKS):
        await http.get("/v1/fleet/problems", params={"limit": 1})
        status = (await http.get("/v1/fleet/sync-status")).json()
        if status["status"] == "up_to_date":
            return
    raise RuntimeError(f"the fleet was not read whole: {status}")


async def all_problems(http: httpx.AsyncClient) -> Told:
    told, cursor = defaultdict[str, set[FleetCause]](set), None
    while True:
        page: dict[str, str | int] = {"limit": PAGE_LINES} if cursor is None else {"limit": PAGE_LINES, "starting_after": cursor}
        answer = await http.get("/v1/fleet/problems", params=page)
        for line in answer.json()["data"]["lines"]:
            told[line["iccid"]] |= {cast(FleetCause, problem["cause"]) for problem in line["problems"]}
        link = answer.links.get("next")
        if link is None:
            return told
        cursor = httpx.URL(link["url"]).params["starting_after"]


def measure(network: FleetNetwork) -> dict[FleetCause, CauseScore]:
    return score_causes(asyncio.run(told_of(network.world)), network.truth)


def page(commit: str, scores: Sequence[Mapping[FleetCause, CauseScore]]) -> str:
    """Everything as a table."""
    sums = {cause: add_scores(each[cause] for each in scores) for cause in FLEET_CAUSES}
    whole = add_scores(sums.values())
    rows = [[f"`{cause}`", *figures(score)] for cause, score in sums.items()]
    return "\n".join(
        [
            f"Measured on {len(scores)} networks of {LINES} lines, planted from the hash of commit {commit}.",
            "",
            table(["cause", "lines", "found", "made up", "recall", "precision"], [*rows, ["together", *figures(whole)]]),
        ]
    )


def figures(score: CauseScore) -> list[str]:
    true, made_up = score.right + len(score.missed), len(score.false)
    return [str(true), str(score.right), str(made_up), f"{score.recall:.2f}", f"{score.precision:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_quality", description=__doc__)
    parser.add_argument("--commit", help="hash that the seeds are derived from (HEAD)")
    parser.add_argument("--networks", type=int, default=NETWORKS, help="how many networks")
    parser.add_argument("--wrong", action="store_true", help="print every line that was missed or made up")
    given = parser.parse_args()
    commit = given.commit or head()
    scores: list[dict[FleetCause, CauseScore]] = []
    for seed in seeds_of(commit, given.networks):
        found = measure(plant_fleet(seed))
        scores.append(found)
        print(f"seed {seed:08x}: {sum(score.right for score in found.values())} found", file=sys.stderr, flush=True)
        for cause, score in found.items() if given.wrong else ():
            print(cause, "missed:", *score.missed, "made up:", *score.false)
    print(page(commit, scores))


if __name__ == "__main__":
    main()
