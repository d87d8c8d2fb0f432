"""The page of one line: why it has no data, and the button that mends it.

It opens with what the fleet's record knows, which costs no call upstream. Each part can be asked of the charging system by a link, and
says so. A form carries what was shown, so that nobody undoes unseen what somebody else has changed.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple, TypedDict, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from clients.ocs.statistics import NetworkEvents, OperatorQuantity
from clients.ocs.times import event_seconds
from operations.changes.tags import RefusedLines
from operations.intelligence.diagnosis.line_bars import LineBar
from operations.intelligence.fleet.fleet_problems import FleetProblems
from operations.intelligence.fleet.query_fleet import FleetField, TrafficAllowed
from operations.intelligence.line_diagnosis import Diagnosis
from operations.network.templates import TemplateRow
from operations.subscribers.usage import Usage
from operations.times import utc_today
from operations.upstream.lines import SubscriberRow
from operations.upstream.signalling import is_refusal, is_registration
from registry.errors import ApprovalRef, NotFound
from transports.web.console.charts import ChartPoint
from transports.web.console.request import SURE_FIELD, ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.site import PageRoute

ICCID_FORM = re.compile(r"89[0-9]{16,20}", re.ASCII)
USE_DAYS = 28
SIGNALS_SHOWN = 12
TEMPLATES_SHOWN = 200
EVIDENCE_PAGE = 200


class RecordedLine(TypedDict):
    """A line as the fleet's record has it: what the verdict is made of."""

    iccid: str
    account_id: int
    country: str | None
    status: str
    status_since: str | None
    in_stock: bool
    last_used: str | None
    allowed: TrafficAllowed
    speed_limit_kbps: int | None
    package_state: str | None
    package_ends: str | None
    data_left: int | None
    problems: list[str]


class LineAsked(NamedTuple):
    """Which line a part is asked about, and what is known of it: where it is, and the first and last day of its use."""

    iccid: str
    country: str | None
    first: str
    last: str


PARTS: Mapping[str, Callable[[LineAsked], Mapping[str, PageRead]]] = {
    "verdict": lambda of: {"diagnosis": PageRead("diagnose_subscriber", {"iccid": of.iccid})},
    "packages": lambda of: {"packages": PageRead("list_subscriber_packages", {"iccid": of.iccid})},
    "use": lambda of: {"usage": PageRead("subscriber_usage", {"iccid": of.iccid, "start": of.first, "end": of.last, "records": False})},
    "places": lambda of: {
        "countries": PageRead("subscriber_country_history", {"iccid": of.iccid}),
        "signals": PageRead("subscriber_network_events", {"iccid": of.iccid, "newest": SIGNALS_SHOWN}),
    },
    "sim": lambda of: {
        "subscriber": PageRead("get_subscriber", {"iccid": of.iccid, "fields": ["*"]}),
        "profile": PageRead("get_sim_provider_status", {"iccid": of.iccid}),
    },
    "steering": lambda _of: {"steering": PageRead("list_steering_lists", {})},
    "offers": lambda of: {
        "templates": PageRead(
            "list_package_templates",
            {"recurring": False, "limit": TEMPLATES_SHOWN, **({"country": of.country} if of.country else {})},
        )
    },
}
"""What a part of the page asks of the charging system; none of it is asked before the reader wants it."""
ASKED_AT_ONCE = tuple(part for part in PARTS if part not in ("offers", "steering"))
SAME_CAUSES: Mapping[str, str] = {
    "status_not_active": "suspended",
    "data_not_allowed": "forbidden",
    "sim_in_stock": "in_stock",
    "package_expired": "expired",
    "package_exhausted": "exhausted",
    "package_blocked": "blocked",
    "zone_not_covering": "no_coverage",
}
"""Causes of a diagnosis that the page says in the words of the fleet's."""
SUPPLY_CAUSES: Mapping[str, str] = {
    "none": "no_package",
    "upcoming": "package_not_started",
    "scheduled": "package_not_started",
    "exhausted": "exhausted",
    "blocked": "blocked",
    "expired": "expired",
}


class LineButton(NamedTuple):
    """What mends a cause: the form's word, its operation and fields. A field of no text is one that the evidence tells."""

    do: str
    operation: str
    fields: Mapping[str, str] = {}


ALLOW = LineButton("status", "modify_subscriber_status", {"status": "ACTIVE"})
SAME_PACKAGE = LineButton("assign", "assign_package", {"packageTemplateId": ""})
BUTTONS: Mapping[str, LineButton] = {
    "suspended": ALLOW,
    "forbidden": LineButton("data", "set_subscriber_traffic_restrictions", {"data": "on"}),
    "exhausted": SAME_PACKAGE,
    "expired": SAME_PACKAGE,
    "blocked": LineButton("package", "modify_package_status", {"packageId": "", "status": "ACTIVE"}),
    "throttled": LineButton("speed", "hlr_set_bitrate"),
    "registrations_rejected": LineButton("push", "push_steering_to_subscriber"),
    "mis_steered": LineButton("push", "push_steering_to_subscriber"),
    "series_running_on_suspended": LineButton("series", "stop_resume_recurring_package", {"packageId": "", "action": "stop"}),
}
WHERE_TO_LOOK: Mapping[str, str] = {
    **dict.fromkeys(("no_package", "no_coverage", "exhausted", "expired", "package_not_started", "wrong_package"), "offers"),
    **dict.fromkeys(("blocked", "series_running_on_suspended"), "packages"),
    **dict.fromkeys(("never_attached", "profile_not_installed", "profile_disabled", "profile_deleted", "in_stock"), "sim"),
    **dict.fromkeys(("abroad", "silence", "registrations_rejected"), "places"),
    **dict.fromkeys(("spike", "churn", "high_cost", "mis_steered"), "use"),
}
"""The part that shows more of a cause which no button mends."""


class LineEvidence(NamedTuple):
    """One thing that was seen: what it is called, its value and when. A text that is empty is not known."""

    rule: str
    value: str
    at: str | None = None


class LineVerdict(NamedTuple):
    """Why the line has no data, as far as is known. `live`: the charging system was asked."""

    cause: str
    live: bool
    evidence: Sequence[LineEvidence]
    money: float = 0.0
    others: Sequence[str] = ()
    barred_by: Sequence[LineBar] = ()
    button: LineButton | None = None
    part: str = ""


def line_number(visit: ConsoleRequest) -> str:
    """The ICCID of the address. Raises NotFound where it can be none."""
    iccid = str(visit.request.path_params["iccid"])
    if ICCID_FORM.fullmatch(iccid) is None:
        raise line_missing()
    return iccid


def line_missing() -> NotFound:
    return NotFound(
        "Your organisation has no such line", hint="Find it on the page Fleet; a line that was made just now is there within minutes"
    )


async def show_line(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Why has this line no data, and what do I press?"""
    iccid = line_number(visit)
    found = await visit.read_together(
        line=PageRead("query_fleet", {"text": iccid, "fields": list(get_args(FleetField)), "limit": 10}),
        notes=PageRead("get_subscriber_notes", {"iccid": iccid}),
    )
    if found["line"].problem is not None:
        return visit.draw("refused.html", {}, problem=found["line"].problem)
    row = next((cast(RecordedLine, row) for row in found["line"].rows if row["iccid"] == iccid), None)
    if row is None and found["line"].body["as_of"] is None:
        raise NotFound("Your fleet is being read for the first time, and this line is not in its record yet", hint="Look again in a minute")
    if row is None:
        raise line_missing()
    wanted = visit.form.get("ask", visit.query.get("ask", "")).split(".")
    asked = [part for part in PARTS if part in wanted]
    today = utc_today(visit.now)
    of = LineAsked(iccid, row["country"], (today - timedelta(days=USE_DAYS - 1)).isoformat(), today.isoformat())
    known: Mapping[str, object] = {
        "row": row,
        "iccid": iccid,
        "asked": asked,
        "ask": {part: ".".join(each for each in PARTS if each in asked or each == part) for part in PARTS},
        "ask_all": ".".join(each for each in PARTS if each in asked or each in ASKED_AT_ONCE),
        "done": done_word(visit, row),
        "typed": visit.form if problem is not None else {},
    }
    whole = partial(line_page, visit, row, of, {**found, **known}, problem)
    return await (visit.draw_late("line.html", known, whole) if asked and visit.request.method != "POST" else whole())


async def line_page(
    visit: ConsoleRequest, row: RecordedLine, of: LineAsked, known: Mapping[str, object], problem: PageProblem | None
) -> Response:
    """The page of a line with the parts that were asked for, and what is made of all of it."""
    asked = cast("list[str]", known["asked"])
    reads = {name: read for part in asked for name, read in PARTS[part](of).items()}
    causes = standing_causes(row)
    if causes:
        reads["problems"] = PageRead("fleet_problems", {"cause": causes[0], "accountId": row["account_id"], "limit": EVIDENCE_PAGE})
    found = await visit.read_together(**reads)
    facts: Mapping[str, object] = {
        **known,
        **found,
        "verdict": verdict_of(visit, row, causes, found),
        "use": use_of(visit, found["usage"], of) if "usage" in found else None,
        "signals_seen": signals_of(found["signals"]) if "signals" in found else [],
        "flags": ("data", "calls_out", "calls_in", "sms_out"),
        "utc": utc_text_of,
    }
    return visit.draw("line.html", facts, problem=problem)


def standing_causes(row: RecordedLine) -> list[str]:
    """The problems of the line that its row does not contradict: what was just changed is in the row before it is judged again."""
    mended = {"suspended": row["status"] == "ACTIVE", "forbidden": row["allowed"]["data"] is True}
    return [cause for cause in row["problems"] if not mended.get(cause)]


def verdict_of(visit: ConsoleRequest, row: RecordedLine, causes: Sequence[str], found: Mapping[str, CallOutcome]) -> LineVerdict:
    """The verdict of the charging system where it was asked, else that of the record."""
    diagnosis = found.get("diagnosis")
    if diagnosis is not None and diagnosis.problem is None:
        return live_verdict(visit, cast(Diagnosis, diagnosis.body["data"]))
    cause = SUPPLY_CAUSES.get(row["package_state"] or "", "healthy" if row["package_state"] else "undetermined")
    cause = next(iter(causes), cause)
    if row["in_stock"]:
        cause = "in_stock"
    elif row["status"] == "END_OF_LIFE":
        cause = "ended"
    elif row["status"] not in ("ACTIVE", "UNKNOWN"):
        cause = "suspended"
    elif row["allowed"]["data"] is False:
        cause = "forbidden"
    told_of = found.get("problems")
    lines = cast(FleetProblems, told_of.body["data"])["lines"] if told_of is not None and told_of.problem is None else []
    problem = next((one for line in lines if line["iccid"] == row["iccid"] for one in line["problems"] if one["cause"] == cause), None)
    seen: dict[str, object] = {"line_status": row["status"], "data_allowed": row["allowed"]["data"], "package_state": row["package_state"]}
    seen |= {"data_left": row["data_left"], "package_ends": row["package_ends"], "last_used": row["last_used"]}
    seen |= problem["evidence"] if problem else {}
    since = {"line_status": row["status_since"]} | ({"data_left": problem["since"]} if cause == "exhausted" and problem else {})
    evidence = [evidence_of(visit, name, value, since.get(name)) for name, value in seen.items() if value is not None]
    told: Mapping[str, object] = problem["do"]["arguments"] if problem else {}
    others = [each for each in causes if each != cause]
    return LineVerdict(cause, False, evidence, problem["money_a_month"] if problem else 0.0, others, (), *way_out(cause, told))


def live_verdict(visit: ConsoleRequest, data: Diagnosis) -> LineVerdict:
    """What diagnose_subscriber found."""
    first, *rest = data["causes"]
    status = data["line"]["status"]
    cause = "ended" if status == "END_OF_LIFE" else SAME_CAUSES.get(first["cause"], first["cause"])
    evidence = [evidence_of(visit, each["rule"], each["value"], each["at"]) for each in first["evidence"]]
    told = {name: value for step in reversed(first["next_steps"]) for name, value in step["arguments"].items()}
    money = sum(each["money_a_month"] for each in data["problems"] or ())
    others = [SAME_CAUSES.get(each["cause"], each["cause"]) for each in rest]
    return LineVerdict(cause, True, evidence, money, others, data["barred_by"], *way_out(cause, told))


def way_out(cause: str, told: Mapping[str, object]) -> tuple[LineButton | None, str]:
    """The button for a cause, with the fields that the evidence tells, or the part of the page that shows more."""
    button = BUTTONS.get(cause)
    if button is not None:
        fields = {name: value or str(told.get(name, "")) for name, value in button.fields.items()}
        if all(fields.values()):
            return button._replace(fields=fields), ""
    return None, WHERE_TO_LOOK.get(cause, "")


BYTE_RULES = frozenset({"data_left", "data_limit", "bytes", "usual_bytes"})
INCOME_RULES = ("network_cost", "package_income", "usage_income", "margin")
MONEY_RULES = frozenset({"price", "balance_eur", "paid_a_month", "cheapest_a_month", "saving_customer", *INCOME_RULES})
MOMENT_RULES = frozenset({"last_used", "package_ends", "not_used_since"})
STATUS_RULES = frozenset({"line_status", "status", "package_state", "first_start"})


def evidence_of(visit: ConsoleRequest, rule: str, value: object, at: str | None) -> LineEvidence:
    """A thing that was seen, in the reader's words."""
    if isinstance(value, bool) or (rule == "data_allowed" and value in (0, 1)):
        text = visit.say("line.yes" if value else "line.no")
    elif rule in BYTE_RULES and isinstance(value, (int, float)):
        text = visit.texts.bytes(round(value))
    elif rule in MONEY_RULES and isinstance(value, (int, float)):
        text = visit.euros(value)
    elif rule in MOMENT_RULES and isinstance(value, str):
        text, at = "", utc_text_of(value)
    elif rule in ("day", "last_used_day") and isinstance(value, str):
        text = visit.day(value)
    elif rule in STATUS_RULES and isinstance(value, str):
        text = visit.word("states", value)
    elif rule in ("country", "usual_country") and isinstance(value, str):
        text = visit.texts.country(value)
    else:
        text = "" if value is None else str(value)
    return LineEvidence(rule, text, at)


def utc_text_of(text: str | None) -> str | None:
    """A moment of the charging system, which writes UTC without saying so."""
    return text if text is None or re.search(r"(Z|[+-][0-9:]{5})$", text) else f"{text}Z"


class LinePlace(NamedTuple):
    """A network, and how much was used there, bytes."""

    country: str
    network: str
    used: int


NO_NETWORK: Sequence[OperatorQuantity] = ({},)


class LineUse(NamedTuple):
    """What the line used: a bar for each day, and where."""

    days: Sequence[ChartPoint]
    places: Sequence[LinePlace]
    whole: int
    cost: float


def use_of(visit: ConsoleRequest, outcome: CallOutcome, of: LineAsked) -> LineUse | None:
    """The use of the last days, days without use, too; None where it could not be read."""
    if outcome.problem is not None:
        return None
    data = cast(Usage, outcome.body["data"])
    rows = [day for line in data.get("usages", ()) for day in line.get("subsPeriodUsages", ())]
    by_day = {day.get("day", ""): day.get("total", {}).get("quantityPerType", {}).get("33", 0) for day in rows}
    last = utc_today(visit.now)
    days = [(last - timedelta(days=back)).isoformat() for back in range(USE_DAYS - 1, -1, -1)]
    points = [
        ChartPoint(str(int(day[8:])), by_day.get(day, 0), visit.texts.bytes(by_day.get(day, 0)), visit.texts.day(day)) for day in days
    ]
    places = [
        LinePlace(str(country.get("alpha2", "")).upper(), str(network.get("name", "")), int(network.get("qty", country.get("qty", 0))))
        for country in data.get("total", {}).get("quantityPerCountry", ())
        for network in country.get("quantityPerOperator") or NO_NETWORK
    ]
    cost = data.get("total", {}).get("resellerCost", 0.0)
    return LineUse(points, sorted(places, key=lambda place: -place.used), data.get("dataBytes", 0), cost)


class LineSignal(NamedTuple):
    """A registration or a data session, and how it ended. `at`: Unix seconds."""

    at: float
    kind: str
    country: str
    network: str
    refused: bool
    result: str


def signals_of(outcome: CallOutcome) -> list[LineSignal]:
    """What the networks and the line said to each other, the newest first."""
    if outcome.problem is not None:
        return []
    found: list[LineSignal] = []
    for section, member, name in (
        ("mapAnswer", "result", "shortCode"),
        ("s6aAnswer", "code", "cmdNameShort"),
        ("gyAnswer", "responseCode", ""),
    ):
        for event in cast(NetworkEvents, outcome.body["data"]).get(section, {}).get("events", ()):
            kind = "session" if not name else "registration" if is_registration(event, name) else "other"
            result, country = str(event.get(member, "")), str(event.get("countryAlpha2", "")).upper()
            found.append(LineSignal(event_seconds(event), kind, country, str(event.get("operator", "")), is_refusal(result), result))
    return sorted(found, key=lambda one: -one.at)[:SIGNALS_SHOWN]


DONE: Mapping[str, Callable[[RecordedLine], bool]] = {
    "status_active": lambda row: row["status"] == "ACTIVE",
    "status_suspended": lambda row: row["status"] == "SUSPENDED",
    "data_on": lambda row: row["allowed"]["data"] is True,
    "data_off": lambda row: row["allowed"]["data"] is False,
    "speed": lambda row: row["speed_limit_kbps"] is None,
    **dict.fromkeys(
        ("limits", "assign", "package", "remove", "series", "steering", "push", "sms", "note", "tag", "untag"), lambda _row: True
    ),
}
"""What a page says to be done, and whether the line shows it: an address alone makes nothing so."""


def done_word(visit: ConsoleRequest, row: RecordedLine) -> str:
    """What was just done; empty where nothing was, or somebody has changed it since."""
    done = visit.query.get("done", "") if visit.request.method != "POST" else ""
    return done if done in DONE and DONE[done](row) else ""


async def carry_out(visit: ConsoleRequest, operation: str, arguments: Mapping[str, object], done: str) -> Response:
    """Presses a button of the line, asks first where the operation does, and shows the line as it is then."""
    iccid = line_number(visit)
    outcome = await visit.press(operation, arguments)
    if outcome.problem is not None and outcome.problem.code == "approval_required":
        return visit.redirect(f"/approvals?approval={cast(ApprovalRef, outcome.body['approval'])['id']}")
    title, button = visit.say("line.sure"), visit.say("line.do_it")
    question = visit.ask_first(outcome, title=title, button=button, back=f"/lines/{iccid}")
    if question is not None:
        return question
    refused = cast("Sequence[RefusedLines]", outcome.body.get("refused", ())) if outcome.problem is None else ()
    problem = visit.said_problem(PageProblem(409, str(refused[0]["hint"]), field="tag")) if refused else outcome.problem
    if problem is not None:
        return await show_line(visit, problem)
    kept = {name: value for name, value in (("ask", visit.form.get("ask", "")), ("done", done)) if value}
    return visit.go(f"/lines/{iccid}?{urlencode(kept)}")


async def change_status(visit: ConsoleRequest) -> Response:
    """Allows or suspends the line, unless it has become something else since it was shown."""
    iccid, wanted, shown = line_number(visit), visit.form.get("status", ""), visit.form.get("shown", "")
    if wanted not in ("ACTIVE", "SUSPENDED"):
        raise unknown_form()
    now = await visit.read("get_subscriber", iccid=iccid, fields=["currentStatus"])
    status = (
        "" if now.problem is not None else str(cast(SubscriberRow, now.body["data"]).get("currentStatus", "")).upper().replace(" ", "_")
    )
    if status and status not in (shown, wanted):
        word = visit.word("states", status)
        return await show_line(visit, PageProblem(412, visit.say("line.changed_since", status=word), visit.say("line.look_again")))
    return await carry_out(visit, "modify_subscriber_status", {"iccid": iccid, "status": wanted}, f"status_{wanted.lower()}")


async def change_limits(visit: ConsoleRequest) -> Response:
    """Sends what the reader changed, and nothing else: what a colleague changed meanwhile stays."""
    iccid, names = line_number(visit), {"data": "data", "calls_out": "moc", "calls_in": "mtc", "sms_out": "sms"}
    was = visit.form.get("was", "").split(".")
    changed = {wire: name in visit.form for name, wire in names.items() if (name in visit.form) != (name in was)}
    if not changed:
        return visit.go(f"/lines/{iccid}")
    return await carry_out(visit, "set_subscriber_traffic_restrictions", {"iccid": iccid, **changed}, "limits")


async def assign(visit: ConsoleRequest) -> Response:
    """Asks with the name and the cost of the package, then puts it on the line."""
    iccid, template = line_number(visit), number_or_text(visit.form.get("packageTemplateId", ""))
    if visit.form.get(SURE_FIELD) == "yes":
        return await carry_out(visit, "assign_package", {"iccid": iccid, "packageTemplateId": template}, "assign")
    found = await visit.read("list_package_templates", templateId=template)
    if found.problem is not None or not found.rows:
        return await show_line(visit, found.problem or PageProblem(404, visit.say("line.no_such_package")))
    row = cast(TemplateRow, found.rows[0])
    days = visit.texts.days(period) if (period := row.get("perioddays")) else visit.say("shared.unknown")
    amount = visit.texts.bytes(row.get("databyte", 0))
    cost = visit.euros(price) if (price := row.get("cost")) is not None else visit.say("shared.unknown")
    text = visit.say(
        "line.assign_text", name=row.get("prepaidpackagetemplatename", template), iccid=iccid, data=amount, days=days, cost=cost
    )
    title, button = visit.say("line.assign_title"), visit.say("line.assign_button")
    asked = visit.ask_of_ours(title=title, text=text, button=button, back=f"/lines/{iccid}?ask=offers")
    assert asked is not None, "who is sure was answered above"
    return asked


def number_or_text(text: str) -> int | str:
    """A number of a form; what is none goes on as it is, and is refused with its field named."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 17 else text


class PlainAction(NamedTuple):
    """A button whose form holds the arguments of its operation: which of them, and which are numbers."""

    operation: str
    texts: Sequence[str] = ()
    numbers: Sequence[str] = ()
    always: Mapping[str, object] = {}


PLAIN: Mapping[str, PlainAction] = {
    "speed": PlainAction("hlr_set_bitrate", always={"bitrateString": "UNLIMITED"}),
    "package": PlainAction("modify_package_status", ("status",), ("packageId",)),
    "remove": PlainAction("delete_subscriber_package", (), ("packageId",)),
    "series": PlainAction("stop_resume_recurring_package", ("action",), ("packageId",)),
    "push": PlainAction("push_steering_to_subscriber"),
    "sms": PlainAction("send_sms", ("message", "sender")),
    "note": PlainAction("add_subscriber_note", ("note",)),
}


async def post_line(visit: ConsoleRequest) -> Response:
    """Does what a form of the page asks for."""
    iccid, do = line_number(visit), visit.form.get("do", "")
    if do in OWN_ACTIONS:
        return await OWN_ACTIONS[do](visit)
    if do == "data" and visit.form.get("data") in ("on", "off"):
        wanted = visit.form["data"]
        return await carry_out(visit, "set_subscriber_traffic_restrictions", {"iccid": iccid, "data": wanted == "on"}, f"data_{wanted}")
    if do == "steering":
        chosen = visit.form.get("listId", "")
        return await carry_out(visit, "modify_subscriber_steering_list", {"iccid": iccid, "listId": number_or_text(chosen) or None}, do)
    if do in ("tag", "untag"):
        wanted = {"tag": visit.form.get("tag", "").strip(), "iccids": [iccid]}
        return await carry_out(visit, "tag_lines" if do == "tag" else "untag_lines", wanted, do)
    if do not in PLAIN:
        raise unknown_form()
    plain = PLAIN[do]
    texts = {name: visit.form[name] for name in plain.texts if visit.form.get(name)}
    numbers = {name: number_or_text(visit.form.get(name, "")) for name in plain.numbers}
    author = {"author": visit.who.name} if do == "note" and visit.who.name else {}
    return await carry_out(visit, plain.operation, {"iccid": iccid, **plain.always, **texts, **numbers, **author}, do)


OWN_ACTIONS: Mapping[str, Callable[[ConsoleRequest], Awaitable[Response]]] = {
    "status": change_status,
    "limits": change_limits,
    "assign": assign,
}

LINE_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/lines/{iccid}": PageRoute(show_line, post_line, long_fields=frozenset({"note"}))}
