"""A process that begins a report and never ends it: it is killed in the middle."""

import sys
from pathlib import Path

import anyio

from operations.intelligence.schedule_reports import ScheduleRuns
from tests.schedules.thin import SCRIPT, SHEETS, THIN
from tests.world import open_world


async def hang() -> None:
    """Say that the report is begun."""
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await anyio.sleep_forever()


async def main(folder: str, url: str, now: str) -> None:
    """One replica over the database of the test."""
    SCRIPT.before = hang
    async with open_world(Path(folder), THIN, url=url, replica=1) as world:
        world.clock.wall = float(now)
        await ScheduleRuns(world.pipeline.deps, SHEETS).step()


if __name__ == "__main__":
    place, address, moment = sys.argv[1:]
    anyio.run(main, place, address, moment)
