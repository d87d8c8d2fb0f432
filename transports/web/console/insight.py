"""The pages Insight: the questions about the fleet that composites answer, each asked when somebody presses its button.

Nothing is asked before: a composite may cost calls of the charging system, and its page says which. They only read, so the question is an
address: it can be sent to a colleague, and loading it again repeats nothing but the reading.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.intelligence.country_entry import CountryEntries, CountryPresence
from operations.intelligence.reports.sheet import Finding, Sheet, bar_chart_of, sheet_table
from operations.intelligence.schedule_reports import SHEETS
from operations.intelligence.schedules import REPORT_WINDOW_DAYS
from operations.times import utc_today
from operations.vocabulary import ProblemCause
from registry.errors import NotFound
from transports.web.console.insight_sheets import DrawnSheet, drawn_chart, drawn_sheet, drawn_table, finding_facts, shown_value
from transports.web.console.line import ICCID_FORM
from transports.web.console.request import ConsoleRequest
from transports.web.pages.request import PageProblem
from transports.web.site import PageRoute

RANKED_A_PAGE = 25
NUMBER_FIELDS = ("accountId", "days")
ABOUT_ONE_LINE = "diagnose_subscriber"
"""Its answer is the page of the line, which has the buttons, too."""


class FleetQuestion(NamedTuple):
    """A question: the operation that answers it, and the fields of its form, named as its arguments."""

    name: str
    fields: Sequence[str]
    paged: bool = True


QUESTIONS: Mapping[str, Sequence[FleetQuestion]] = {
    "money": (
        FleetQuestion("high_cost_subscribers", ("start", "end")),
        FleetQuestion("optimize_package", ("iccid",)),
        FleetQuestion("audit_network_coverage", ("accountId",)),
    ),
    "lines": (
        FleetQuestion("fleet_problems", ("cause", "accountId")),
        FleetQuestion("churn_risk", ("iccid",)),
        FleetQuestion("detect_usage_anomalies", ("iccid",)),
        FleetQuestion("detect_country_entry", ("iccid", "expectedCountry", "days")),
        FleetQuestion(ABOUT_ONE_LINE, ("iccid",), paged=False),
    ),
    "whole": (
        FleetQuestion("fleet_health", ("accountId",)),
        FleetQuestion("marketing_intelligence", ("accountId",), paged=False),
    ),
}
"""The questions by what they are about, in the order in which they are shown."""
BY_NAME: Mapping[str, FleetQuestion] = {each.name: each for group in QUESTIONS.values() for each in group}


async def show_insight(visit: ConsoleRequest) -> Response:
    """What can I find out about my fleet, and what does each question ask of the network?"""
    facts = {"groups": QUESTIONS, "scheduled": SHEETS}
    return visit.draw("insight.html", facts)


async def show_question(visit: ConsoleRequest) -> Response:
    """What is the answer to this question, with which figures and lines, and what did it ask of the network?"""
    question = BY_NAME.get(str(visit.request.path_params["name"]))
    if question is None:
        raise NotFound("There is no such question", hint="The page Insight shows them all")
    given = question_fields(visit, question)
    problem, arguments = asked_arguments(visit, given)
    asked = visit.query.get("ask") == "now"
    if asked and problem is None and question.name == ABOUT_ONE_LINE:
        if "iccid" in arguments:
            return visit.go(f"/lines/{arguments['iccid']}?ask=verdict")
        problem = PageProblem(400, visit.say("insight.no_line"), "", "iccid")
    if asked and problem is None:
        return await visit.draw_late(
            "insight_question.html", {"question": question}, partial(asked_page, visit, question, given, arguments)
        )
    return question_page(visit, question, given if asked else starting_fields(visit, question, given), None, problem)


async def asked_page(visit: ConsoleRequest, question: FleetQuestion, given: Mapping[str, str], arguments: Mapping[str, object]) -> Response:
    """The question with its answer, or why there is none."""
    after = visit.query.get("after", "")
    outcome = await visit.read(question.name, **arguments, limit=RANKED_A_PAGE, **({"starting_after": after} if after else {}))
    if outcome.problem is not None:
        return question_page(visit, question, given, None, outcome.problem)
    following = outcome.next_cursor if question.paged else None
    pages = {
        "beginning": f"?{urlencode({**given, 'ask': 'now'})}" if after else "",
        "following": f"?{urlencode({**given, 'ask': 'now', 'after': following})}" if following else "",
    }
    return question_page(visit, question, given, {**answer_facts(visit, question.name, outcome.body), **pages}, None)


def question_page(
    visit: ConsoleRequest,
    question: FleetQuestion,
    typed: Mapping[str, str],
    answer: Mapping[str, object] | None,
    problem: PageProblem | None,
) -> Response:
    about = {name: typed[name] for name in ("accountId", "iccid", "cause") if typed.get(name)}
    facts = {
        "question": question,
        "typed": typed,
        "answer": answer,
        "causes": get_args(ProblemCause),
        "scheduled": question.name in SHEETS,
        "schedule": f"?{urlencode({'composite': question.name, **about})}",
    }
    return visit.draw("insight_question.html", facts, problem=problem)


def question_fields(visit: ConsoleRequest, question: FleetQuestion) -> dict[str, str]:
    """The fields of the form that the address fills in."""
    return {name: visit.query[name].strip() for name in question.fields if visit.query.get(name, "").strip()}


def starting_fields(visit: ConsoleRequest, question: FleetQuestion, given: Mapping[str, str]) -> Mapping[str, str]:
    """What stands in the form before anything is asked: of days the last four whole weeks."""
    last = utc_today(visit.now) - timedelta(days=1)
    first = last - timedelta(days=REPORT_WINDOW_DAYS - 1)
    usual = {"start": first.isoformat(), "end": last.isoformat(), "days": "7"}
    return {**{name: usual[name] for name in question.fields if name in usual}, **given}


def asked_arguments(visit: ConsoleRequest, given: Mapping[str, str]) -> tuple[PageProblem | None, dict[str, object]]:
    """The fields as the operation takes them, and what is wrong with one that cannot be taken."""
    arguments: dict[str, object] = dict(given)
    for name in NUMBER_FIELDS:
        if name not in given:
            continue
        if not (given[name].isascii() and given[name].isdigit() and len(given[name]) < 16):
            return PageProblem(400, visit.say("insight.no_number"), "", name), {}
        arguments[name] = int(given[name])
    if "iccid" in given:
        arguments["iccid"] = given["iccid"].replace(" ", "")
        if ICCID_FORM.fullmatch(str(arguments["iccid"])) is None:
            return PageProblem(400, visit.say("insight.no_iccid"), "", "iccid"), {}
    return None, arguments


def answer_facts(visit: ConsoleRequest, name: str, found: Mapping[str, object]) -> Mapping[str, object]:
    """What the page shows of an answer."""
    return {**finding_facts(visit, found), "sheet": answer_sheet(visit, name, found)}


def answer_sheet(visit: ConsoleRequest, name: str, found: Mapping[str, object]) -> DrawnSheet:
    """The answer as a report, which is the same that schedules make; of the one that no schedule makes as we draw it here."""
    if name in SHEETS:
        return drawn_sheet(visit, SHEETS[name](found))
    data = cast("Finding[CountryPresence | CountryEntries]", found)["data"]
    return presence_sheet(visit, data) if "presence" in data else entries_sheet(visit, data)


def presence_sheet(visit: ConsoleRequest, data: CountryPresence) -> DrawnSheet:
    """Where one line is, and whether that is expected."""
    country, expected = (shown_value(visit, "country", data[name]) for name in ("country", "expected"))
    network = None if data["mcc"] is None else f"{data['mcc']}-{data['mnc']}"
    told: Sequence[tuple[str, str | None]] = (
        ("country", None if data["country"] is None else country),
        ("network", network),
        ("seen", None if data["seen"] is None else visit.moment(data["seen"])),
        ("entered", None if data["entered"] is None else visit.moment(data["entered"])),
        ("came_from", None if data["came_from"] is None else shown_value(visit, "country", data["came_from"])),
        ("source", None if data["source"] is None else visit.say(f"insight.source_{data['source']}")),
        ("contradicted_by", None if data["contradicted_by"] is None else shown_value(visit, "country", data["contradicted_by"])),
    )
    figures = [(visit.say(f"insight.presence_of_{name}"), value) for name, value in told if value is not None]
    headline = visit.say(f"insight.presence_{data['presence']}", country=country, expected=expected)
    lines: Sheet = {
        "title": "",
        "headline": "",
        "figures": [],
        "charts": [],
        "tables": [sheet_table("The line", {"Line": "line"}, [[data["iccid"]]])],
    }
    return DrawnSheet(headline, figures, (), drawn_sheet(visit, lines).tables)


def entries_sheet(visit: ConsoleRequest, data: CountryEntries) -> DrawnSheet:
    """Which lines entered a country that is unusual for them."""
    entries = data["entries"]
    countries = Counter(each["country"] for each in entries)
    chart = drawn_chart(visit, bar_chart_of("Lines below by country", "Lines", dict(countries.most_common(12)), places_kind="country"))
    table = sheet_table(
        "Lines",
        {"Line": "line", "Country": "country", "Since": "day", "Usual countries": "text", "There now": "word", "Told by": "word"},
        [
            [
                each["iccid"],
                each["country"],
                each["first_seen"][:10],
                ", ".join(visit.texts.country(code) for code in each["usual_countries"]),
                "Yes" if each["there_now"] else "No",
                each["evidence"][0]["source"] if each["evidence"] else None,
            ]
            for each in entries
        ],
    )
    days = visit.texts.days(data["days"])
    headline = (
        visit.texts.count("insight.entries", data["lines"], days=days) if data["lines"] else visit.say("insight.entries_none", days=days)
    )
    return DrawnSheet(headline, (), () if chart is None else (chart,), (drawn_table(visit, table),) if entries else ())


INSIGHT_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/insight": PageRoute(show_insight),
    "/insight/{name}": PageRoute(show_question),
}
