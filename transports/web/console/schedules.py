"""The pages of reports that come by themselves: which are made when, what the last one said, and who is shown it.

A report is read from our own store, so its page asks nothing of the network; only making one does. The link that shows it to strangers
stands on the answer to its form, and on no other page.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast, get_args

from starlette.responses import Response

from operations.intelligence.reports.sheet import Sheet
from operations.intelligence.schedule_reports import ScheduleReport
from operations.intelligence.schedules import Composite, Schedule
from operations.vocabulary import ProblemCause
from registry.errors import NotFound
from transports.web.console.insight_sheets import drawn_sheet, finding_facts
from transports.web.console.request import ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome, filled_fields
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.site import PageRoute

SCHEDULES_SHOWN = 100
"""More than there may be."""
RHYTHMS = ("daily", "workdays", "weekly", "monthly", "cron")
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
SIMPLE_CRON = re.compile(r"([0-5]?[0-9]) (1?[0-9]|2[0-3]) (\*|1) \* (\*|[A-Z]{3}|MON-FRI)", re.ASCII)
REPORT_ID = re.compile(r"rep_[0-9a-z]{10,40}", re.ASCII)
LINE_COMPOSITES = ("churn_risk", "detect_usage_anomalies", "diagnose_subscriber", "optimize_package")
ACCOUNT_COMPOSITES = ("audit_network_coverage", "fleet_health", "fleet_problems", "marketing_intelligence")
"""The composites that take a line, and those that take an account."""
INPUT_FIELDS: Mapping[str, Sequence[str]] = {"iccid": LINE_COMPOSITES, "accountId": ACCOUNT_COMPOSITES, "cause": ("fleet_problems",)}
TYPED_FIELDS = ("composite", "rhythm", "weekday", "at", "cron", "timezone", "iccid", "accountId", "cause", "share", "mail", "webhook_url")


class RhythmWords(NamedTuple):
    """When a report is made, in words; the cron expression itself where it says more than we have words for."""

    text: str
    cron: str


def rhythm_words(visit: ConsoleRequest, schedule: Schedule) -> RhythmWords:
    found, cron = SIMPLE_CRON.fullmatch(schedule["cron"]), schedule["cron"]
    if found is None or (found[3] == "1" and found[4] != "*") or (found[4] not in ("*", "MON-FRI", *WEEKDAYS)):
        return RhythmWords(visit.say("schedules.by_cron", cron=cron), cron)
    at = {"time": f"{int(found[2]):02d}:{int(found[1]):02d}", "zone": schedule["timezone"]}
    if found[3] == "1":
        return RhythmWords(visit.say("schedules.each_month", **at), cron)
    if found[4] in WEEKDAYS:
        return RhythmWords(visit.say("schedules.each_week", day=visit.say(f"schedules.day_{found[4].lower()}"), **at), cron)
    return RhythmWords(visit.say("schedules.each_day" if found[4] == "*" else "schedules.each_workday", **at), cron)


def typed_cron(form: Mapping[str, str]) -> str:
    """The cron expression that a form says in words. A time that is none is left to the operation, which refuses it."""
    rhythm, found = form.get("rhythm", ""), TIME_OF_DAY.fullmatch(form.get("at", ""))
    if rhythm == "cron" or rhythm not in RHYTHMS:
        return form.get("cron", "").strip()
    time = form.get("at", "") if found is None else f"{int(found[2])} {int(found[1])}"
    weekday = form.get("weekday", "")
    days = {
        "daily": "* * *",
        "workdays": "* * MON-FRI",
        "weekly": f"* * {weekday if weekday in WEEKDAYS else WEEKDAYS[0]}",
        "monthly": "1 * *",
    }
    return f"{time} {days[rhythm]}"


async def show_schedules(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Which reports are made by themselves, when is the next, and how did the last one end?

    The list, and the form for a new one; after a `problem` with what was typed.
    """
    schedules = await visit.read("list_intelligence_schedules", limit=SCHEDULES_SHOWN)
    rows = cast("Sequence[Schedule]", schedules.rows)
    usual = {"composite": "fleet_health", "rhythm": "weekly", "weekday": "MON", "at": "06:00", "timezone": "UTC", **starting_input(visit)}
    facts: Mapping[str, object] = {
        "schedules": schedules,
        "rows": rows,
        "next": min((row["next_run"] for row in rows if row["next_run"] and row["status"] == "active"), default=None),
        "when": {row["id"]: rhythm_words(visit, row) for row in rows},
        "composites": get_args(Composite),
        "rhythms": RHYTHMS,
        "weekdays": WEEKDAYS,
        "causes": get_args(ProblemCause),
        "typed": {name: visit.form.get(name, "") for name in TYPED_FIELDS} if problem else usual,
        "input_fields": INPUT_FIELDS,
    }
    return visit.draw("schedules.html", facts, problem=problem or schedules.problem)


def starting_input(visit: ConsoleRequest) -> Mapping[str, str]:
    """What the page of a question has put into the address: which one, and about what."""
    given = {name: visit.query.get(name, "") for name in ("composite", "iccid", "accountId", "cause")}
    return {name: value for name, value in given.items() if value} if given["composite"] in get_args(Composite) else {}


async def post_schedules(visit: ConsoleRequest) -> Response:
    """A new schedule. Where something of it is shown this once, the answer shows it; else the page of the schedule does."""
    form = visit.form
    wanted: dict[str, object] = {**filled_fields(form, "composite", "timezone", "webhook_url"), "cron": typed_cron(form)}
    wanted |= {"mail": form["mail"]} if form.get("mail") in ("link", "pdf") else {}
    wanted |= {"share": True} if form.get("share") else {}
    given: dict[str, object] = {name: form[name] for name, of in INPUT_FIELDS.items() if form.get(name) and form.get("composite") in of}
    if "accountId" in given:
        number = str(given["accountId"])
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return await show_schedules(visit, PageProblem(400, visit.say("insight.no_number"), "", "accountId"))
        given["accountId"] = int(number)
    if "iccid" in given:
        given["iccid"] = str(given["iccid"]).replace(" ", "")
    outcome = await visit.press("create_intelligence_schedule", {**wanted, "input": given})
    if outcome.problem is not None:
        return await show_schedules(visit, beside_field(outcome.problem, form))
    if outcome.replayed or not ("share_url" in outcome.body or "secret" in outcome.body):
        return visit.go(f"/insight/schedules/{outcome.body['id']}")
    made = cast(Schedule, outcome.body)
    return visit.draw("schedule_made.html", {"schedule": made, "when": rhythm_words(visit, made)})


def beside_field(problem: PageProblem, form: Mapping[str, str]) -> PageProblem:
    """The problem beside the field of the form that stands for the operation's own."""
    field = problem.field.removeprefix("input.")
    if field == "cron" and form.get("rhythm") != "cron":
        field = "at"
    return PageProblem(problem.status, problem.text, problem.hint, field if field in TYPED_FIELDS else "", problem.code)


async def show_schedule(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What did the last report say, when does the next one come, and who is shown it?

    The page of one schedule with its newest report, or the one that the address names.
    """
    id, wanted = str(visit.request.path_params["schedule"]), visit.query.get("report", "")
    asked = {"report": wanted} if REPORT_ID.fullmatch(wanted) else {}
    found = await visit.read_together(
        schedules=PageRead("list_intelligence_schedules", {"limit": SCHEDULES_SHOWN}),
        report=PageRead("get_intelligence_schedule_report", {"id": id, **asked}),
    )
    schedule = next((cast(Schedule, row) for row in found["schedules"].rows if row["id"] == id), None)
    if schedule is None:
        raise NotFound("Your organisation has no such schedule", hint="The page Reports shows them all")
    report, finding, sheet = report_parts(found["report"])
    facts: Mapping[str, object] = {
        "schedule": schedule,
        "when": rhythm_words(visit, schedule),
        "report": report,
        "none_yet": found["report"].problem,
        "answer": None if finding is None or sheet is None else {**finding_facts(visit, finding), "sheet": drawn_sheet(visit, sheet)},
        "live": report is not None and report["state"] in ("waiting", "running"),
    }
    return visit.draw("schedule.html", facts, problem=problem)


def report_parts(outcome: CallOutcome) -> tuple[ScheduleReport | None, Mapping[str, object] | None, Sheet | None]:
    """The report, what its composite found, and its sheet; nothing before the first one has ended."""
    if outcome.problem is not None:
        return None, None, None
    report = cast(ScheduleReport, outcome.body)
    return report, report["finding"], report["sheet"]


async def post_schedule(visit: ConsoleRequest) -> Response:
    """Has a report made now, or deletes the schedule, its reports and its link, after a question."""
    id, do = str(visit.request.path_params["schedule"]), visit.form.get("do", "")
    if do == "run":
        outcome = await visit.press("run_intelligence_schedule", {"id": id})
        if outcome.problem is None:
            return visit.go(f"/insight/schedules/{id}?report={outcome.body['id']}")
        return await show_schedule(visit, outcome.problem)
    if do != "delete":
        raise unknown_form()
    title, text, button = (visit.say(f"schedules.{name}") for name in ("delete_title", "delete_hint", "delete"))
    asked = visit.ask_of_ours(title=title, text=text, button=button, back=f"/insight/schedules/{id}")
    if asked is not None:
        return asked
    outcome = await visit.press("delete_intelligence_schedule", {"id": id})
    return visit.go("/insight/schedules") if outcome.problem is None else await show_schedule(visit, outcome.problem)


SCHEDULE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/insight/schedules": PageRoute(show_schedules, post_schedules),
    "/insight/schedules/{schedule}": PageRoute(show_schedule, post_schedule),
}
