"""Chores: what is done now and then beside deliveries, by one replica at a time, each in a task of its own; what never ends; and the chores
of the domains: unsent and unknown issuances, packages that are to be adapted, paid orders of shops, invoices that
are overdue, and reports of schedules."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import anyio

from operations.changes.requests.approval_execution import ApprovedCalls
from operations.changes.sending.change_work import ChangeWork
from operations.deps import Deps
from operations.fleet.sync import FleetSync
from operations.intelligence.schedule_reports import REPORT_LEASE_SECONDS, SHEETS, ScheduleRuns
from operations.ledger.adaptation import PackageAdaptations
from operations.ledger.alert_looks import AlertLooks
from operations.ledger.event_letters import EventMails
from operations.ledger.event_placing import EventPlacing
from operations.ledger.invoices import tell_overdue_invoices
from operations.ledger.issuance_events import log_lost_issuances
from operations.ledger.reconciliation import Reconciliation
from operations.storefronts.sales.order_fulfilment import Fulfilment
from registry.clock import Clock
from registry.ids import Ids
from storage.engine import jobs
from storage.engine.store import Store
from storage.orphans import any_orphans, recover_orphans
from transports.logs import error_text
from transports.signals import WorkerTally

CHORE_RETRY_SECONDS = 5.0
CHORE_LOOK_SECONDS = 0.1
RESTART_SECONDS = 1.0
# The lease outlives the longest run by this much, so that it is given back before another replica may take it.
LEASE_MARGIN_SECONDS = 5.0
CLOCK_DIFFERENCE_SECONDS = 60.0
"""No clock is this far ahead of another one, unless it is wrong."""


@dataclass(frozen=True, slots=True)
class Chore:
    """Something to do every so often. A run that takes longer than its limit is ended, since another replica may begin it then.

    `everywhere`: every replica does it, since what it takes on is under leases of its own. `stop`: ends a run that may take long before
    its end; without it a run that is under way is finished.
    """

    name: str
    every_seconds: float
    run: Callable[[], Awaitable[object]]
    limit_seconds: float = 60.0
    everywhere: bool = False
    stop: Callable[[], None] = lambda: None


def longest_delay(chore: Chore) -> float:
    """The longest time in seconds until a chore is due again or its lease ends. A later time was written by a wrong clock."""
    return max(chore.every_seconds, chore.limit_seconds + LEASE_MARGIN_SECONDS) + CLOCK_DIFFERENCE_SECONDS


class ChoreRunner:
    """The chores of one process. Leases in the database keep those of all processes apart."""

    def __init__(
        self,
        chores: Sequence[Chore],
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        tally: WorkerTally,
        fault: Callable[[str, Exception], None],
    ) -> None:
        self._chores, self._store, self._clock, self._ids = tuple(chores), store, clock, ids
        self._tally, self._fault = tally, fault
        self._stopping, self.ended = anyio.Event(), anyio.Event()
        self._stepped: dict[str, float] = {}

    def stop(self) -> None:
        """End `run`: nothing new is begun, and what is under way is finished, or ended where it says how."""
        self._stopping.set()
        for chore in self._chores:
            chore.stop()

    async def run(self) -> None:
        """Do each chore when it is due, until stopped."""
        async with anyio.create_task_group() as group:
            for chore in self._chores:
                group.start_soon(self._keep, chore)
        self.ended.set()

    async def step(self) -> None:
        """Runs at once each chore that this process is due to run, without its lease. Errors are raised to the caller."""
        for chore in self._chores:
            monotonic = self._clock.monotonic()
            if monotonic - self._stepped.get(chore.name, float("-inf")) >= chore.every_seconds:
                await chore.run()
                self._stepped[chore.name] = monotonic
                self._tally.chore(chore.name, self._clock.now())

    async def _keep(self, chore: Chore) -> None:
        turn = self._round if chore.everywhere else self._turn
        while not self._stopping.is_set():
            with anyio.move_on_after(await turn(chore)):
                await self._stopping.wait()

    async def _round(self, chore: Chore) -> float:
        """Runs `chore` once, whatever the other replicas do; seconds until the next run."""
        try:
            with anyio.fail_after(chore.limit_seconds):
                await chore.run()
            self._tally.chore(chore.name, self._clock.now())
        except Exception as error:
            self._fault(f"{chore.name} failed and is tried again", error)
            return CHORE_RETRY_SECONDS
        return chore.every_seconds

    async def _turn(self, chore: Chore) -> float:
        """Runs `chore` if it is due and its lease is free; seconds until the next look."""
        token, claimed = self._ids.new("lse_"), False
        try:
            wait = await self._store.read(jobs.job_due_at, name=chore.name) / 1000 - self._clock.now()
            if 0 < wait <= longest_delay(chore):
                return min(wait, chore.every_seconds)
            with anyio.CancelScope(shield=True):  # cancelled here, the lease would be taken and never given back
                claimed = await self._claim(chore, token)
        except Exception as error:
            self._fault(f"{chore.name} could not be begun", error)
            return CHORE_RETRY_SECONDS
        if claimed:
            await self._hold(chore, token)
        return CHORE_LOOK_SECONDS

    async def _claim(self, chore: Chore, token: str) -> bool:
        now_ms, lease_ms = int(self._clock.now() * 1000), int((chore.limit_seconds + LEASE_MARGIN_SECONDS) * 1000)
        latest_ms = now_ms + int(longest_delay(chore) * 1000)
        return await self._store.write(jobs.claim_job, name=chore.name, token=token, now_ms=now_ms, lease_ms=lease_ms, latest_ms=latest_ms)

    async def _hold(self, chore: Chore, token: str) -> None:
        """Runs `chore` once under the lease, which is given back however the run ends."""
        wait = 0.0
        try:
            with anyio.fail_after(chore.limit_seconds):
                await chore.run()
            self._tally.chore(chore.name, self._clock.now())
            wait = chore.every_seconds
        except Exception as error:
            self._fault(f"{chore.name} failed and is tried again", error)
            wait = min(chore.every_seconds, CHORE_RETRY_SECONDS)
        finally:
            with anyio.CancelScope(shield=True):
                await self._give_back(chore, token, wait)

    async def _give_back(self, chore: Chore, token: str, wait: float) -> None:
        next_ms = int((self._clock.now() + wait) * 1000)
        try:
            await self._store.write(jobs.finish_job, name=chore.name, token=token, next_ms=next_ms)
        except Exception as error:
            self._fault(f"the lease of {chore.name} could not be given back; it ends by itself", error)


async def keep_running(name: str, run: Callable[[], Awaitable[None]], report: Callable[[str], None]) -> None:
    """Runs `run` until it ends by itself; a failure is reported, and it begins again a second later."""
    while True:
        try:
            return await run()
        except Exception as error:
            report(f"{name} failed and begins again: {', '.join(error_texts(error))}")
        await anyio.sleep(RESTART_SECONDS)


async def run_once(name: str, run: Callable[[], Awaitable[None]], report: Callable[[str], None]) -> None:
    """Runs `run` once; a failure is reported, and harms nothing else."""
    try:
        await run()
    except Exception as error:
        report(f"{name} failed: {', '.join(error_texts(error))}")


def error_texts(error: BaseException) -> list[str]:
    """What failed, of a group each part."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [text for each in group.exceptions for text in error_texts(each)]
    return [f"{type(error).__name__}: {error_text(error)}"]


RECOVERY_SECONDS = 5.0
RECONCILIATION_SECONDS = 5.0


def recovery_chore(deps: Deps) -> Chore:
    """Frees the calls that a dead process had not sent, and marks those that it may have sent as unknown."""

    async def run() -> None:
        if await deps.store.read(any_orphans, now=deps.clock.now()):
            await deps.store.write(recover_orphans, now=deps.clock.now(), log=partial(log_lost_issuances, deps.ids))

    return Chore("recovery", RECOVERY_SECONDS, run)


def reconciliation_chore(deps: Deps, report: Callable[[str], None]) -> Chore:
    """Settle unknown outcomes from evidence; what is settled may have events to deliver, and mails."""
    service = Reconciliation(deps, report, progress=report)

    async def run() -> None:
        if await service.step():
            deps.wake_worker()
            deps.post()

    return Chore("reconciliation", RECONCILIATION_SECONDS, run)


EVENT_SECONDS = 0.2


def event_chore(deps: Deps) -> Chore:
    """Gives events that are committed their places in the log, and queues them for the endpoints that have chosen them."""
    return Chore("events", EVENT_SECONDS, EventPlacing(deps).step, everywhere=True)


ADAPTATION_SECONDS = 2.0


def adaptation_chore(deps: Deps, report: Callable[[str], None]) -> Chore:
    """Set packages to what was sold; what is settled may have events to deliver, and mails."""
    service = PackageAdaptations(deps, report)

    async def run() -> None:
        if await service.step():
            deps.wake_worker()
            deps.post()

    return Chore("adaptation", ADAPTATION_SECONDS, run)


FULFILMENT_SECONDS = 1.0


def shop_chores(deps: Deps, report: Callable[[str], None]) -> list[Chore]:
    """Fulfilment every second: a buyer waits for the eSIM on the page that the payment led to."""
    return [Chore("fulfilment", FULFILMENT_SECONDS, Fulfilment(deps, report).step)]


APPROVALS_LOOK_SECONDS = 2.0


def approvals_chore(deps: Deps, report: Callable[[str], None]) -> Chore:
    """Executes what a person has approved at a process that has died since."""
    return Chore("approvals", APPROVALS_LOOK_SECONDS, ApprovedCalls(deps, report).step)


FLEET_LOOK_SECONDS = 1.0
# Turns of some seconds, one fleet after the other; a listing that has begun is finished.
FLEET_LIMIT_SECONDS = 600.0


def fleet_chore(deps: Deps, report: Callable[[str], None], begun: Callable[[], bool]) -> Chore:
    """Keeps the read model of every fleet. `begun`: whether the charging system is to be asked at all."""
    sync = FleetSync(deps, report, begun)
    return Chore("fleets", FLEET_LOOK_SECONDS, sync.step, FLEET_LIMIT_SECONDS, everywhere=True, stop=sync.stop)


CHANGE_LOOK_SECONDS = 1.0
# Turns of ten seconds, one set after the other; a row that has begun is finished.
CHANGE_LIMIT_SECONDS = 180.0
CHANGE_LANES = ("changes", "changes_beside")


def change_chores(deps: Deps, report: Callable[[str], None], begun: Callable[[], bool]) -> list[Chore]:
    """Read the lines of large plans and send the rows of applied ones, of two organisations at a time."""
    work = ChangeWork(deps, report, begun)
    return [Chore(lane, CHANGE_LOOK_SECONDS, work.step, CHANGE_LIMIT_SECONDS, everywhere=True) for lane in CHANGE_LANES]


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


OVERDUE_SECONDS = 60.0


def overdue_chore(deps: Deps) -> Chore:
    """Tells of invoices whose day to pay by has passed."""

    async def run() -> None:
        if await tell_overdue_invoices(deps):
            deps.wake_worker()

    return Chore("overdue", OVERDUE_SECONDS, run)


ALERT_LOOK_SECONDS = 60.0
# Longer than the time of a step, with what is under way then.
ALERT_LIMIT_SECONDS = 90.0


def alerts_chore(deps: Deps, report: Callable[[str], None], begun: Callable[[], bool]) -> Chore:
    """Finds what runs out, is late or is refused. `begun`: whether the charging system is to be asked at all."""
    return Chore("alerts", ALERT_LOOK_SECONDS, AlertLooks(deps, report, begun).step, ALERT_LIMIT_SECONDS)


MAIL_LOOK_SECONDS = 2.0


def mail_chore(deps: Deps) -> Chore:
    """Makes mails of what people are to be told: at once, or in the digest of their day."""
    return Chore("mails", MAIL_LOOK_SECONDS, EventMails(deps).step)
