"""The chores of the domains: unsent and unknown issuances, paid orders of shops, and reports of schedules."""

from collections.abc import Callable

from operations.deps import Deps
from operations.intelligence.schedule_reports import REPORT_LEASE_SECONDS, SHEETS, ScheduleRuns
from operations.ledger.reconciliation import Reconciliation
from operations.storefronts.sales.order_fulfilment import Fulfilment
from storage.orphans import any_orphans, recover_orphans
from transports.worker.chores import Chore

RECOVERY_SECONDS = 5.0
RECONCILIATION_SECONDS = 5.0


def recovery_chore(deps: Deps) -> Chore:
    """Frees the calls that a dead process had not sent, and marks those that it may have sent as unknown."""

    async def run() -> None:
        if await deps.store.read(any_orphans, now=deps.clock.now()):
            await deps.store.write(recover_orphans, now=deps.clock.now())

    return Chore("recovery", RECOVERY_SECONDS, run)


def reconciliation_chore(deps: Deps, report: Callable[[str], None]) -> Chore:
    """Settle unknown outcomes from evidence; what is settled may have events to deliver, and mails."""
    service = Reconciliation(deps, report, progress=report)

    async def run() -> None:
        if await service.step():
            deps.wake_worker()
            deps.post()

    return Chore("reconciliation", RECONCILIATION_SECONDS, run)


FULFILMENT_SECONDS = 1.0


def shop_chores(deps: Deps, report: Callable[[str], None]) -> list[Chore]:
    """Fulfilment every second: a buyer waits for the eSIM on the page that the payment led to."""
    return [Chore("fulfilment", FULFILMENT_SECONDS, Fulfilment(deps, report).step)]


REPORT_LOOK_SECONDS = 1.0
REPORT_FIRE_LIMIT_SECONDS = 10.0
# Each reads up to eight lines at once: more would only wait for their places at the charging system.
REPORT_LANES = ("reports", "reports_beside")


def report_chores(deps: Deps) -> list[Chore]:
    """Begin reports at their boundaries, and make them, two at a time: a lane makes one report, and the next one a second later."""
    runs = ScheduleRuns(deps, SHEETS)
    return [
        Chore("schedules", REPORT_LOOK_SECONDS, runs.fire, REPORT_FIRE_LIMIT_SECONDS, everywhere=True),
        *(Chore(lane, REPORT_LOOK_SECONDS, runs.step, REPORT_LEASE_SECONDS, everywhere=True) for lane in REPORT_LANES),
    ]
