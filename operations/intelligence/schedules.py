"""Schedules: composites that run by cron, and are told to a webhook or shown behind a link; which composites, and when.

Choice: as Debian's cron, which cronsim follows. A time that the clock skips comes once, at the moment after the gap; one that it shows
twice comes once, the first time. Where the minute or the hour begins with a star the schedule goes by elapsed time: hourly stays hourly.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, NotRequired, cast
from zoneinfo import ZoneInfo

import orjson
from cronsim import CronSim, CronSimError
from pydantic import Field, JsonValue, WithJsonSchema
from typing_extensions import TypedDict

from clients.webhooks.signature import WEBHOOK_SECRET_BYTES, new_webhook_secret
from operations.deps import Ctx
from operations.ledger.webhooks import check_webhook_address
from operations.secret_tokens import new_secret_token, secret_digest
from operations.times import check_timezone, utc_today
from operations.vocabulary import ListOf, ListPage, list_page
from registry.answer import InternalCalls
from registry.binding import binding_of
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict, NotFound, Restricted
from registry.operation import NOTHING_DUE, Due, Example, Input, Scope, SpendKind, operation
from registry.redaction import redact
from registry.restrictions import check_restricted_operation
from storage.engine.sql import Connection
from storage.mail_subscriptions import proved_address
from storage.schedule_mails import ReportMailForm, ScheduleMail, insert_schedule_mail, list_schedule_mails
from storage.schedules import END_OF_TIME_MS, NewSchedule, ScheduleEndpoint, ScheduleRow, delete_schedule, insert_schedule, list_schedules
from storage.sealing import schedule_mail_field, webhook_secret_field

# How far back the newest boundary is looked for, step by step: most schedules have one in the last hour, some one in four years.
BOUNDARY_WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 24, 24 * 40, 24 * 400))


def next_boundary(cron: str, timezone: str, after_ms: int) -> int | None:
    """The first time after `after_ms`, Unix milliseconds; None when there is none in the next fifty years."""
    after = datetime.fromtimestamp(after_ms // 1000, UTC)
    for found in CronSim(cron, after.astimezone(ZoneInfo(timezone))):
        # In an hour that the clock shows twice cronsim names the first of two equal times, which may lie behind us.
        if (moment := found.astimezone(UTC)) > after:
            return int(moment.timestamp()) * 1000
    return None


def newest_boundary(cron: str, timezone: str, since_ms: int, now_ms: int) -> int:
    """The last time that has come by `now_ms`, of a schedule that waits for the one at `since_ms`; Unix milliseconds."""
    for window in BOUNDARY_WINDOWS:
        start_ms = now_ms - int(window.total_seconds()) * 1000
        if start_ms <= since_ms:
            break
        found = newest_boundary_after(cron, timezone, start_ms, now_ms)
        if found is not None:
            return found
    return newest_boundary_after(cron, timezone, since_ms, now_ms) or since_ms


def newest_boundary_after(cron: str, timezone: str, start_ms: int, now_ms: int) -> int | None:
    """The last time after `start_ms` that has come by `now_ms`; Unix milliseconds."""
    newest, found = None, next_boundary(cron, timezone, start_ms)
    while found is not None and found <= now_ms:
        newest, found = found, next_boundary(cron, timezone, found)
    return newest


CRON_CHECK_START = datetime(2026, 1, 1, tzinfo=UTC)
CRON_FIELDS = 5
DAY_MINUTES = 24 * 60
# Choice: a report reads a whole fleet and its figures change slowly; oftener it would only use up the daily quota.
SCHEDULE_INTERVAL_MINUTES = 15
CRON_EXAMPLES = "`0 6 * * *` is daily at 6, `30 7 * * MON` Mondays at 7:30, `*/15 * * * *` every 15 minutes"


def first_boundary(cron: str, timezone: str, now: float) -> int:
    """The first time from now on, Unix milliseconds. Raises BadRequest for a time zone or expression that cannot be a schedule."""
    check_timezone(timezone)
    check_cron(cron)
    found = next_boundary(cron, timezone, int(now * 1000))
    if found is None:
        raise refused_cron(cron, "names no day of the next fifty years")
    return found


def check_cron(cron: str) -> None:
    """Raises BadRequest unless `cron` has five fields that cronsim reads, and no two times are too close to each other."""
    count = len(cron.split())
    if count != CRON_FIELDS:
        counted = f"{count} field{'' if count == 1 else 's'}"
        raise refused_cron(cron, f"has {counted}; minute, hour, day, month and weekday are {CRON_FIELDS}")
    try:
        parsed = CronSim(cron, CRON_CHECK_START)
    except (CronSimError, ValueError, AssertionError) as error:
        field = str(error).removeprefix("Bad ") if isinstance(error, CronSimError) else "one of its fields"
        raise refused_cron(cron, f"cannot be read; look at its {field}") from None
    nearest = shortest_interval(parsed.minutes, parsed.hours)
    if nearest < SCHEDULE_INTERVAL_MINUTES:
        again = f"{nearest} minute{'' if nearest == 1 else 's'}"
        raise refused_cron(cron, f"comes again after {again}; at least {SCHEDULE_INTERVAL_MINUTES} must be between two reports")


def refused_cron(cron: str, why: str) -> BadRequest:
    return BadRequest(f"cron: {quote_schedule_text(cron)} {why}", param="cron", hint=CRON_EXAMPLES)


def shortest_interval(minutes: set[int], hours: set[int]) -> int:
    """The least minutes between two times of a day, or of a day and the next."""
    times = sorted(hour * 60 + minute for hour in hours for minute in minutes)
    return min(later - earlier for earlier, later in zip(times, [*times[1:], times[0] + DAY_MINUTES], strict=True))


def quote_schedule_text(text: str) -> str:
    return repr(redact(text[:60]))


Composite = Literal[
    "audit_network_coverage",
    "churn_risk",
    "detect_usage_anomalies",
    "diagnose_subscriber",
    "fleet_health",
    "fleet_problems",
    "high_cost_subscribers",
    "marketing_intelligence",
    "optimize_package",
]
"""The composites that may be scheduled."""
COMPOSITES_WITH_RANGE = ("high_cost_subscribers",)
REPORT_WINDOW_DAYS = 28
CompositeArguments = Mapping[str, JsonValue]
CompositeInput = Annotated[
    dict[str, JsonValue],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "accountId": {"type": "integer", "minimum": 1, "description": "Only this account, where the composite takes one."},
                "iccid": {"type": "string", "description": "SIM number of one line, where the composite takes one; absent: the fleet."},
                "cause": {"type": "string", "description": "Only this cause, of fleet_problems."},
                "start": {"type": "string", "format": "date", "description": "First UTC day of high_cost_subscribers."},
                "end": {"type": "string", "format": "date", "description": "Its last; without both: the last 28 days, at every run anew."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 500, "description": "Rows of the report."},
            },
            "additionalProperties": False,
        }
    ),
]
"""The input of a composite. Which of the fields one takes, `checked_input` says."""


def check_composite_input(inside: InternalCalls, composite: Composite, given: CompositeArguments, now: float) -> str:
    """`given` as JSON text. Raises BadRequest, which names the field of `input`, unless the composite takes it.

    Choice: only the form is checked here. Whether accounts and lines are the organisation's is asked at every run, since lines move.
    """
    if "starting_after" in given:
        raise BadRequest(
            "input.starting_after: a report always begins at the first row",
            param="input.starting_after",
            hint="Leave it out, and give a larger limit",
        )
    pipeline = inside.pipeline
    binding = binding_of(pipeline.catalogue.operations[composite])
    try:
        binding.validate(binding.arguments(complete_input(composite, given, now)))
    except BadRequest as refusal:
        raise refusal_of_input(refusal) from None
    return orjson.dumps(given).decode()


def refusal_of_input(refusal: BadRequest) -> BadRequest:
    """The composite's refusal, with the schedule's field as its `param`."""
    field, text = refusal.param, refusal.message
    if field is None:
        return BadRequest(f"input: {text}", code=refusal.error_code, param="input", hint=refusal.hint)
    told = f"input.{text}" if text.startswith(field) else f"input.{field}: {text}"
    return BadRequest(told, code=refusal.error_code, param=f"input.{field}", hint=refusal.hint)


def complete_input(composite: str, given: CompositeArguments, now: float) -> CompositeArguments:
    """The input of one run.

    Choice: a composite that wants a range of days and is given none looks at the last 28 whole UTC days, anew at every run. A range
    that is given stays as it is.
    """
    if composite not in COMPOSITES_WITH_RANGE or "start" in given or "end" in given:
        return given
    last = utc_today(now) - timedelta(days=1)
    return {**given, "start": (last - timedelta(days=REPORT_WINDOW_DAYS - 1)).isoformat(), "end": last.isoformat()}


ScheduleObject = Literal["intelligence.schedule"]
ScheduleId = Annotated[str, Field(max_length=64, description="Schedule id, sch_...")]


class NewSchedules(Input):
    """What to run, when, and who is told."""

    composite: Annotated[Composite, Field(description="Which report to make: the operation of this name.")]
    input: Annotated[CompositeInput, Field(description="That operation's input.", default_factory=dict)]
    cron: Annotated[str, Field(max_length=100, description="Minute hour day month weekday; 15 minutes apart or more.")]
    timezone: Annotated[str, Field(max_length=64, description="IANA name, Europe/Berlin.")] = "UTC"
    webhook_url: Annotated[str | None, Field(description="https URL of a public host that is told of each report.")] = None
    share: Annotated[bool, Field(description="Make a public link to the newest report, lines redacted.")] = False
    mail: Annotated[
        ReportMailForm | None,
        Field(description="Mail each report to yourself: link has the public link, which it makes, and a summary; pdf the report, too."),
    ] = None


class ScheduleRef(Input):
    """Which schedule."""

    id: ScheduleId


class LastReport(TypedDict):
    """The newest report that has ended."""

    id: str
    state: Literal["done", "failed"]
    finished: str


class Schedule(TypedDict):
    """A composite that runs by cron. Times are RFC 3339 UTC; `next_run` is null when no more is to come.

    `made_with` is the key or login (gnt_) that it was made with, whose calls its runs are, and `ends_at` when that one expires; null where
    there is none. `status` is resting when it has ended, when `made_by` has left the organisation, or while the tier lacks the write scope.

    `mail` stands there while its reports are mailed to whoever made it: with a link, or as a PDF, too.

    `webhook_status` is disabled after a 410 or 120 hours of failures; running the schedule enables it again.
    """

    id: str
    object: ScheduleObject
    composite: Composite
    input: dict[str, JsonValue]
    cron: str
    timezone: str
    next_run: str | None
    webhook_url: str | None
    webhook_status: Literal["enabled", "disabled"] | None
    shared: bool
    last_report: LastReport | None
    made_by: str
    made_with: str | None
    mail: NotRequired[ReportMailForm]
    status: Literal["active", "resting"]
    ends_at: str | None
    created: str


class CreatedSchedule(Schedule):
    """The new schedule with what is shown this once: the webhook's `secret`, the public `share_url`."""

    secret: NotRequired[str]
    share_url: NotRequired[str]


class DeletedSchedule(TypedDict):
    """The schedule is gone."""

    id: str
    object: ScheduleObject
    deleted: Literal[True]


EXAMPLE_SCHEDULE_ID = "sch_01k0a8w7zv6q4k3m2n1p0r9s8t"
SCHEDULE_EXAMPLE: Schedule = {
    "id": EXAMPLE_SCHEDULE_ID,
    "object": "intelligence.schedule",
    "composite": "fleet_health",
    "input": {},
    "cron": "0 6 * * MON",
    "timezone": "Europe/Berlin",
    "next_run": "2026-11-23T05:00:00Z",
    "webhook_url": "https://hooks.example.com/reports",
    "webhook_status": "enabled",
    "shared": True,
    "last_report": None,
    "made_by": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "made_with": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "status": "active",
    "ends_at": None,
    "created": "2026-11-20T09:20:00Z",
}
CREATED_SCHEDULE_EXAMPLE: CreatedSchedule = {
    **SCHEDULE_EXAMPLE,
    "secret": "whsec_...",
    "share_url": "https://api.example.com/v1/intelligence/share/...",
}


def schedule_not_found(schedule: str) -> NotFound:
    """Unknown and foreign schedules are answered alike."""
    return NotFound(f"No schedule {redact(schedule)} in your organisation", param="id", hint="list_intelligence_schedules shows the ids")


def render_schedule(row: ScheduleRow, mail: ReportMailForm | None = None) -> Schedule:
    last: LastReport | None = None
    if row.report is not None and row.report_finished is not None:
        state = cast(Literal["done", "failed"], row.report_state)
        last = {"id": row.report, "state": state, "finished": rfc3339_utc(row.report_finished)}
    shown: Schedule = {
        "id": row.id,
        "object": "intelligence.schedule",
        "composite": cast(Composite, row.composite),
        "input": cast("dict[str, JsonValue]", orjson.loads(row.input)),
        "cron": row.cron,
        "timezone": row.timezone,
        "next_run": None if row.next_ms >= END_OF_TIME_MS else rfc3339_utc(row.next_ms / 1000),
        "webhook_url": row.url,
        "webhook_status": cast(Literal["enabled", "disabled"] | None, row.status),
        "shared": bool(row.shared),
        "last_report": last,
        "made_by": row.created_by,
        "made_with": row.made_with,
        "status": "active" if row.works else "resting",
        "ends_at": None if row.ends is None else rfc3339_utc(row.ends),
        "created": rfc3339_utc(row.created),
    }
    if mail is not None:
        shown["mail"] = mail
    return shown


@operation(
    "GET",
    "/v1/intelligence/schedules",
    title="List report schedules",
    examples=[Example("Which reports run by themselves?", {}, {"object": "list", "data": [SCHEDULE_EXAMPLE], "has_more": False})],
)
async def list_intelligence_schedules(ctx: Ctx, params: ListPage) -> ListOf[Schedule]:
    """List your report schedules, newest first, without their secrets.

    `last_report` says how the newest run ended; get_intelligence_schedule_report reads it.

    `next_run` is the next boundary of the cron expression. Share links are not shown again: delete a schedule and make it anew for a
    new one.
    """
    store = ctx.deps.store
    rows = await store.read(list_schedules, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1, now=ctx.now)
    forms: dict[str, ReportMailForm] = {
        mail.schedule: mail.form for mail in await store.read(list_schedule_mails, organisation=ctx.organisation)
    }
    return list_page([render_schedule(row, forms.get(row.id)) for row in rows], params.limit)


async def due_of_schedule(_ctx: Ctx, params: NewSchedules) -> Due | SpendKind:
    """Nothing; where reports go to a webhook, as where an endpoint of events is made, a key with a limit of money needs an approval."""
    return NOTHING_DUE if params.webhook_url is None else SpendKind.OPEN


@operation(
    "POST",
    "/v1/intelligence/schedules",
    spends=due_of_schedule,
    scope=Scope.WRITE,
    status=201,
    title="Create report schedule",
    raises=[Conflict, Restricted],
    body_limit=16 * 1024,
    examples=[
        Example(
            "The fleet's health every Monday morning",
            {
                "composite": "fleet_health",
                "cron": "0 6 * * MON",
                "timezone": "Europe/Berlin",
                "webhook_url": "https://hooks.example.com/reports",
                "share": True,
            },
            CREATED_SCHEDULE_EXAMPLE,
        )
    ],
)
async def create_intelligence_schedule(ctx: Ctx, params: NewSchedules) -> CreatedSchedule:
    """Have a report made by cron, told to a webhook or shared by a link.

    Keep `secret` and `share_url`: shown once. At most 50 schedules. It rests when the key or login that makes it ends (`ends_at`).

    `cron` has five fields, and at least 15 minutes between two boundaries; `timezone` is an IANA name. A time of day that the clock
    skips in spring comes at the moment after the gap, one that it shows twice in autumn comes once. `input` is checked now as the
    composite checks it; whether its accounts and lines are yours is asked at each run. high_cost_subscribers without `start` and
    `end` looks at the last 28 whole days of each run.

    A run is an ordinary call of the key or login that the schedule is made with: it counts in the quota and in the key's `calls_per_day`,
    is held to its restrictions, and sees what they let it see at that time. When the key or login ends, or its person leaves, the schedule
    rests for good: nothing runs and the link leads nowhere. One that is to last is made with a key that lasts. Upstream troubles are
    tried three times; other refusals make the report `failed`, and the next boundary comes anyway. Of boundaries that pass while the
    service is down only the newest is made up for. The newest 30 reports are kept.

    `mail` mails each report to you, who must be signed in: a summary with the share link, or the report as a PDF, too. It ends with your
    membership, or by the link in the mail.

    The webhook gets a signed POST of type `intelligence.report` for every report, done or failed, under the signatures and the ten
    attempts of connectivity events. The share link shows the newest report with every line redacted, to whoever has it, until the
    schedule is deleted.
    """
    next_ms = first_boundary(params.cron, params.timezone, ctx.now)
    check_composite_allowed(ctx, params.composite)
    await check_mailable(ctx, params.mail)
    given = check_composite_input(ctx.deps.internal_calls, params.composite, params.input, ctx.now)
    if params.webhook_url is not None:
        await check_webhook_address(ctx, params.webhook_url, param="webhook_url")
    id, token = ctx.deps.ids.new("sch_"), new_secret_token(ctx.deps.ids) if params.share or params.mail else None
    secret, endpoint = new_schedule_endpoint(ctx, id, params.webhook_url)
    row = NewSchedule(
        id=id,
        organisation=ctx.organisation,
        composite=params.composite,
        input=given,
        cron=params.cron,
        timezone=params.timezone,
        endpoint=None if endpoint is None else endpoint.id,
        share_digest=None if token is None else secret_digest(token),
        created_by=ctx.principal,
        next_ms=next_ms,
        created=int(ctx.now),
        made_with=ctx.caller.key_id or None,
    )
    answer = created_schedule(row, params.webhook_url, ctx.caller.expires_at)
    if secret is not None:
        answer["secret"] = secret
    if token is not None:
        answer["share_url"] = f"{ctx.deps.site.base_url}/v1/intelligence/share/{token}"
    mail = new_schedule_mail(ctx, id, params.mail, token)
    if mail is not None:
        answer["mail"] = mail.form

    def keep(connection: Connection) -> None:
        insert_schedule(connection, schedule=row, endpoint=endpoint)
        if mail is not None:
            insert_schedule_mail(connection, mail=mail)

    return await ctx.settle(answer, keep)


async def check_mailable(ctx: Ctx, mail: ReportMailForm | None) -> None:
    """Refuses to mail reports to a program, and to somebody whose address nobody has proved."""
    if mail is None:
        return
    if ctx.caller.kind != "session":
        raise BadRequest(
            f"mail: {mail} was asked for with an API key; reports are mailed to people, who ask for it themselves",
            param="mail",
            hint="Leave it out, or make the schedule as somebody who is signed in",
        )
    if await ctx.deps.store.read(proved_address, person=ctx.caller.principal) is None:
        raise BadRequest(
            f"mail: {mail} needs an address of yours that was proved here, and there is none",
            param="mail",
            hint="Sign in with the code that is mailed to your address, or leave it out and share a link",
        )


def new_schedule_mail(ctx: Ctx, schedule: str, form: ReportMailForm | None, token: str | None) -> ScheduleMail | None:
    """How the reports are mailed to the caller. The link is in every mail, so its token is stored, sealed."""
    if form is None or token is None:
        return None
    sealed = ctx.deps.keyring.seal(token, org_id=ctx.organisation, field=schedule_mail_field(schedule))
    return ScheduleMail(schedule, ctx.organisation, ctx.caller.principal, form, sealed)


def new_schedule_endpoint(ctx: Ctx, schedule: str, url: str | None) -> tuple[str | None, ScheduleEndpoint | None]:
    """A signing secret, and the hidden endpoint that stores it sealed."""
    if url is None:
        return None, None
    id, secret = ctx.deps.ids.new("we_"), new_webhook_secret(ctx.deps.ids.bytes(WEBHOOK_SECRET_BYTES))
    sealed = ctx.deps.keyring.seal(secret, org_id=ctx.organisation, field=webhook_secret_field(id))
    return secret, ScheduleEndpoint(id, ctx.organisation, url, sealed, schedule, int(ctx.now))


def check_composite_allowed(ctx: Ctx, composite: Composite) -> None:
    """Refuses a composite that the caller's restrictions exclude, now and not in every report."""
    catalogue, held = ctx.deps.internal_calls.pipeline.catalogue, ctx.caller.restrictions
    check_restricted_operation(catalogue.operations[composite], held, catalogue.operations_in(held.toolsets or ()))


def created_schedule(row: NewSchedule, url: str | None, ends: int | None) -> CreatedSchedule:
    """The answer without the secret. `ends`: when the credential that made the schedule expires, Unix seconds."""
    status = None if url is None else "enabled"
    shared = 0 if row.share_digest is None else 1
    given = (row.id, row.composite, row.input, row.cron, row.timezone, row.next_ms, url, status, shared, row.created)
    return {**render_schedule(ScheduleRow(*given, row.created_by, row.made_with, 1, ends, None, None, None))}


@operation(
    "DELETE",
    "/v1/intelligence/schedules/{id}",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    title="Delete report schedule",
    raises=[NotFound],
    examples=[
        Example(
            "No more reports", {"id": EXAMPLE_SCHEDULE_ID}, {"id": EXAMPLE_SCHEDULE_ID, "object": "intelligence.schedule", "deleted": True}
        )
    ],
)
async def delete_intelligence_schedule(ctx: Ctx, params: ScheduleRef) -> DeletedSchedule:
    """Delete a report schedule, its share link, its webhook and its reports.

    The share link is dead at once, and nothing more is sent. A run that is under way changes nothing any more.
    """
    return await ctx.settle_result(remove_schedule, schedule=params.id, organisation=ctx.organisation)


def remove_schedule(connection: Connection, *, schedule: str, organisation: str) -> DeletedSchedule:
    """Deletes the schedule and all its rows. Raises NotFound."""
    if not delete_schedule(connection, schedule=schedule, organisation=organisation):
        raise schedule_not_found(schedule)
    return {"id": schedule, "object": "intelligence.schedule", "deleted": True}
