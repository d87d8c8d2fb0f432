"""Running schedules: a due report is begun once, whatever the replicas, made through the pipeline, and its webhook is told."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast, get_args

import anyio
import orjson
from pydantic import JsonValue
from typing_extensions import TypedDict

from operations.deps import Deps
from operations.intelligence.reports.sheet import Figure, PublicKind, Sheet
from operations.intelligence.scheduling.composites import complete_input
from operations.intelligence.scheduling.cron import newest_boundary, next_boundary
from registry.call import Reply
from registry.errors import Internal, KeyUnknown, ProviderError, QuotaExceeded, Refusal, StoreUnavailable
from registry.policy import rfc3339_utc
from storage.directory import reader_for
from storage.events import REPORT_EVENT, NewEvent
from storage.schedule_reports import EndedReport, LeasedReport, any_report_due, finish_report, return_report, take_report
from storage.schedules import END_OF_TIME_MS, DueSchedule, ScheduleFire, due_schedules, fire_schedules
from storage.schedules import next_boundary as next_of_all

NOTICE_FIGURES = 8
PUBLIC_KINDS: Sequence[str] = get_args(PublicKind)
REPORT_FAILED = "The report could not be made"


class ReportNotice(TypedDict):
    """`data` of an intelligence.report event. `boundary` is null where somebody asked for the report."""

    schedule: str
    report: str
    composite: str
    state: str
    boundary: str | None
    headline: str
    figures: list[Figure]
    report_url: str


def report_notice(taken: LeasedReport, base_url: str, state: str, sheet: Sheet | None) -> ReportNotice:
    """Choice: of a report that failed no reason is sent, since a refusal may say which account or line it is about."""
    return {
        "schedule": taken.schedule,
        "report": taken.id,
        "composite": taken.composite,
        "state": state,
        "boundary": None if taken.fire_ms is None else rfc3339_utc(taken.fire_ms / 1000),
        "headline": REPORT_FAILED if sheet is None else sheet["headline"],
        "figures": [] if sheet is None else [figure for figure in sheet["figures"] if figure["kind"] in PUBLIC_KINDS][:NOTICE_FIGURES],
        "report_url": f"{base_url}/v1/intelligence/schedules/{taken.schedule}/report?report={taken.id}",
    }


def report_event(id: str, taken: LeasedReport, told: ReportNotice, now: float) -> NewEvent:
    """The event: once for each report."""
    return NewEvent(
        id=id,
        organisation=taken.organisation,
        intent=taken.schedule,
        type=REPORT_EVENT,
        livemode=1,
        data=orjson.dumps(told).decode(),
        dedup=f"report|{taken.id}",
        created=int(now),
    )


# A finding's lines are read for 100 s, after the lists; then its row is written.
REPORT_SECONDS = 170.0
REPORT_LEASE_SECONDS = 180.0
REPORT_TRIES = 3
# Choice: the upstream's short troubles pass in a minute, its longer ones in five.
REPORT_PAUSES = (60.0, 300.0)
SCHEDULE_RESTING = "schedule_resting"
SCHEDULE_RESTS = "The schedule rests: the key or login that it was made with has ended, or whoever made it has left the organisation"
SheetMakers = Mapping[str, Callable[..., Sheet]]


class ReportFailure(TypedDict):
    """Why a report was not made."""

    error: str
    code: str


class ReportOutcome(NamedTuple):
    """What one try came to: the report's body and its sheet, or why not, and whether the next try may do better."""

    body: str | None = None
    sheet: Sheet | None = None
    failure: ReportFailure | None = None
    passing: bool = False


class ScheduleRuns:
    """The schedules of all organisations, as one process works on them."""

    def __init__(self, deps: Deps, sheets: SheetMakers) -> None:
        self._deps, self._sheets = deps, sheets

    async def fire(self) -> int:
        """Begin the reports whose boundary has come; how many began here.

        Choice: of boundaries that came while nobody worked only the newest is made up for: a report tells of now, not of then.
        """
        deps, now = self._deps, self._deps.clock.now()
        first = await deps.store.read(next_of_all)
        if first is None or first > now * 1000:
            return 0
        due = await deps.store.read(due_schedules, now_ms=int(now * 1000))
        fires = [self._fire_of(schedule, int(now * 1000)) for schedule in due]
        return await deps.store.write(fire_schedules, fires=fires, now=now)

    def _fire_of(self, due: DueSchedule, now_ms: int) -> ScheduleFire:
        fire_ms = newest_boundary(due.cron, due.timezone, due.next_ms, now_ms)
        next_ms = next_boundary(due.cron, due.timezone, max(fire_ms, now_ms)) or END_OF_TIME_MS
        return ScheduleFire(due.id, due.next_ms, fire_ms, next_ms, self._deps.ids.new("rep_"))

    async def step(self) -> bool:
        """Make one report that is due; False when none is."""
        token, taken = self._deps.ids.new("lse_"), None
        with anyio.CancelScope(shield=True):  # cancelled here, the lease would be taken and never given back
            taken = await self.take(token)
        if taken is not None:
            await self._make(taken, token)
        return taken is not None

    async def take(self, token: str) -> LeasedReport | None:
        """A report that is due, under a lease."""
        store, now_ms = self._deps.store, int(self._deps.clock.now() * 1000)
        if not await store.read(any_report_due, now_ms=now_ms):
            return None
        return await store.write(take_report, token=token, now_ms=now_ms, lease_ms=int(REPORT_LEASE_SECONDS * 1000))

    async def _make(self, taken: LeasedReport, token: str) -> None:
        """One try. A process that ends in the middle of it gives the report to another at once."""
        try:
            outcome = await self._try(taken)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._put_back(taken, token, 0.0, counted=False)
            raise
        if outcome.passing and taken.tries < REPORT_TRIES:
            await self._put_back(taken, token, REPORT_PAUSES[taken.tries - 1], counted=True)
        else:
            await self._finish(taken, token, outcome)

    async def _try(self, taken: LeasedReport) -> ReportOutcome:
        if taken.tries > REPORT_TRIES:
            return failed_report(
                "The service ended in the middle of this report three times; the next boundary tries anew", "report_given_up"
            )
        deps = self._deps
        caller = await deps.store.read(
            reader_for,
            principal=taken.schedule,
            organisation=taken.organisation,
            person=taken.created_by,
            made_with=taken.made_with,
            now=deps.clock.now(),
        )
        if caller is None:
            return failed_report(SCHEDULE_RESTS, SCHEDULE_RESTING)
        given = complete_input(taken.composite, cast("Mapping[str, JsonValue]", orjson.loads(taken.input)), deps.clock.now())
        with anyio.move_on_after(REPORT_SECONDS):
            return self._judged(taken, await deps.internal_calls.call(taken.composite, given, caller=caller, surface="schedule"))
        return failed_report("The report took longer than it may", "timeout", passing=True)

    def _judged(self, taken: LeasedReport, reply: Reply) -> ReportOutcome:
        """The body of a report, or why there is none."""
        if reply.refusal is not None:
            return failed_report(reply.refusal.message, reply.refusal.error_code, passing=may_succeed_later(reply.refusal))
        found = orjson.loads(reply.body)
        sheet = self._sheets[taken.composite](found)
        return ReportOutcome(orjson.dumps({"finding": found, "sheet": sheet}).decode(), sheet)

    async def _put_back(self, taken: LeasedReport, token: str, pause: float, *, counted: bool) -> None:
        again_ms = int((self._deps.clock.now() + pause) * 1000)
        await self._deps.store.write(return_report, report=taken.id, token=token, again_ms=again_ms, counted=counted)

    async def _finish(self, taken: LeasedReport, token: str, outcome: ReportOutcome) -> None:
        """Keep the outcome and tell the webhook, unless the lease was lost or the schedule is gone: then nothing changes."""
        deps, now = self._deps, self._deps.clock.now()
        state = "failed" if outcome.body is None else "done"
        why = None if outcome.failure is None else orjson.dumps(outcome.failure).decode()
        ended = EndedReport(taken.id, taken.schedule, token, state, outcome.body, why, now)
        event = report_event(deps.ids.new("evt_"), taken, report_notice(taken, deps.site.base_url, state, outcome.sheet), now)
        if await deps.store.write(finish_report, ended=ended, event=event, ids=deps.ids):
            deps.wake_worker()


def failed_report(error: str, code: str, *, passing: bool = False) -> ReportOutcome:
    """No report."""
    return ReportOutcome(failure={"error": error, "code": code}, passing=passing)


def may_succeed_later(refusal: Refusal) -> bool:
    """Whether it is worth another try in a minute: troubles of the upstream, of the store and of ours, and the burst limit."""
    if isinstance(refusal, QuotaExceeded):
        return refusal.error_code == "rate_limited"
    return isinstance(refusal, (ProviderError, StoreUnavailable, KeyUnknown, Internal))
