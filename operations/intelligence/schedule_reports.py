"""Reports of a schedule, whole, for the organisation that they are about; and having one made now."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, cast

import orjson
from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence import (
    churn_risk,
    fleet_health,
    high_cost_subscribers,
    line_diagnosis,
    marketing_intelligence,
    network_coverage,
    package_savings,
    usage_anomalies,
)
from operations.intelligence.reports.sheet import Sheet
from operations.intelligence.schedules import EXAMPLE_SCHEDULE_ID, ScheduleRef, schedule_not_found
from operations.intelligence.scheduling.composites import Composite
from operations.intelligence.scheduling.runs import SCHEDULE_RESTING, SCHEDULE_RESTS
from registry.errors import Conflict, NotFound, QuotaExceeded
from registry.limits import Scope
from registry.operation import Example, operation
from registry.policy import rfc3339_utc
from registry.redaction import redact
from storage.engine.connection import Connection
from storage.schedule_reports import RUNS_HOUR_SECONDS, RUNS_PER_HOUR, ReportRow, ask_report, newest_report, read_report
from storage.schedules import has_schedule, schedule_works

ReportState = Literal["waiting", "running", "done", "failed"]
ENDED_REPORT_STATES = ("done", "failed")


class ReportRef(ScheduleRef):
    """Which schedule, and which of its reports."""

    report: Annotated[str | None, Field(max_length=64, description="This one, rep_...; absent: the newest that has ended.")] = None
    sheet: Annotated[bool, Field(description="With the sheet: headline, figures, charts, tables.")] = True


class ReportError(TypedDict):
    """Why a report was not made."""

    error: str
    code: str


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


class ReportBody(TypedDict):
    """What is kept of a report that was made."""

    finding: dict[str, JsonValue]
    sheet: Sheet


WAITING_REPORT_EXAMPLE: ScheduleReport = {
    "id": "rep_01k0a8w7zv6q4k3m2n1p0r9s8t",
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
    """The report of a row."""
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
        "finding": None if body is None else body["finding"],
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
    """The report that is meant, or a refusal that says what there is; None when there is no such schedule."""
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
    """The first report is still to come."""
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
    """The report that waits, or a refusal."""
    begun = ask_report(connection, id=id, schedule=schedule, organisation=organisation, now=now)
    row = read_report(connection, schedule=schedule, organisation=organisation, report=id)
    if begun is False:
        raise run_limit_reached(schedule, now, upgrade_url)
    if row is None:
        raise schedule_not_found(schedule)
    if not schedule_works(connection, schedule=schedule, now=now):
        raise ScheduleResting(SCHEDULE_RESTS, param="id", hint="Make it anew with a key or login of yours, and delete this one")
    return render_report(row, with_sheet=False)


def run_limit_reached(schedule: str, now: float, upgrade_url: str) -> QuotaExceeded:
    """The hour is used up."""
    return QuotaExceeded(
        f"{schedule} was run {RUNS_PER_HOUR} times in the last hour; its boundaries come as ever",
        code="rate_limited",
        limit=RUNS_PER_HOUR,
        used=RUNS_PER_HOUR,
        reset_at=rfc3339_utc(now + RUNS_HOUR_SECONDS),
        retry_after=RUNS_HOUR_SECONDS,
        upgrade_url=upgrade_url,
    )


SHEETS: Mapping[str, Callable[..., Sheet]] = {
    "audit_network_coverage": network_coverage.coverage_sheet,
    "churn_risk": churn_risk.churn_sheet,
    "detect_usage_anomalies": usage_anomalies.anomaly_sheet,
    "diagnose_subscriber": line_diagnosis.diagnosis_sheet,
    "fleet_health": fleet_health.health_sheet,
    "high_cost_subscribers": high_cost_subscribers.cost_sheet,
    "marketing_intelligence": marketing_intelligence.market_sheet,
    "optimize_package": package_savings.savings_sheet,
}
