"""Which lines cost most, and where and by what."""

from datetime import timedelta
from functools import partial
from typing import Annotated, NamedTuple, Self

import anyio.to_thread
from pydantic import Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.costs.euros import euros
from operations.intelligence.costs.figures import (
    CostFigures,
    CountryCost,
    Euros,
    LineCost,
    OtherCountries,
    country_cost,
    difference,
    figures,
    kind_costs,
    line_cost,
    margin,
    other_countries,
)
from operations.intelligence.costs.fleet_bill import PARETO_PERCENT, FleetBill, fleet_bill
from operations.intelligence.costs.line_bill import Bill, bill_of, summed
from operations.intelligence.finding import Finding, Incomplete, finding, gaps
from operations.intelligence.fleet.reading import FleetLine, fleet_of, read_each
from operations.intelligence.kept_finding import kept_finding
from operations.intelligence.lines.use import SETTLED_DAYS, use_of
from operations.intelligence.lines.use_kinds import Kind
from operations.intelligence.ranking import PageCursor, Rows, page_of
from operations.services.network.reached import Upstream
from operations.services.network.upstream import reach
from operations.services.network.windows import Day, Window, today, window_of
from registry.errors import BadRequest, OcsError
from registry.model import CamelInput
from registry.operation import Example, operation

METHOD = (
    "The cost of a line is that of its days as the charging system totals them, in whole millionths of a euro; networks and kinds are its "
    "single records added up, and what these leave open is `unattributed`."
)


class CostQuery(CamelInput):
    """Which days."""

    start: Annotated[Day, Field(description="First UTC day.")]
    end: Annotated[Day, Field(description="Last; at most 92 days.")]
    limit: Annotated[Rows, Field(description="Lines and countries, 1-500.")] = 100
    starting_after: PageCursor = None

    @model_validator(mode="after")
    def _range(self) -> Self:
        window_of(self.start, self.end, 0.0)
        return self


class CostDays(TypedDict):
    """The days that were added up, both included."""

    start: str
    end: str
    days: int
    provisional_from: Annotated[str | None, Field(description="Records of this day and later ones may still come; null: of none")]


class Pareto(TypedDict):
    """How few lines make most of the cost."""

    percent: int
    lines: Annotated[int, Field(description="The fewest lines that make so many percent of the cost")]
    cost: Annotated[float, Field(description="EUR, theirs together")]


class FleetCosts(CostFigures):
    """The fleet's cost: of all lines together, of countries and of kinds. Each adds up to `cost`, with `unattributed` where it is told."""

    window: CostDays
    margin: Annotated[float, Field(description="EUR: charged less cost. What packages were sold for is in neither")]
    lines_with_cost: Annotated[int, Field(description="Lines in the ranking; the others cost nothing")]
    pareto: Pareto
    kinds: Annotated[dict[Kind, Euros], Field(description="Cost by kind of use, EUR")]
    countries: Annotated[list[CountryCost], Field(description="Dearest first, at most `limit`")]
    other_countries: OtherCountries | None
    unattributed: Annotated[
        CostFigures | None, Field(description="The charging system's totals less its records, where they differ; null: they agree")
    ]
    lines: Annotated[list[LineCost], Field(description="Dearest first; a page of them")]


class Costs(NamedTuple):
    """What was found of the fleet, kept while it is paged through."""

    now: float
    bill: FleetBill
    sampled: int
    of: int
    incomplete: Incomplete | None


EXAMPLE: Finding[FleetCosts] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 1,
    "of": 1,
    "method": METHOD,
    "incomplete": None,
    "data": {
        "window": {"start": "2027-01-01", "end": "2027-01-07", "days": 7, "provisional_from": None},
        "cost": 3.204117,
        "charged": 0.5,
        "margin": -2.704117,
        "lines_with_cost": 1,
        "pareto": {"percent": 80, "lines": 1, "cost": 3.204117},
        "kinds": {"data": 3.159117, "sms_out": 0.045},
        "countries": [
            {
                "country": "NO",
                "cost": 3.204117,
                "charged": 0.5,
                "share_percent": 100.0,
                "networks": [{"country": "NO", "mcc": 242, "mnc": 1, "operator": "Telco A", "cost": 3.204117, "charged": 0.5}],
                "rest": None,
            }
        ],
        "other_countries": None,
        "unattributed": None,
        "lines": [
            {
                "iccid": "8988303700000100286",
                "account_id": 8101,
                "cost": 3.204117,
                "charged": 0.5,
                "margin": -2.704117,
                "share_percent": 100.0,
                "networks": [{"country": "NO", "mcc": 242, "mnc": 1, "operator": "Telco A", "cost": 3.204117, "charged": 0.5}],
                "rest": None,
                "kinds": {"data": 3.159117, "sms_out": 0.045},
                "unattributed": None,
            }
        ],
    },
}


@operation(
    "POST",
    "/v1/intelligence/high-cost-subscribers",
    upstream=True,
    operator=True,
    title="High-cost lines",
    raises=[BadRequest, OcsError],
    examples=[Example("What did last week cost, and which lines?", {"start": "2027-01-01", "end": "2027-01-07", "limit": 10}, EXAMPLE)],
    # Choice: a row with its networks is long, and few of them say which lines to look at.
    tool_defaults={"limit": 5},
)
async def high_cost_subscribers(ctx: Ctx, params: CostQuery) -> Finding[FleetCosts]:
    """Rank lines by what their use cost, by network and kind.

    `cost`: what networks charge you; `charged`: what lines paid outside packages. EUR.

    Both add up exactly. A line's networks, the rest of them and `unattributed` make its cost; all lines, or all countries with
    `unattributed`, make the fleet's. `unattributed` is where the charging system's totals and its single records disagree. What packages
    were sold for is no part of `charged`, so a negative margin of a line with packages is no loss by itself. Operators are called as the
    charging system calls them. Pages within a minute show one state.
    """
    window = Window(params.start, params.end)
    if window.first > today(ctx.now):
        raise BadRequest(
            f"start: {window.first} has not come, so nothing has been used then", param="start", hint=f"Today is {today(ctx.now)} (UTC)"
        )
    upstream = await reach(ctx)
    key = ("high_cost_subscribers", ctx.organisation, *window)
    load = partial(costs_of, ctx, upstream, window)
    costs = await kept_finding(upstream, key, load, further=params.starting_after is not None)
    data = shown(costs, window, page_of(ctx, costs.bill.lines, params.limit, params.starting_after), params.limit)
    return finding(data, now=costs.now, sampled=costs.sampled, of=costs.of, method=METHOD, incomplete=costs.incomplete)


async def costs_of(ctx: Ctx, upstream: Upstream, window: Window) -> Costs:
    """The bills of all lines."""
    fleet = await fleet_of(upstream)

    async def read(line: FleetLine) -> Bill:
        return bill_of(line, await use_of(upstream, line, window, ctx.deps.weeks, ctx.now))

    reading = await read_each(fleet.lines, read, clock=ctx.deps.clock, tell=ctx.progress)
    bill = await anyio.to_thread.run_sync(fleet_bill, list(reading.found.values()))
    incomplete = gaps(failed=reading.failed, left=reading.left, unlisted=fleet.incomplete)
    return Costs(ctx.now, bill, len(reading.found), len(fleet.lines), incomplete)


def shown(costs: Costs, window: Window, page: list[Bill], most: int) -> FleetCosts:
    """The answer around a page of lines."""
    bill = costs.bill
    return {
        "window": days_of(window, costs.now),
        **figures(bill.total),
        "margin": margin(bill.total),
        "lines_with_cost": len(bill.lines),
        "pareto": pareto_of(bill),
        "kinds": kind_costs(bill.kinds),
        "countries": [country_cost(country, bill.total) for country in bill.countries[:most]],
        "other_countries": other_countries(bill.countries[most:]),
        "unattributed": difference(bill.unattributed),
        "lines": [line_cost(line, bill.total) for line in page],
    }


def pareto_of(bill: FleetBill) -> Pareto:
    """The few lines that make most of the cost."""
    few = summed(line.total for line in bill.lines[: bill.pareto])
    return {"percent": PARETO_PERCENT, "lines": bill.pareto, "cost": euros(few.reseller)}


def days_of(window: Window, now: float) -> CostDays:
    """The days, and from which on they may still change."""
    open_from = max(window.first, today(now) - timedelta(days=SETTLED_DAYS - 1))
    return {
        "start": window.first.isoformat(),
        "end": window.last.isoformat(),
        "days": window.days,
        "provisional_from": open_from.isoformat() if open_from <= window.last else None,
    }
