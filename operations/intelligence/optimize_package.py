"""Which packages would be cheapest for what lines use."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, NamedTuple

import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.costs.euros import euros
from operations.intelligence.finding import Finding, Incomplete, finding, gaps
from operations.intelligence.fleet.reading import FleetLine, fleet_of, read_each
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.asked import Asked, LinesAsked, lines_asked
from operations.intelligence.lines.use import use_of
from operations.intelligence.packages.figures import LinePlan, TemplateFigures, line_plan, spoken_of
from operations.intelligence.packages.need import DAYS, MARGIN_PERCENT, MONTH, four_weeks
from operations.intelligence.packages.offers import Offers, offers_of
from operations.intelligence.packages.plan import Plan, Verdict, drafted, finished
from operations.intelligence.ranking import page_of
from operations.services.network.reached import Upstream
from operations.vocabulary import Iccid
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

AT_ONCE = 50
"""Plans that a thread works on before anybody is asked whether they are still wanted."""
METHOD = (
    f"What a line used in the last {DAYS} whole UTC days, scaled to {MONTH} days with {MARGIN_PERCENT} % more, is covered by the cheapest "
    "packages of its sponsor's templates; the search is exact, and what it compares with is what the packages in force in these days cost."
)


class PackageQuery(LinesAsked):
    """One line, or the fleet."""

    iccid: Annotated[Iccid | None, Field(description="One line; absent: the fleet.")] = None


class FleetSavings(TypedDict):
    """What packages could cost instead, of all lines that were looked into. Amounts are EUR in thirty days."""

    start: Annotated[str, Field(description="First UTC day of use that was looked at")]
    end: Annotated[str, Field(description="Last one")]
    now: Annotated[float, Field(description="Packages in force, and use outside packages")]
    saving: Annotated[float, Field(description="Of all lines whose verdict is change or unused")]
    verdicts: Annotated[dict[Verdict, int], Field(description="Lines by verdict")]
    unpriced_templates: Annotated[int, Field(description="Templates left out of the search, since they have no cost")]
    templates: Annotated[list[TemplateFigures], Field(description="Those that this page's lines name")]
    lines: Annotated[list[LinePlan], Field(description="Largest saving first; a page of them")]


class Ranked(NamedTuple):
    """Plans, largest saving first, and what they are together. Amounts are micro-euros."""

    plans: Sequence[Plan]
    """Choice: without lines that used nothing and have nothing, such as SIMs in stock; `verdicts` counts them."""
    now: int
    saving: int
    verdicts: dict[Verdict, int]


class Plans(NamedTuple):
    """What was found, kept while it is paged through."""

    now: float
    ranked: Ranked
    sampled: int
    offers: Offers
    of: int
    incomplete: Incomplete | None


EXAMPLE: Finding[FleetSavings] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 1,
    "of": 1,
    "method": METHOD,
    "incomplete": None,
    "data": {
        "start": "2026-12-18",
        "end": "2027-01-14",
        "now": 24.9,
        "saving": 20.4,
        "verdicts": {"change": 1},
        "unpriced_templates": 0,
        "templates": [
            {"template_id": 55010, "name": "Nordic 1GB 30d", "days": 30, "data_mb": 1073.742, "cost": 4.5, "price": 4.5},
            {"template_id": 55014, "name": "Europe 1GB 30d", "days": 30, "data_mb": 1073.742, "cost": 4.9, "price": 4.9},
            {"template_id": 55016, "name": "Europe 10GB 30d", "days": 30, "data_mb": 10737.418, "cost": 24.9, "price": 24.9},
        ],
        "lines": [
            {
                "iccid": "8988303700000100286",
                "account_id": 8101,
                "verdict": "change",
                "saving": 20.4,
                "need": {"data_mb": 812.5, "others": {}, "days": 19, "countries": ["NO", "SE"]},
                "now": {"price": 24.9, "charged": 0.0, "total": 24.9, "packages": [{"template_id": 55016, "count": 2}]},
                "best": {"price": 4.5, "charged": 0.0, "total": 4.5, "packages": [{"template_id": 55010, "count": 1}]},
                "next": {"price": 4.9, "charged": 0.0, "total": 4.9, "packages": [{"template_id": 55014, "count": 1}]},
                "proven": True,
                "uncovered": [],
            }
        ],
    },
}


@operation(
    "POST",
    "/v1/intelligence/optimize-package",
    upstream=True,
    operator=True,
    title="Cheapest packages",
    access=lines_asked,
    raises=[NotFound, OcsError],
    examples=[
        Example("Which lines have the wrong package?", {"limit": 10}, EXAMPLE),
        Example("Has this line the right one?", {"iccid": "8988303700000100286"}, EXAMPLE),
    ],
    # Choice: a row holds three sets of packages, and the first few are the largest savings.
    tool_defaults={"limit": 5},
)
async def optimize_package(ctx: Ctx, params: PackageQuery, asked: Asked) -> Finding[FleetSavings]:
    """Find the cheapest packages for what lines use, with proof: the next best.

    Per line: need, present and cheapest set, saving; EUR per 30 days.

    A set covers a need when the need can be divided among its packages: each takes no more than it holds of a kind, only on networks of
    its zone, and of a network's need no more than its share of the time. Packages of so many days share the time with as many as it
    takes, one after another, to reach over all days of use; one that lasts longer than 30 days counts with 30 days of its price and of
    what it holds. All data is to be covered, of calls and messages what packages paid. Prices are the templates' own; what networks
    charge your reseller is the same whichever package pays, and stays out.
    """
    if asked.line is not None:
        plans = await plans_for(ctx, asked.upstream, [asked.line])
    else:
        key, load = ("optimize_package", ctx.organisation), partial(plans_of, ctx, asked.upstream)
        plans = await kept_finding(asked.upstream, key, load, further=params.starting_after is not None)
    data = shown(plans, page_of(ctx, plans.ranked.plans, params.limit, params.starting_after))
    return finding(data, now=plans.now, sampled=plans.sampled, of=plans.of, method=METHOD, incomplete=plans.incomplete)


async def plans_of(ctx: Ctx, upstream: Upstream) -> Plans:
    """The plans of all lines. What is sold is read before the lines are listed, since without it no line can be advised."""
    await offers_of(upstream)
    fleet = await fleet_of(upstream)
    return await plans_for(ctx, upstream, fleet.lines, unlisted=fleet.incomplete)


async def plans_for(ctx: Ctx, upstream: Upstream, lines: Sequence[FleetLine], *, unlisted: bool = False) -> Plans:
    """The plans of these lines, largest saving first. Searching is work for a thread: the loop has others to serve."""
    offers, window = await offers_of(upstream), four_weeks(ctx.now)

    async def read(line: FleetLine) -> Plan:
        use = await use_of(upstream, line, window, ctx.deps.weeks, ctx.now)
        packages = await upstream.ocs.packages.list_packages(line.subscriber_id, version="v2")
        return drafted(line, use, packages, offers, window)

    reading = await read_each(lines, read, clock=ctx.deps.clock, tell=ctx.progress)
    drafts, plans = list(reading.found.values()), list[Plan]()
    for start in range(0, len(drafts), AT_ONCE):
        plans += await anyio.to_thread.run_sync(finished, drafts[start : start + AT_ONCE], offers)
    found = await anyio.to_thread.run_sync(ranked, plans)
    incomplete = gaps(failed=reading.failed, left=reading.left, unlisted=unlisted)
    return Plans(ctx.now, found, len(reading.found), offers, len(lines), incomplete)


def ranked(plans: Sequence[Plan]) -> Ranked:
    """Largest saving first; then what costs most."""
    telling = [plan for plan in plans if plan.now or plan.need.parts or len(plans) == 1]
    return Ranked(
        sorted(telling, key=lambda plan: (-plan.saving, -plan.now, plan.iccid)),
        sum(plan.now for plan in plans),
        sum(plan.saving for plan in plans),
        dict(sorted(Counter[Verdict](plan.verdict for plan in plans).items())),
    )


def shown(plans: Plans, page: Sequence[Plan]) -> FleetSavings:
    """The answer around a page of lines."""
    window = four_weeks(plans.now)
    return {
        "start": window.first.isoformat(),
        "end": window.last.isoformat(),
        "now": euros(plans.ranked.now),
        "saving": euros(plans.ranked.saving),
        "verdicts": plans.ranked.verdicts,
        "unpriced_templates": plans.offers.unpriced,
        "templates": spoken_of(page, plans.offers.offers),
        "lines": [line_plan(plan) for plan in page],
    }
