"""Every line with a real problem, worst money first, and what mends it; and the sheet of it."""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.fleet_access import OwnFleet, look_at_fleet, missing_knowledge, missing_lines, own_fleet_or_account
from operations.fleet.wire_rows import ordinal
from operations.intelligence.reports.sheet import (
    Figure,
    Finding,
    Incomplete,
    Sheet,
    SheetValue,
    Table,
    bar_chart_of,
    example_finding,
    make_finding,
    sheet_table,
)
from operations.intelligence.verdicts.advice import LineProblem, line_problem, step_for
from operations.upstream.usage import euros
from operations.vocabulary import ProblemCause, UpstreamId
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import CamelInput, Example, operation
from storage.fleet_problem_lists import ListedProblem, ProblemFilter, ProblemList, ProblemPlace, TroubledLine, list_problems
from storage.fleet_usage import KEPT_USAGE_DAYS

PROBLEM_CURSOR = re.compile(r"-?[0-9]{1,18}_[0-9]{1,3}_[0-9]{1,18}", re.ASCII)
PROBLEMS_METHOD = (
    "Each line's stored facts (status, packages, use of 90 days, where networks saw it) against a table of causes; a cause that another "
    "one explains is not told beside it. Money a month is what the operator loses: the usual income, less what use outside packages still "
    "brings in, or network cost beyond income."
)


class ProblemsQuery(CamelInput):
    """Which problems."""

    cause: Annotated[ProblemCause | None, Field(description="Only lines with this one.")] = None
    account_id: Annotated[UpstreamId | None, Field(description="Only of this account.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Lines per page, 1-200.")] = 100
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")] = None


class TroubledLineView(TypedDict):
    """A line and what is wrong with it."""

    iccid: str
    account_id: int
    status: str
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2, where it was seen last")]
    money_a_month: Annotated[float, Field(description="EUR, of all its problems")]
    problems: Annotated[list[LineProblem], Field(description="The first to mend first")]


class CauseSum(TypedDict):
    """How many lines have a cause, and what that costs."""

    lines: int
    money_a_month: Annotated[float, Field(description="EUR")]


class FleetProblems(TypedDict):
    """The problems of the fleet."""

    lines_with_problems: Annotated[int, Field(description="That match")]
    money_a_month: Annotated[float, Field(description="EUR, of all problems that match")]
    causes: Annotated[dict[ProblemCause, CauseSum], Field(description="Of the problems that match; a line may have several")]
    lines: Annotated[list[TroubledLineView], Field(description="Worst money first; a page of them")]


PROBLEMS_EXAMPLE: FleetProblems = {
    "lines_with_problems": 1,
    "money_a_month": 9.0,
    "causes": {"exhausted": {"lines": 1, "money_a_month": 9.0}},
    "lines": [
        {
            "iccid": "8988303700000100286",
            "account_id": 8101,
            "status": "ACTIVE",
            "country": "NO",
            "money_a_month": 9.0,
            "problems": [
                {
                    "cause": "exhausted",
                    "since": "2027-01-14T21:03:11Z",
                    "money_a_month": 9.0,
                    "evidence": {"package_id": 5512, "template_id": 55010, "price": 9.0, "data_limit": 1073741824},
                    "do": step_for("exhausted", "8988303700000100286", {"template_id": 55010, "price": 9.0}),
                }
            ],
        }
    ],
}


@operation(
    "GET",
    "/v1/fleet/problems",
    upstream=True,
    bounded=True,
    title="Fleet problems",
    access=own_fleet_or_account,
    raises=[NotFound, BadRequest, OcsError],
    examples=[Example("What is wrong today?", {"limit": 10}, example_finding(PROBLEMS_EXAMPLE, PROBLEMS_METHOD, of=140))],
    tool_defaults={"limit": 15},
)
async def fleet_problems(ctx: Ctx, params: ProblemsQuery, fleet: OwnFleet) -> Finding[FleetProblems]:
    """List every line with a real problem, worst money first, and what mends it.

    The morning check: `do` of each problem is a call. One line live: diagnose_subscriber. `as_of` and `incomplete` tell how old it is.

    Causes, the first to mend first: exhausted, expired, blocked, suspended, forbidden, no_coverage, throttled, mis_steered, wrong_package,
    high_cost, abroad, spike, silence, churn, series_running_on_suspended, never_attached. A cause that another one explains is left out.
    Before money or SIMs are moved the line is read live by the call itself.
    """
    fleet = await look_at_fleet(ctx, fleet)
    after = None if params.starting_after is None else problem_place(params.starting_after)
    found = await ctx.deps.store.read(
        list_problems,
        fleet=fleet.state.id,
        bounds=fleet.bounds,
        wanted=ProblemFilter(params.cause, params.account_id),
        after=after,
        most=params.limit + 1,
        first=ordinal(ctx.now) - KEPT_USAGE_DAYS + 1,
        now=ctx.now,
    )
    page = found.page[: params.limit]
    if len(found.page) > params.limit:
        ctx.next_cursor = f"{page[-1].money}_{page[-1].place}_{page[-1].subscriber_id}"
        ctx.note = f"{len(page)} of {found.lines} lines."
    now, known = ctx.deps.clock.now(), found.known  # the first look may have taken a while
    reasons = missing_knowledge(fleet, known, now)
    incomplete: Incomplete | None = {"lines": missing_lines(known), "reasons": reasons} if reasons else None
    sampled = max(0, known.lines - known.progress.unread)
    told = {"sampled": sampled, "of": known.lines}
    data = problems_view(found, page, params.cause)
    return make_finding(data, now=now, **told, method=PROBLEMS_METHOD, incomplete=incomplete, as_of=fleet.state.listed or None)


def problem_place(cursor: str) -> ProblemPlace:
    """The place that a cursor names. Raises BadRequest where it is none."""
    if not PROBLEM_CURSOR.fullmatch(cursor):
        raise BadRequest("starting_after: not a cursor of this list", param="starting_after", hint="Take it from the page before")
    money, place, number = cursor.split("_")
    return ProblemPlace(int(money), int(place), int(number))


def problems_view(found: ProblemList, page: list[TroubledLine], cause: ProblemCause | None) -> FleetProblems:
    """The answer; its sums are of one `cause` where that was asked for."""
    by_line = defaultdict[int, list[ListedProblem]](list)
    for problem in found.problems:
        by_line[problem.subscriber_id].append(problem)
    matching = [each for each in found.sums if cause in (None, each.cause)]
    sums: dict[ProblemCause, CauseSum] = {
        cast(ProblemCause, each.cause): {"lines": each.lines, "money_a_month": euros(each.money)} for each in matching
    }
    return {
        "lines_with_problems": found.lines,
        "money_a_month": euros(sum(each.money for each in matching)),
        "causes": sums,
        "lines": [troubled_view(line, by_line[line.subscriber_id]) for line in page if line.subscriber_id in by_line],
    }


def troubled_view(line: TroubledLine, problems: list[ListedProblem]) -> TroubledLineView:
    first = problems[0]
    return {
        "iccid": first.iccid,
        "account_id": first.account_id,
        "status": first.status,
        "country": first.country or None,
        "money_a_month": euros(line.money),
        "problems": [problem_view(problem) for problem in problems],
    }


def problem_view(problem: ListedProblem) -> LineProblem:
    evidence = cast("Mapping[str, str | int | float | None]", orjson.loads(problem.evidence))
    return line_problem(cast(ProblemCause, problem.cause), problem.iccid, problem.since or problem.opened, problem.money, evidence)


def problems_sheet(found: Finding[FleetProblems]) -> Sheet:
    """The report: how many lines, what it costs, and the lines themselves."""
    data = found["data"]
    figures: list[Figure] = [
        {"label": "Lines with a problem", "kind": "number", "value": data["lines_with_problems"]},
        {"label": "Lines in all", "kind": "number", "value": found["of"]},
        {"label": "Money a month", "kind": "money", "value": data["money_a_month"]},
    ]
    count, money = data["lines_with_problems"], data["money_a_month"]
    return {
        "title": "Problems of the fleet",
        "headline": f"{count} of {found['of']} lines have a problem: {money:.2f} EUR a month." if count else "No line has a problem.",
        "figures": figures,
        "charts": [
            bar_chart_of("Lines by problem", "Lines", {word_of(cause): each["lines"] for cause, each in data["causes"].items()}),
            bar_chart_of(
                "Money a month by problem",
                "EUR",
                {word_of(cause): each["money_a_month"] for cause, each in data["causes"].items()},
                kind="money",
            ),
        ],
        "tables": [problems_table(data)],
    }


def word_of(cause: str) -> str:
    return cause.replace("_", " ")


def problems_table(data: FleetProblems) -> Table:
    rows: list[list[SheetValue]] = [
        [
            line["iccid"] if place == 0 else None,
            word_of(problem["cause"]),
            problem["since"][:10],
            problem["money_a_month"],
            line["country"],
            problem["do"]["operation"],
        ]
        for line in data["lines"]
        for place, problem in enumerate(line["problems"])
    ]
    left = data["lines_with_problems"] - len(data["lines"])
    return sheet_table(
        "Lines",
        {"Line": "line", "Problem": "word", "Since": "day", "Money a month": "money", "Country": "country", "What mends it": "word"},
        rows,
        f"{left} lines with less money are left out." if left > 0 else None,
    )
