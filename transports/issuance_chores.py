"""The chores of the issuance ledger: what dead processes left behind is judged, and unknown outcomes are looked into."""

from collections.abc import Callable

from operations.deps import Deps
from operations.services.issuing.reconciliation import Reconciliation
from registry.clock import Clock
from storage.calls.orphans import any_orphans, recover_orphans
from storage.store import Store
from transports.chores import Chore

RECOVERY_SECONDS = 5.0
RECONCILIATION_SECONDS = 5.0


def recovery(store: Store, clock: Clock) -> Chore:
    """What a process that is gone had not sent is free again; what it may have sent is unknown from now on."""

    async def run() -> None:
        if await store.read(any_orphans, now=clock.now()):
            await store.write(recover_orphans, now=clock.now())

    return Chore("recovery", RECOVERY_SECONDS, run)


def reconciliation(deps: Deps, report: Callable[[str], None]) -> Chore:
    """Settle unknown outcomes from evidence; what is settled may have events to deliver, and mails."""
    service = Reconciliation(deps, report, progress=report)

    async def run() -> None:
        if await service.step():
            deps.wake_worker()
            deps.post()

    return Chore("reconciliation", RECONCILIATION_SECONDS, run)
