"""Reports of schedules: a due report is begun once, whatever the number of replicas, made through the pipeline and told to its webhook;
reading reports, and having one made now.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, cast, get_args

import anyio
import orjson
from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.event_types.declaration import EventType, new_event
from operations.event_types.work import WORK_REPORT_READY, ReadyReport
from operations.intelligence import (
    churn_risk,
    fleet_health,
    high_cost_subscribers,
    line_diagnosis,
    marketing_intelligence,
    network_coverage,
    savings,
    usage_anomalies,
)
from operations.intelligence.fleet import fleet_problems
from operations.intelligence.reports.report_mails import make_mailed_report, queue_report_mail
from operations.intelligence.reports.sheet import Figure, PublicKind, ReportBody, Sheet
from operations.intelligence.schedules import (
    EXAMPLE_SCHEDULE_ID,
    Composite,
    ScheduleRef,
    complete_input,
    newest_boundary,
    next_boundary,
    schedule_not_found,
)
from registry.call import Reply
from registry.clock import rfc3339_utc
from registry.errors import Conflict, Internal, KeyUnknown, NotFound, ProviderError, QuotaExceeded, Refusal, StoreUnavailable
from registry.operation import Example, Scope, SpendKind, operation
from registry.rate_limits import rate_limited
from registry.redaction import redact
from storage.directory import reader_for
from storage.engine.sql import Connection
from storage.events import REPORT_EVENT, NewEvent
from storage.schedule_reports import (
    RUNS_HOUR_SECONDS,
    RUNS_PER_HOUR,
    EndedReport,
    LeasedReport,
    ReportRow,
    any_report_due,
    ask_report,
    finish_report,
    newest_report,
    read_report,
    return_report,
    take_report,
)
from storage.schedules import END_OF_TIME_MS, DueSchedule, ScheduleFire, due_schedules, fire_schedules, has_schedule, schedule_works
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


def boundary_of(taken: LeasedReport) -> str | None:
    """The boundary of the schedule that the report is of; None where somebody asked for it."""
    return None if taken.fire_ms is None else rfc3339_utc(taken.fire_ms / 1000)


EXAMPLE_REPORT_ID = "rep_01k0a8w7zv6q4k3m2n1p0r9s8t"
INTELLIGENCE_REPORT = EventType(
    "intelligence.report",
    "A report of a schedule has ended, done or failed.",
    ReportNotice,
    {
        "schedule": EXAMPLE_SCHEDULE_ID,
        "report": EXAMPLE_REPORT_ID,
        "composite": "fleet_health",
        "state": "done",
        "boundary": "2026-11-23T05:00:00Z",
        "headline": "3 lines are well",
        "figures": [{"label": "Lines", "kind": "number", "value": 3}],
        "report_url": f"https://api.example.com/v1/intelligence/schedules/{EXAMPLE_SCHEDULE_ID}/report?report={EXAMPLE_REPORT_ID}",
    },
    read_with="get_intelligence_schedule_report",
    since="1.0.0",
)
"""It goes to the schedule's own address alone: no endpoint can choose it, so that it is not among the types of the catalogue."""


def report_notice(taken: LeasedReport, base_url: str, state: str, sheet: Sheet | None) -> ReportNotice:
    """The notice of a report. Choice: no reason of a failure is sent, since a refusal may name the account or line."""
    return {
        "schedule": taken.schedule,
        "report": taken.id,
        "composite": taken.composite,
        "state": state,
        "boundary": boundary_of(taken),
        "headline": REPORT_FAILED if sheet is None else sheet["headline"],
        "figures": [] if sheet is None else [figure for figure in sheet["figures"] if figure["kind"] in PUBLIC_KINDS][:NOTICE_FIGURES],
        "report_url": f"{base_url}/v1/intelligence/schedules/{taken.schedule}/report?report={taken.id}",
    }


def report_event(id: str, taken: LeasedReport, told: ReportNotice, now: float) -> NewEvent:
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


class ReportError(TypedDict):
    """Why a report was not made."""

    error: str
    code: str


class ReportOutcome(NamedTuple):
    """What one try came to: the report's body and its sheet, or why not, and whether the next try may do better."""

    body: str | None = None
    sheet: Sheet | None = None
    failure: ReportError | None = None
    passing: bool = False


class ScheduleRuns:
    """The schedules of all organisations, as one process works on them."""

    def __init__(self, deps: Deps, sheets: SheetMakers) -> None:
        self._deps, self._sheets = deps, sheets

    async def fire(self) -> int:
        """Begins the reports whose boundary has come; returns how many began here.

        Choice: of boundaries that passed while no process worked only the newest is made up for: a report tells of now, not of then.
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
        """Makes one report that is due; False when none is."""
        token, taken = self._deps.ids.new("lse_"), None
        with anyio.CancelScope(shield=True):  # cancelled here, the lease would be taken and never given back
            taken = await self.take(token)
        if taken is not None:
            await self._make(taken, token)
        return taken is not None

    async def take(self, token: str) -> LeasedReport | None:
        """A due report, under a lease with `token`; None when none is due."""
        store, now_ms = self._deps.store, int(self._deps.clock.now() * 1000)
        if not await store.read(any_report_due, now_ms=now_ms):
            return None
        return await store.write(take_report, token=token, now_ms=now_ms, lease_ms=int(REPORT_LEASE_SECONDS * 1000))

    async def _make(self, taken: LeasedReport, token: str) -> None:
        """One try. If the process is stopped meanwhile, another process gets the report at once."""
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
        if reply.refusal is not None:
            return failed_report(reply.refusal.message, reply.refusal.error_code, passing=may_succeed_later(reply.refusal))
        found = orjson.loads(reply.body)
        sheet = self._sheets[taken.composite](found)
        return ReportOutcome(orjson.dumps({"finding": found, "sheet": sheet}).decode(), sheet)

    async def _put_back(self, taken: LeasedReport, token: str, pause: float, *, counted: bool) -> None:
        again_ms = int((self._deps.clock.now() + pause) * 1000)
        await self._deps.store.write(return_report, report=taken.id, token=token, again_ms=again_ms, counted=counted)

    async def _finish(self, taken: LeasedReport, token: str, outcome: ReportOutcome) -> None:
        """Stores the outcome and tells the webhook; does nothing if the lease was lost or the schedule deleted."""
        deps, now = self._deps, self._deps.clock.now()
        state: Literal["done", "failed"] = "failed" if outcome.body is None else "done"
        why = None if outcome.failure is None else orjson.dumps(outcome.failure).decode()
        ended = EndedReport(taken.id, taken.schedule, token, state, outcome.body, why, now)
        event = report_event(deps.ids.new("evt_"), taken, report_notice(taken, deps.site.base_url, state, outcome.sheet), now)
        named: ReadyReport = {
            "report": taken.id,
            "schedule": taken.schedule,
            "composite": taken.composite,
            "state": state,
            "boundary": boundary_of(taken),
        }
        ready = new_event(WORK_REPORT_READY, named, organisation=taken.organisation, ids=deps.ids, now=now)
        mailed = await make_mailed_report(deps, schedule=taken.schedule, report=taken.id, sheet=outcome.sheet, now=now)

        def finish(connection: Connection) -> bool:
            if not finish_report(connection, ended=ended, event=event, ready=ready, ids=deps.ids):
                return False
            if mailed is not None:
                queue_report_mail(connection, deps, mailed)
            return True

        if await deps.store.write(finish):
            deps.wake_worker()
            deps.post()


def failed_report(error: str, code: str, *, passing: bool = False) -> ReportOutcome:
    return ReportOutcome(failure={"error": error, "code": code}, passing=passing)


def may_succeed_later(refusal: Refusal) -> bool:
    """Whether another try in a minute may succeed: faults of the upstream, the store and the service, and the burst limit."""
    if isinstance(refusal, QuotaExceeded):
        return refusal.error_code == "rate_limited"
    return isinstance(refusal, (ProviderError, StoreUnavailable, KeyUnknown, Internal))


ReportState = Literal["waiting", "running", "done", "failed"]
ENDED_REPORT_STATES = ("done", "failed")


class ReportRef(ScheduleRef):
    """Which schedule, and which of its reports."""

    report: Annotated[str | None, Field(max_length=64, description="This one, rep_...; absent: the newest that has ended.")] = None
    sheet: Annotated[bool, Field(description="With the sheet: headline, figures, charts, tables.")] = True


class ScheduleReport(TypedDict):
    """A report. `boundary` is null where somebody asked for it; `finding` is the composite's answer. Times are RFC 3339 UTC."""

    id: str
    object: Literal["intelligence.report"]
    schedule: str
    composite: Composite
    state: ReportState
    boundary: str | None
    created: str
    finished: str | None
    error: ReportError | None
    finding: dict[str, JsonValue] | None
    sheet: Sheet | None


WAITING_REPORT_EXAMPLE: ScheduleReport = {
    "id": EXAMPLE_REPORT_ID,
    "object": "intelligence.report",
    "schedule": EXAMPLE_SCHEDULE_ID,
    "composite": "fleet_health",
    "state": "waiting",
    "boundary": None,
    "created": "2026-11-23T05:00:00Z",
    "finished": None,
    "error": None,
    "finding": None,
    "sheet": None,
}
FAILED_REPORT_EXAMPLE: ScheduleReport = {
    **WAITING_REPORT_EXAMPLE,
    "state": "failed",
    "boundary": "2026-11-23T05:00:00Z",
    "finished": "2026-11-23T05:00:00Z",
    "error": {"error": "The daily quota of 50000 calls is used up; it starts again at 2026-11-24T00:00:00Z", "code": "quota_exceeded"},
}


def render_report(row: ReportRow, *, with_sheet: bool) -> ScheduleReport:
    body: ReportBody | None = None if row.body is None else cast(ReportBody, orjson.loads(row.body))
    return {
        "id": row.id,
        "object": "intelligence.report",
        "schedule": row.schedule,
        "composite": cast(Composite, row.composite),
        "state": cast(ReportState, row.state),
        "boundary": None if row.fire_ms is None else rfc3339_utc(row.fire_ms / 1000),
        "created": rfc3339_utc(row.created),
        "finished": None if row.finished is None else rfc3339_utc(row.finished),
        "error": None if row.error is None else cast(ReportError, orjson.loads(row.error)),
        "finding": None if body is None else cast("dict[str, JsonValue]", body["finding"]),
        "sheet": None if body is None or not with_sheet else body["sheet"],
    }


@operation(
    "GET",
    "/v1/intelligence/schedules/{id}/report",
    title="Get schedule report",
    raises=[NotFound],
    tool_defaults={"sheet": False},
    examples=[Example("The newest report", {"id": EXAMPLE_SCHEDULE_ID}, FAILED_REPORT_EXAMPLE)],
)
async def get_intelligence_schedule_report(ctx: Ctx, params: ReportRef) -> ScheduleReport:
    """Get a schedule's newest report that has ended, unredacted.

    With `report` (of run_intelligence_schedule) that one: ask again in a few seconds until `state` is `done` or `failed`.

    `finding` is what the composite answered, `sheet` the same as headline, figures, charts and tables, which the share link shows with
    lines redacted; a tool call gets the sheet when it asks with `sheet` true. A report that failed says why in `error`. The newest 30
    are kept.
    """
    row = await ctx.deps.store.read(read_schedule_report, schedule=params.id, organisation=ctx.organisation, report=params.report)
    if row is None:
        raise schedule_not_found(params.id)
    return render_report(row, with_sheet=params.sheet)


def read_schedule_report(connection: Connection, *, schedule: str, organisation: str, report: str | None) -> ReportRow | None:
    """The report with the id `report`, or the newest that has ended; None without such a schedule. Raises NotFound without a report."""
    if not has_schedule(connection, schedule=schedule, organisation=organisation):
        return None
    if report is not None:
        row = read_report(connection, schedule=schedule, organisation=organisation, report=report)
        if row is None:
            raise NotFound(
                f"{schedule} has no report {redact(report)}", param="report", hint="Leave report out for the newest; 30 are kept"
            )
        return row
    row = newest_report(connection, schedule=schedule, organisation=organisation)
    if row is None or row.state not in ENDED_REPORT_STATES:
        raise no_report_yet(schedule, row)
    return row


def no_report_yet(schedule: str, row: ReportRow | None) -> NotFound:
    if row is None:
        hint = "Wait for next_run, or have one made now with POST /v1/intelligence/schedules/{id}/run"
        return NotFound(f"{schedule} has no report yet", code="no_report_yet", param="id", hint=hint)
    text = f"The first report of {schedule} is {row.state} since {rfc3339_utc(row.created)}"
    return NotFound(text, code="no_report_yet", param="id", hint=f"Ask again in a few seconds; its id is {row.id}")


class ScheduleResting(Conflict):
    """What the schedule was made with has ended, or its person has left."""

    code = SCHEDULE_RESTING


@operation(
    "POST",
    "/v1/intelligence/schedules/{id}/run",
    spends=SpendKind.NOTHING,
    reaches_out=True,
    scope=Scope.WRITE,
    status=201,
    title="Run schedule now",
    raises=[NotFound, ScheduleResting, QuotaExceeded],
    examples=[Example("Do not wait for Monday", {"id": EXAMPLE_SCHEDULE_ID}, WAITING_REPORT_EXAMPLE)],
)
async def run_intelligence_schedule(ctx: Ctx, params: ScheduleRef) -> ScheduleReport:
    """Have a schedule's report made now; its next boundary stays.

    Answers at once, `waiting`: read it with get_intelligence_schedule_report and `report` set to this `id`. At most 6 an hour.

    A fleet takes up to two minutes, so the report is made in the background, by whichever process takes it, and survives one that
    ends. The webhook is told as of any report; one that was disabled is sent to again. The seventh call in an hour is 429. A schedule that
    rests, since the key or login that it was made with has ended, makes no report (409 `schedule_resting`).
    """
    # Choice: accepted and looked up, since reading a fleet outlasts the patience of many clients, and a run outlives its caller.
    answer = await ctx.settle_result(
        ask_for_report,
        id=ctx.deps.ids.new("rep_"),
        schedule=params.id,
        organisation=ctx.organisation,
        now=ctx.now,
        upgrade_url=ctx.deps.site.upgrade_url,
    )
    ctx.deps.wake_worker()
    return answer


def ask_for_report(connection: Connection, *, id: str, schedule: str, organisation: str, now: float, upgrade_url: str) -> ScheduleReport:
    """The report that waits now. Raises NotFound, ScheduleResting, or QuotaExceeded."""
    begun = ask_report(connection, id=id, schedule=schedule, organisation=organisation, now=now)
    row = read_report(connection, schedule=schedule, organisation=organisation, report=id)
    if begun is False:
        text, reset = f"{schedule} was run {RUNS_PER_HOUR} times in the last hour; its boundaries come as ever", now + RUNS_HOUR_SECONDS
        raise rate_limited(text, limit=RUNS_PER_HOUR, reset=reset, retry_after=RUNS_HOUR_SECONDS, upgrade_url=upgrade_url)
    if row is None:
        raise schedule_not_found(schedule)
    if not schedule_works(connection, schedule=schedule, now=now):
        raise ScheduleResting(SCHEDULE_RESTS, param="id", hint="Make it anew with a key or login of yours, and delete this one")
    return render_report(row, with_sheet=False)


SHEETS: Mapping[str, Callable[..., Sheet]] = {
    "audit_network_coverage": network_coverage.coverage_sheet,
    "churn_risk": churn_risk.churn_sheet,
    "detect_usage_anomalies": usage_anomalies.anomaly_sheet,
    "diagnose_subscriber": line_diagnosis.diagnosis_sheet,
    "fleet_health": fleet_health.health_sheet,
    "fleet_problems": fleet_problems.problems_sheet,
    "high_cost_subscribers": high_cost_subscribers.cost_sheet,
    "marketing_intelligence": marketing_intelligence.market_sheet,
    "optimize_package": savings.savings_sheet,
}
