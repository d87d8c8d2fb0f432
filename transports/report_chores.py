"""The chores of schedules: every replica begins what is due and makes what it can take; the database keeps them apart."""

from collections.abc import Awaitable, Callable

from operations.deps import Deps
from operations.intelligence.scheduling.runs import LEASE_SECONDS, ScheduleRuns
from operations.intelligence.sheets.every import SHEETS
from transports.chores import Chore

EVERY_SECONDS = 1.0
FIRE_LIMIT_SECONDS = 10.0
# Each reads up to eight lines at once: more would only wait for their places at the charging system.
LANES = ("reports", "reports_beside")


def report_chores(deps: Deps) -> list[Chore]:
    """Begin reports at their boundaries, and make them, two at a time."""
    runs = ScheduleRuns(deps, SHEETS)

    async def begin() -> None:
        await runs.fire()

    begun = Chore("schedules", EVERY_SECONDS, begin, FIRE_LIMIT_SECONDS, everywhere=True)
    return [begun, *(Chore(lane, EVERY_SECONDS, one_of(runs.step), LEASE_SECONDS, everywhere=True) for lane in LANES)]


def one_of(step: Callable[[], Awaitable[bool]]) -> Callable[[], Awaitable[None]]:
    """One report: the next one comes at the next look, a second later."""

    async def run() -> None:
        await step()

    return run
