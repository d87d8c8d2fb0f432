"""Which packages would be cheapest for what lines use; and the sheet of it."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Annotated, NamedTuple, cast

import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.wire_rows import stored_packages
from operations.intelligence.lines.fleet_lines import (
    FleetLine,
    FleetResult,
    LinesAsked,
    LineTarget,
    cached_result,
    own_line_or_fleet,
    ranking_page,
)
from operations.intelligence.lines.fleet_view import FleetView, view_fleet
from operations.intelligence.lines.stored_use import stored_fleet_line
from operations.intelligence.lines.usage import CALENDAR_DAYS, last_whole_days, read_line_use
from operations.intelligence.offers.coverage_map import NetworkCodes
from operations.intelligence.offers.offers import MONTH_DAYS, NEED_MARGIN_PERCENT, OfferCatalogue, read_offers
from operations.intelligence.offers.plans import (
    LinePackagePlan,
    LinePlan,
    PlanVerdict,
    TemplateFigures,
    draft_plan,
    finish_plans,
    line_plan,
    named_templates,
)
from operations.intelligence.reports.sheet import (
    Chart,
    Finding,
    Sheet,
    SheetKind,
    SheetValue,
    Table,
    bar_chart_of,
    example_finding,
    make_finding,
    sheet_table,
)
from operations.intelligence.verdicts.cheapest import StoredLinePlan
from operations.intelligence.verdicts.judge import StoredLines, read_lines_to_judge
from operations.times import WEEK_DAYS
from operations.upstream.usage import euros
from operations.vocabulary import Iccid
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation
from storage.fleet_plans import SeenNetwork, fleet_plans

PLAN_METHOD = (
    f"What a line used in the last {CALENDAR_DAYS} whole UTC days, scaled to {MONTH_DAYS} days with {NEED_MARGIN_PERCENT} % more, is "
    "covered by the cheapest packages of its sponsor's templates; the search is exact, and what it compares with is what the "
    "packages in force in these days cost."
)


class PackageQuery(LinesAsked):
    """One line, or the fleet."""

    iccid: Annotated[Iccid | None, Field(description="One line; absent: the fleet.")] = None


class FleetSavings(TypedDict):
    """What packages could cost instead, of all lines that were looked into. Amounts are EUR in thirty days."""

    start: Annotated[str, Field(description="First UTC day of use that was looked at")]
    end: Annotated[str, Field(description="Last one")]
    now: Annotated[float, Field(description="Same as package_income and usage_income together", deprecated=True)]
    saving: Annotated[float, Field(description="Same as saving_customer", deprecated=True)]
    package_income: Annotated[float, Field(description="What customers pay you for the packages in force")]
    usage_income: Annotated[float, Field(description="What customers pay you for use outside packages")]
    network_cost: Annotated[float, Field(description="What you pay networks")]
    margin: Annotated[float, Field(description="Both incomes less network_cost")]
    lines_losing_money: Annotated[int, Field(description="Lines whose margin is below 0, whatever their verdict")]
    saving_customer: Annotated[float, Field(description="What customers pay less, of all lines whose verdict is change or unused")]
    saving_operator: Annotated[float, Field(description="What you pay networks less: 0, since packages do not change the use")]
    verdicts: Annotated[dict[PlanVerdict, int], Field(description="Lines by verdict")]
    unpriced_templates: Annotated[int, Field(description="Templates left out of the search, since they have no cost")]
    templates: Annotated[list[TemplateFigures], Field(description="Those that this page's lines name")]
    lines: Annotated[list[LinePlan], Field(description="Largest saving first; a page of them")]


class PlanRanking(NamedTuple):
    """Lines by their plans, largest saving first, and what the plans are together. Amounts are micro-euros."""

    numbers: Sequence[int]
    """Subscriber ids. Choice: without lines that used nothing and have nothing, such as SIMs in stock; `verdicts` counts them."""
    now: int
    package_income: int
    network_cost: int
    losing: int
    """Lines whose margin is below 0."""
    saving: int
    verdicts: dict[PlanVerdict, int]
    networks: Sequence[SeenNetwork]


SAVINGS_EXAMPLE: Finding[FleetSavings] = example_finding(
    {
        "start": "2026-12-18",
        "end": "2027-01-14",
        "now": 24.9,
        "saving": 20.4,
        "package_income": 24.9,
        "usage_income": 0.0,
        "network_cost": 3.42,
        "margin": 21.48,
        "lines_losing_money": 0,
        "saving_customer": 20.4,
        "saving_operator": 0.0,
        "verdicts": {"change": 1},
        "unpriced_templates": 0,
        "templates": [
            {
                "template_id": 55010,
                "name": "Nordic 1GB 30d",
                "days": 30,
                "data_mb": 1073.742,
                "cost": 4.5,
                "price": 4.5,
                "package_income": 4.5,
                "package_income_30_days": 4.5,
            },
            {
                "template_id": 55014,
                "name": "Europe 1GB 30d",
                "days": 30,
                "data_mb": 1073.742,
                "cost": 4.9,
                "price": 4.9,
                "package_income": 4.9,
                "package_income_30_days": 4.9,
            },
            {
                "template_id": 55016,
                "name": "Europe 10GB 30d",
                "days": 30,
                "data_mb": 10737.418,
                "cost": 24.9,
                "price": 24.9,
                "package_income": 24.9,
                "package_income_30_days": 24.9,
            },
        ],
        "lines": [
            {
                "iccid": "8988303700000100286",
                "account_id": 8101,
                "verdict": "change",
                "saving": 20.4,
                "saving_customer": 20.4,
                "saving_operator": 0.0,
                "network_cost": 3.42,
                "margin": 21.48,
                "need": {"data_mb": 812.5, "others": {}, "days": 19, "countries": ["NO", "SE"]},
                "now": {
                    "price": 24.9,
                    "charged": 0.0,
                    "package_income": 24.9,
                    "usage_income": 0.0,
                    "total": 24.9,
                    "packages": [{"template_id": 55016, "count": 2}],
                },
                "best": {
                    "price": 4.5,
                    "charged": 0.0,
                    "package_income": 4.5,
                    "usage_income": 0.0,
                    "total": 4.5,
                    "packages": [{"template_id": 55010, "count": 1}],
                },
                "best_is_present": False,
                "next": {
                    "price": 4.9,
                    "charged": 0.0,
                    "package_income": 4.9,
                    "usage_income": 0.0,
                    "total": 4.9,
                    "packages": [{"template_id": 55014, "count": 1}],
                },
                "proven": True,
                "uncovered": [],
            }
        ],
    },
    PLAN_METHOD,
)


@operation(
    "POST",
    "/v1/intelligence/optimize-package",
    upstream=True,
    operator=True,
    title="Cheapest packages",
    access=own_line_or_fleet,
    raises=[NotFound, OcsError],
    examples=[
        Example("Which lines have the wrong package?", {"limit": 10}, SAVINGS_EXAMPLE),
        Example("Has this line the right one?", {"iccid": "8988303700000100286"}, SAVINGS_EXAMPLE),
    ],
    # Choice: a row holds three sets of packages, and the first few are the largest savings.
    tool_defaults={"limit": 5},
)
async def optimize_package(ctx: Ctx, params: PackageQuery, target: LineTarget) -> Finding[FleetSavings]:
    """Find the cheapest packages for what lines use, with proof: the next best.

    Per line: need, present and cheapest set, savings, margin; EUR per 30 days.

    A set covers a need when the need can be divided among its packages: each takes no more than it holds of a kind, only on networks of
    its zone, and of a network's need no more than its share of the time. Packages of so many days share the time with as many as it
    takes, one after another, to reach over all days of use; one that lasts longer than 30 days counts with 30 days of its price and of
    what it holds. All data is to be covered, of calls and messages what packages paid. Prices are the templates' own, and what the
    customer pays less you receive less. What networks charge you is the same whichever package pays: a line that costs more than it
    brings in loses_money, and high_cost_subscribers says what lowers that. A mis_steered line is offered no other package. A fleet's
    plans come from the read model, whose lines are looked at when they change, and each day; one line is read live.
    """
    offers = await read_offers(target.upstream)
    if target.line is not None:
        return await plan_one_line(ctx, target, target.line, offers)
    view = await view_fleet(ctx, params, last_whole_days(ctx.now))
    found = await cached_result(ctx, view.upstream, partial(rank_plans, ctx, view), further=params.starting_after is not None)
    numbers = ranking_page(ctx, found.figures.numbers, params.limit, params.starting_after)
    stored = await ctx.deps.store.read(read_lines_to_judge, fleet=view.fleet.state.id, now=ctx.now, most=len(numbers), numbers=numbers)
    page = await anyio.to_thread.run_sync(plans_of_lines, numbers, stored, offers, ctx.now)
    codes = await anyio.to_thread.run_sync(main_codes, found.figures.networks, offers)
    return found.finding(savings_answer(found.figures, page, codes, offers, found.at), PLAN_METHOD)


def savings_answer(
    ranked: PlanRanking, page: Sequence[LinePackagePlan], codes: NetworkCodes, offers: OfferCatalogue, at: float
) -> FleetSavings:
    """The answer with the plans of a page, made at `at`, Unix seconds."""
    window = last_whole_days(at)
    return {
        "start": window.first.isoformat(),
        "end": window.last.isoformat(),
        "now": euros(ranked.now),
        "saving": euros(ranked.saving),
        "package_income": euros(ranked.package_income),
        "usage_income": euros(ranked.now - ranked.package_income),
        "network_cost": euros(ranked.network_cost),
        "margin": euros(ranked.now - ranked.network_cost),
        "lines_losing_money": ranked.losing,
        "saving_customer": euros(ranked.saving),
        "saving_operator": 0.0,
        "verdicts": ranked.verdicts,
        "unpriced_templates": offers.unpriced,
        "templates": named_templates(page, offers.offers),
        "lines": [line_plan(plan, codes) for plan in page],
    }


async def plan_one_line(ctx: Ctx, target: LineTarget, line: FleetLine, offers: OfferCatalogue) -> Finding[FleetSavings]:
    """The plan of one line, read live. The search runs in a thread, so the event loop stays free. Waits for the network."""
    window, upstream = last_whole_days(ctx.now), target.upstream
    use = await read_line_use(ctx, upstream, line, window)
    week = await read_line_use(ctx, upstream, line, last_whole_days(ctx.now, WEEK_DAYS))  # kept since they were just read
    packages = await upstream.ocs.packages.list_packages(line.subscriber_id, version="v2")
    [plan] = await anyio.to_thread.run_sync(finish_plans, [draft_plan(line, use, week, packages, offers, window)], offers)
    losing = int(plan.margin < 0)
    verdicts: dict[PlanVerdict, int] = {plan.verdict: 1}
    ranked = PlanRanking((), plan.now, plan.spend.price, plan.network_cost, losing, plan.saving, verdicts, ())
    codes = NetworkCodes(offers.coverage, (part.code for part in plan.need.parts))
    return make_finding(savings_answer(ranked, [plan], codes, offers, ctx.now), now=ctx.now, sampled=1, of=1, method=PLAN_METHOD)


async def rank_plans(ctx: Ctx, view: FleetView) -> FleetResult[PlanRanking]:
    """The lines of the fleet by the plans that are stored with them. Choice: a line that was never judged is in stock, and uses nothing."""
    found = await ctx.deps.store.read(fleet_plans, fleet=view.fleet.state.id)
    sums, waiting = found.sums, view.known.progress.unread + view.known.unjudged
    verdicts = Counter[PlanVerdict]({cast(PlanVerdict, each.plan): each.lines for each in sums})
    idle = max(0, view.known.lines - waiting - verdicts.total())
    if idle:
        verdicts["unused"] += idle
    ranking = PlanRanking(
        array("q", found.numbers),
        sum(each.now for each in sums),
        sum(each.income for each in sums),
        sum(each.cost for each in sums),
        sum(each.losing for each in sums),
        sum(each.saving for each in sums),
        dict(sorted(verdicts.items())),
        found.networks,
    )
    return view.result(ctx, ranking, sampled=verdicts.total(), missing=max(0, view.known.lines - verdicts.total()))


def plans_of_lines(numbers: Sequence[int], stored: StoredLines, offers: OfferCatalogue, now: float) -> list[LinePackagePlan]:
    """The plans of a page of lines, in the order of `numbers`. It takes milliseconds a line, so it runs in a thread."""
    networks = {(row.mcc, row.mnc): row for row in stored.networks}
    plans: dict[int, LinePackagePlan] = {}
    for each in stored.lines:
        packages = stored_packages(each.packages)
        search = StoredLinePlan(stored_fleet_line(each.line), each.usage, packages, offers, networks, now)
        plans[each.line.subscriber_id] = search.plan
    return [plans[number] for number in numbers if number in plans]


def main_codes(networks: Iterable[SeenNetwork], offers: OfferCatalogue) -> NetworkCodes:
    """The code by which each network is named: that under which most lines are on it."""
    return NetworkCodes(offers.coverage, (code for row in networks for code in repeat((row.mcc, row.mnc), row.lines)))


SAVINGS_CHART_COUNTRIES = 12
PLAN_VERDICT_LABELS: Mapping[PlanVerdict, str] = {
    "change": "Change",
    "keep": "Keep",
    "loses_money": "Loses money",
    "unused": "Unused",
    "mis_steered": "Mis-steered",
    "no_replacement": "No replacement",
    "no_sponsor": "Unknown SIM",
    "unsolved": "Not solved",
}


def savings_sheet(found: Finding[FleetSavings]) -> Sheet:
    data = found["data"]
    paid = data["package_income"] + data["usage_income"]
    return {
        "title": "Cheapest packages",
        "headline": f"Other packages would save customers EUR {data['saving_customer']:.2f} of EUR {paid:.2f} in 30 days; "
        f"{data['lines_losing_money']} lines cost more than they bring in.",
        "figures": [
            {"label": "Network cost in 30 days", "kind": "money", "value": data["network_cost"]},
            {"label": "Package income in 30 days", "kind": "money", "value": data["package_income"]},
            {"label": "Usage income in 30 days", "kind": "money", "value": data["usage_income"]},
            {"label": "Margin in 30 days", "kind": "money", "value": data["margin"]},
            {"label": "Saving for customers in 30 days", "kind": "money", "value": data["saving_customer"]},
            {"label": "Lines to change", "kind": "number", "value": data["verdicts"].get("change", 0)},
            {"label": "Lines that lose money", "kind": "number", "value": data["lines_losing_money"]},
            {"label": "Lines without use", "kind": "number", "value": data["verdicts"].get("unused", 0)},
            {"label": "First day of use", "kind": "day", "value": data["start"]},
            {"label": "Last day of use", "kind": "day", "value": data["end"]},
        ],
        "charts": [savings_verdict_chart(data["verdicts"]), savings_country_chart(data["lines"])],
        "tables": [savings_lines_table(data["lines"]), losing_lines_table(data["lines"])],
    }


def savings_verdict_chart(verdicts: Mapping[PlanVerdict, int]) -> Chart:
    ordered = sorted(verdicts, key=lambda verdict: (-verdicts[verdict], verdict))
    return bar_chart_of("Lines by verdict", "Lines", {PLAN_VERDICT_LABELS[verdict]: verdicts[verdict] for verdict in ordered})


def savings_country_chart(rows: Sequence[LinePlan]) -> Chart:
    """The countries where the listed lines that could save use most data."""
    found: Counter[str] = Counter(row["need"]["countries"][0] for row in rows if row["saving_customer"] > 0 and row["need"]["countries"])
    places = dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:SAVINGS_CHART_COUNTRIES])
    return bar_chart_of("Listed lines that could save, by country of most use", "Lines", places, places_kind="country")


def savings_lines_table(rows: Sequence[LinePlan]) -> Table:
    """The lines whose customers save most. Templates are named by number, since their names are text from outside."""
    saving = [row for row in rows if row["saving_customer"] > 0]
    return sheet_table(
        "Largest savings",
        {
            "Line": "line",
            "Verdict": "word",
            "Saving for the customer": "money",
            "Customer pays now": "money",
            "Cheapest": "money",
            "Next best": "money",
            "Margin now": "money",
            "Data needed": "bytes",
            "Packages": "text",
        },
        [savings_line_row(row) for row in saving],
        "EUR in 30 days; data with a tenth more than was used. What a customer saves you receive less." if saving else None,
    )


def savings_line_row(row: LinePlan) -> list[SheetValue]:
    best, following = row["best"], row["next"]
    packages = "" if best is None else ", ".join(f"{one['count']} x {one['template_id']}" for one in best["packages"])
    return [
        row["iccid"],
        PLAN_VERDICT_LABELS[row["verdict"]],
        row["saving_customer"],
        row["now"]["total"],
        None if best is None else best["total"],
        None if following is None else following["total"],
        row["margin"],
        round(row["need"]["data_mb"] * 1_000_000),
        packages,
    ]


def losing_lines_table(rows: Sequence[LinePlan]) -> Table:
    """The listed lines that cost more than they bring in, the largest loss first."""
    losing = sorted((row for row in rows if row["margin"] < 0), key=lambda row: (row["margin"], row["iccid"]))
    columns: dict[str, SheetKind] = {
        "Line": "line",
        "Verdict": "word",
        "Network cost": "money",
        "Package income": "money",
        "Usage income": "money",
        "Margin": "money",
    }
    return sheet_table("Lines that lose money", columns, [losing_line_row(row) for row in losing], "EUR in 30 days." if losing else None)


def losing_line_row(row: LinePlan) -> list[SheetValue]:
    now = row["now"]
    money = row["network_cost"], now["package_income"], now["usage_income"], row["margin"]
    return [row["iccid"], PLAN_VERDICT_LABELS[row["verdict"]], *money]
