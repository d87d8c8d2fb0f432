"""Having a schedule's report made now."""

from operations.deps import Ctx
from operations.intelligence.schedule_report import WAITING, ScheduleReport, report_of
from operations.intelligence.schedules import ID, ScheduleRef, unknown
from operations.intelligence.scheduling.runs import RESTING, RESTS
from registry.errors import Conflict, NotFound, QuotaExceeded
from registry.limits import Scope
from registry.operation import Example, operation
from registry.policy import stamp
from storage.connection import Connection
from storage.reports.schedule_reports import HOUR, RUNS_PER_HOUR, ask_report, read_report
from storage.reports.schedules import schedule_works


class ScheduleResting(Conflict):
    """What the schedule was made with has ended, or its person has left."""

    code = RESTING


@operation(
    "POST",
    "/v1/intelligence/schedules/{id}/run",
    reaches_out=True,
    scope=Scope.WRITE,
    status=201,
    title="Run schedule now",
    raises=[NotFound, ScheduleResting, QuotaExceeded],
    examples=[Example("Do not wait for Monday", {"id": ID}, WAITING)],
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
        ask,
        id=ctx.deps.ids.new("rep_"),
        schedule=params.id,
        organisation=ctx.organisation,
        now=ctx.now,
        upgrade_url=ctx.deps.site.upgrade_url,
    )
    ctx.deps.wake_worker()
    return answer


def ask(connection: Connection, *, id: str, schedule: str, organisation: str, now: float, upgrade_url: str) -> ScheduleReport:
    """The report that waits, or a refusal."""
    begun = ask_report(connection, id=id, schedule=schedule, organisation=organisation, now=now)
    row = read_report(connection, schedule=schedule, organisation=organisation, report=id)
    if begun is False:
        raise too_often(schedule, now, upgrade_url)
    if row is None:
        raise unknown(schedule)
    if not schedule_works(connection, schedule=schedule, now=now):
        raise ScheduleResting(RESTS, param="id", hint="Make it anew with a key or login of yours, and delete this one")
    return report_of(row, with_sheet=False)


def too_often(schedule: str, now: float, upgrade_url: str) -> QuotaExceeded:
    """The hour is used up."""
    return QuotaExceeded(
        f"{schedule} was run {RUNS_PER_HOUR} times in the last hour; its boundaries come as ever",
        code="rate_limited",
        limit=RUNS_PER_HOUR,
        used=RUNS_PER_HOUR,
        reset_at=stamp(now + HOUR),
        retry_after=HOUR,
        upgrade_url=upgrade_url,
    )
