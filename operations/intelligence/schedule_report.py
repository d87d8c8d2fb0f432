"""Reports of a schedule, whole, for the organisation that they are about."""

from typing import Annotated, Literal, cast

import orjson
from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.schedules import ScheduleRef, unknown
from operations.intelligence.scheduling.input import Composite
from operations.intelligence.sheet import Sheet
from registry.errors import NotFound
from registry.operation import Example, operation
from registry.policy import stamp
from registry.redaction import mask
from storage.connection import Connection
from storage.reports.schedule_reports import ReportRow, newest_report, read_report
from storage.reports.schedules import has_schedule

State = Literal["waiting", "running", "done", "failed"]
ENDED = ("done", "failed")


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
    state: State
    boundary: str | None
    created: str
    finished: str | None
    error: ReportError | None
    finding: dict[str, JsonValue] | None
    sheet: Sheet | None


class Body(TypedDict):
    """What is kept of a report that was made."""

    finding: dict[str, JsonValue]
    sheet: Sheet


ID = "sch_01k0a8w7zv6q4k3m2n1p0r9s8t"
WAITING: ScheduleReport = {
    "id": "rep_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "intelligence.report",
    "schedule": ID,
    "composite": "fleet_health",
    "state": "waiting",
    "boundary": None,
    "created": "2026-11-23T05:00:00Z",
    "finished": None,
    "error": None,
    "finding": None,
    "sheet": None,
}
FAILED: ScheduleReport = {
    **WAITING,
    "state": "failed",
    "boundary": "2026-11-23T05:00:00Z",
    "finished": "2026-11-23T05:00:00Z",
    "error": {"error": "The daily quota of 50000 calls is used up; it starts again at 2026-11-24T00:00:00Z", "code": "quota_exceeded"},
}


def report_of(row: ReportRow, *, with_sheet: bool) -> ScheduleReport:
    """The report of a row."""
    body: Body | None = None if row.body is None else cast(Body, orjson.loads(row.body))
    return {
        "id": row.id,
        "object": "intelligence.report",
        "schedule": row.schedule,
        "composite": cast(Composite, row.composite),
        "state": cast(State, row.state),
        "boundary": None if row.fire_ms is None else stamp(row.fire_ms / 1000),
        "created": stamp(row.created),
        "finished": None if row.finished is None else stamp(row.finished),
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
    examples=[Example("The newest report", {"id": ID}, FAILED)],
)
async def get_intelligence_schedule_report(ctx: Ctx, params: ReportRef) -> ScheduleReport:
    """Get a schedule's newest report that has ended, unredacted.

    With `report` (of run_intelligence_schedule) that one: ask again in a few seconds until `state` is `done` or `failed`.

    `finding` is what the composite answered, `sheet` the same as headline, figures, charts and tables, which the share link shows with
    lines redacted; a tool call gets the sheet when it asks with `sheet` true. A report that failed says why in `error`. The newest 30
    are kept.
    """
    row = await ctx.deps.store.read(found, schedule=params.id, organisation=ctx.organisation, report=params.report)
    if row is None:
        raise unknown(params.id)
    return report_of(row, with_sheet=params.sheet)


def found(connection: Connection, *, schedule: str, organisation: str, report: str | None) -> ReportRow | None:
    """The report that is meant, or a refusal that says what there is; None when there is no such schedule."""
    if not has_schedule(connection, schedule=schedule, organisation=organisation):
        return None
    if report is not None:
        row = read_report(connection, schedule=schedule, organisation=organisation, report=report)
        if row is None:
            raise NotFound(f"{schedule} has no report {mask(report)}", param="report", hint="Leave report out for the newest; 30 are kept")
        return row
    row = newest_report(connection, schedule=schedule, organisation=organisation)
    if row is None or row.state not in ENDED:
        raise none_yet(schedule, row)
    return row


def none_yet(schedule: str, row: ReportRow | None) -> NotFound:
    """The first report is still to come."""
    if row is None:
        hint = "Wait for next_run, or have one made now with POST /v1/intelligence/schedules/{id}/run"
        return NotFound(f"{schedule} has no report yet", code="no_report_yet", param="id", hint=hint)
    text = f"The first report of {schedule} is {row.state} since {stamp(row.created)}"
    return NotFound(text, code="no_report_yet", param="id", hint=f"Ask again in a few seconds; its id is {row.id}")
