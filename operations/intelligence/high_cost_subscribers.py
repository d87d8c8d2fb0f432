"""Which lines cost most over some days, where and by what, what they bring in, and what would lower it; and the sheet of it.

A few networks are named and the rest is one, so that the figures still add up.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, NamedTuple, NoReturn, Self

import anyio.to_thread
from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.diagnosis.cost_advice import CostAdviser, CostedLine
from operations.intelligence.diagnosis.facts import DataPackage, data_packages
from operations.intelligence.diagnosis.steering_facts import read_line_steering, read_steering_facts, seen_lines
from operations.intelligence.lines.fleet_lines import (
    READING_SECONDS,
    FleetLine,
    FleetReading,
    FleetResult,
    PageCursor,
    RankingLimit,
    cached_result,
    is_in_stock,
    ranking_page,
    read_each_line,
    read_fleet,
)
from operations.intelligence.lines.usage import LATE_RECORD_DAYS, LineUse, read_line_use
from operations.intelligence.money.advice import LineAdvice
from operations.intelligence.money.bill_figures import (
    NETWORKS_SHOWN,
    CostFigures,
    CountryCost,
    Euros,
    LineCost,
    NetworkCost,
    OtherCountries,
    Pareto,
    cost_figures,
    country_cost,
    kind_costs,
    known_euros,
    line_cost,
    other_countries,
    pareto_figures,
    unattributed_figures,
)
from operations.intelligence.money.bills import FleetBill, LineBill, fleet_bill, line_bill
from operations.intelligence.money.package_advice import PackageAdviser
from operations.intelligence.offers.coverage_map import CoverageMap, NetworkCodes, read_coverage_map
from operations.intelligence.offers.offers import read_offers
from operations.intelligence.offers.package_income import package_income
from operations.intelligence.reports.sheet import (
    Chart,
    Finding,
    Series,
    Sheet,
    SheetKind,
    SheetValue,
    Table,
    bar_chart_of,
    example_finding,
    sheet_table,
    stacked_chart,
)
from operations.times import WEEK_DAYS, DayWindow, UtcDay, day_window, utc_today
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.usage import UseKind, euros
from registry.clock import limit_reading_time, seconds_left
from registry.errors import BadRequest, MethodNotAllowed, OcsError
from registry.operation import CamelInput, Example, Input, operation
from storage.line_steering import LineSteering

NO_CATALOGUE = "Zones or package templates could not be read: nothing is advised, and a network may stand under several codes."
USE_TIME_SHARE = 0.75
"""The part of its time that an answer takes for what lines used; the rest is for their packages."""
COST_METHOD = (
    "The network cost of a line is that of its days as the charging system totals them, in whole millionths of a euro; networks and kinds "
    "are its single records added up, and what these leave open is `unattributed`. A package brings in of its price the part of its life "
    "that lay in the days. Actions follow from the tariff, the packages and where the lines of each steering list are now."
)


class CostQuery(CamelInput):
    """Which days."""

    start: Annotated[UtcDay, Field(description="First UTC day.")]
    end: Annotated[UtcDay, Field(description="Last; at most 92 days.")]
    limit: Annotated[RankingLimit, Field(description="Lines and countries, 1-500.")] = 100
    starting_after: PageCursor = None

    @model_validator(mode="after")
    def _range(self) -> Self:
        day_window(self.start, self.end, 0.0)
        return self


class CostDays(TypedDict):
    """The days that were added up, both included."""

    start: str
    end: str
    days: int
    provisional_from: Annotated[str | None, Field(description="Records of this day and later ones may still come; null: of none")]


class FleetCosts(CostFigures):
    """The fleet's money: all lines together, countries, kinds. Each adds up to `network_cost`, with `unattributed` where it is told."""

    window: CostDays
    margin: Annotated[float, Field(description="usage_income less network_cost; use margin_with_packages", deprecated=True)]
    package_income: Annotated[
        float | None, Field(description="EUR: of each package's price the part of its life in the days; null: packages not read")
    ]
    margin_with_packages: Annotated[
        float | None, Field(description="EUR: package_income and usage_income less network_cost; null: packages not read")
    ]
    lines_with_cost: Annotated[int, Field(description="Lines in the ranking; the others cost nothing")]
    pareto: Pareto
    kinds: Annotated[dict[UseKind, Euros], Field(description="Network cost by kind of use, EUR")]
    countries: Annotated[list[CountryCost], Field(description="Dearest first, at most `limit`")]
    other_countries: OtherCountries | None
    unattributed: Annotated[
        CostFigures | None, Field(description="The charging system's totals less its records, where they differ; null: they agree")
    ]
    unpriced_networks: Annotated[
        int, Field(description="Networks used that have no active rule in your tariff: their cost is not known, though recorded as 0")
    ]
    lines: Annotated[list[LineCost], Field(description="Dearest first; a page of them")]


FLEET_COSTS_EXAMPLE: Finding[FleetCosts] = example_finding(
    {
        "window": {"start": "2027-01-01", "end": "2027-01-07", "days": 7, "provisional_from": None},
        "cost": 3.204117,
        "charged": 0.5,
        "network_cost": 3.204117,
        "usage_income": 0.5,
        "margin": -2.704117,
        "package_income": 1.05,
        "margin_with_packages": -1.654117,
        "lines_with_cost": 1,
        "pareto": {"percent": 80, "lines": 1, "cost": 3.204117, "network_cost": 3.204117},
        "kinds": {"data": 3.159117, "sms_out": 0.045},
        "countries": [
            {
                "country": "NO",
                "cost": 3.204117,
                "charged": 0.5,
                "network_cost": 3.204117,
                "usage_income": 0.5,
                "share_percent": 100.0,
                "networks": [
                    {
                        "country": "NO",
                        "mcc": 242,
                        "mnc": 1,
                        "operator": "Telco A",
                        "cost": 3.204117,
                        "charged": 0.5,
                        "network_cost": 3.204117,
                        "usage_income": 0.5,
                    }
                ],
                "rest": None,
            }
        ],
        "other_countries": None,
        "unattributed": None,
        "unpriced_networks": 0,
        "lines": [
            {
                "iccid": "8988303700000100286",
                "account_id": 8101,
                "cost": 3.204117,
                "charged": 0.5,
                "network_cost": 3.204117,
                "usage_income": 0.5,
                "margin": -2.704117,
                "package_income": 1.05,
                "margin_with_packages": -1.654117,
                "share_percent": 100.0,
                "networks": [
                    {
                        "country": "NO",
                        "mcc": 242,
                        "mnc": 1,
                        "operator": "Telco A",
                        "cost": 3.204117,
                        "charged": 0.5,
                        "network_cost": 3.204117,
                        "usage_income": 0.5,
                    }
                ],
                "rest": None,
                "kinds": {"data": 3.159117, "sms_out": 0.045},
                "unattributed": None,
                "action": "change_steering_list",
                "why": "cheaper_network",
                "do": [
                    {"operation": "modify_subscriber_steering_list", "arguments": {"iccid": "8988303700000100286", "listId": 17}},
                    {"operation": "push_steering_to_subscriber", "arguments": {"iccid": "8988303700000100286"}},
                ],
                "leads_to": {"mcc": "242", "mnc": "02", "operator": "Telco B"},
                "saving_operator": 1.27,
                "saving_customer": 0.0,
            }
        ],
    },
    COST_METHOD,
)


@operation(
    "POST",
    "/v1/intelligence/high-cost-subscribers",
    upstream=True,
    operator=True,
    title="High-cost lines",
    raises=[BadRequest, OcsError],
    examples=[
        Example("What did last week cost, and which lines?", {"start": "2027-01-01", "end": "2027-01-07", "limit": 10}, FLEET_COSTS_EXAMPLE)
    ],
    # Choice: a row with its networks is long, and few of them say which lines to look at.
    tool_defaults={"limit": 3},
)
async def high_cost_subscribers(ctx: Ctx, params: CostQuery) -> Finding[FleetCosts]:
    """Rank lines by what networks charge for them, by network and kind.

    Also what they bring in, their margin, and an action that lowers the cost. EUR.

    Costs and usage income add up exactly: a line's networks, the rest and `unattributed` to the line's, all lines, or all countries with
    `unattributed`, to the fleet's. `unattributed` is where the charging system's totals and its single records disagree. An action never
    costs you or the customer more than what is, by the tariff and by the packages that the line has; where none is known, `why` says what
    is missing. The charging system tells no networks of a steering list: they are inferred from where the list's other lines are. A
    network has one code in an answer, the one that most lines were seen with. Operators are called as the charging system calls them.
    Pages within a minute show one state.
    """
    window = DayWindow(params.start, params.end)
    if window.first > utc_today(ctx.now):
        raise BadRequest(
            f"start: {window.first} has not come, so nothing has been used then", param="start", hint=f"Today is {utc_today(ctx.now)} (UTC)"
        )
    upstream = await connect_upstream(ctx)
    load, further = partial(read_fleet_costs, ctx, upstream, window), params.starting_after is not None
    costs = await cached_result(ctx, upstream, load, *window, further=further)
    page = ranking_page(ctx, costs.figures.bill.lines, params.limit, params.starting_after)
    steering = await read_line_steering(ctx)  # anew for each page: figures are kept for a minute, and a push must not be advised again
    advised = await anyio.to_thread.run_sync(advise_lines, costs.figures, page, steering, ctx.now)
    data = fleet_costs_answer(costs.figures, cost_days(window, costs.at), advised, params.limit)
    return costs.finding(data, COST_METHOD)


class FleetCostResult(NamedTuple):
    """The bills of a fleet, and what is needed to say what would lower them. `lines`: by ICCID."""

    bill: FleetBill
    lines: Mapping[str, CostedLine]
    adviser: CostAdviser | None
    """None: the zones or the templates could not be read."""
    unpriced: int
    """Networks that were used, and have no active rule in the tariff."""
    codes: NetworkCodes
    """By which code each network is named: that which most of the use was seen with."""


class CostedUse(NamedTuple):
    """What a line used in the days, and in the last seven of them."""

    use: LineUse
    week: LineUse


class HeldPackages(NamedTuple):
    """What a line's packages brought in, micro-euros, and those that hold data."""

    income: int
    data: Sequence[DataPackage]


NO_PACKAGES = HeldPackages(0, ())


async def read_fleet_costs(ctx: Ctx, upstream: Upstream, window: DayWindow) -> FleetResult[FleetCostResult]:
    """The bills of all lines, and their packages as far as the time suffices, the dearest lines first. Waits for the network."""
    limit_reading_time()
    began, seconds = ctx.deps.clock.monotonic(), seconds_left(READING_SECONDS)
    fleet, unread = await read_fleet(upstream), list[str]()
    coverage, offers, adviser = CoverageMap(), None, None
    try:
        coverage = await read_coverage_map(upstream)
        offers = await read_offers(upstream)
    except OcsError:
        unread.append(NO_CATALOGUE)

    last_week = DayWindow(max(window.first, window.last - timedelta(days=WEEK_DAYS - 1)), window.last)

    async def read(line: FleetLine) -> CostedUse:
        use = await read_line_use(ctx, upstream, line, window)
        return CostedUse(use, await read_line_use(ctx, upstream, line, last_week))  # kept since it was just read

    reading = await read_each_line(ctx, fleet.lines, read, seconds=seconds * USE_TIME_SHARE)
    found = [(line, reading.found[line.subscriber_id]) for line in fleet.lines if line.subscriber_id in reading.found]
    left = seconds - (ctx.deps.clock.monotonic() - began)
    held = await read_held_packages(ctx, upstream, found, window, {} if offers is None else offers.costs, left)
    if held.missing:
        unread.append(f"The packages of {held.missing} lines could not be read: their package income is not known, nor is the fleet's.")
    if offers is not None and found:
        facts = await read_steering_facts(ctx, upstream)
        unread += facts.unread
        weeks = {line.subscriber_id: costed.week for line, costed in found}
        seen = await anyio.to_thread.run_sync(seen_lines, fleet.lines, weeks, last_week, ctx.now)
        steering = await anyio.to_thread.run_sync(facts.adviser, seen, coverage)
        adviser = CostAdviser(coverage, facts, steering, PackageAdviser(offers))
    figures = await anyio.to_thread.run_sync(fleet_cost_result, found, held.found, coverage, adviser)
    return reading.result(ctx, figures, fleet, others=unread)


async def read_held_packages(
    ctx: Ctx,
    upstream: Upstream,
    found: Sequence[tuple[FleetLine, CostedUse]],
    window: DayWindow,
    costs: Mapping[int, int],
    seconds: float,
) -> FleetReading[HeldPackages]:
    """The packages of issued lines, the dearest lines first. Waits for the network, at most `seconds`.

    `costs`: prices by template, micro-euros, for packages whose own is not told. A line that cannot be read is counted as missing.
    """
    issued = [(line, use) for line, use in found if not is_in_stock(line)]
    ordered = [line for line, _ in sorted(issued, key=lambda one: (-one[1].use.reseller_cost, one[0].subscriber_id))]

    async def read(line: FleetLine) -> HeldPackages:
        packages = await upstream.ocs.packages.list_packages(line.subscriber_id)
        return HeldPackages(package_income(packages, window, costs), data_packages(packages, ctx.now))

    try:
        return await read_each_line(ctx, ordered, read, seconds=seconds)
    except OcsError:
        return FleetReading({}, len(ordered), 0)


def fleet_cost_result(
    found: Sequence[tuple[FleetLine, CostedUse]], held: Mapping[int, HeldPackages], coverage: CoverageMap, adviser: CostAdviser | None
) -> FleetCostResult:
    """The bills of the lines that were `found`, with the packages of those that were read. A SIM in stock has none."""
    codes = NetworkCodes(coverage, ((place.mcc, place.mnc) for _, costed in found for place in costed.use.places))
    bills, lines = list[LineBill](), dict[str, CostedLine]()
    for line, (use, week) in found:
        packages = NO_PACKAGES if is_in_stock(line) else held.get(line.subscriber_id)
        bills.append(line_bill(line, use, codes, None if packages is None else packages.income))
        lines[line.iccid] = CostedLine(line, use, week, None if packages is None else packages.data)
    unpriced = set[int]() if adviser is None else set[int]().union(*(adviser.unpriced(line) for line in lines.values()))
    return FleetCostResult(fleet_bill(bills), lines, adviser, len(unpriced), codes)


def advise_lines(
    costs: FleetCostResult, page: Sequence[LineBill], steering: Mapping[str, LineSteering], now: float
) -> list[tuple[LineBill, LineAdvice]]:
    """The bills of a page, each with what would lower it at `now`, Unix seconds."""
    if costs.adviser is None:
        return [(bill, LineAdvice("none", "not_read")) for bill in page]
    return [(bill, costs.adviser.advise(costs.lines[bill.iccid], steering, now)) for bill in page]


def fleet_costs_answer(costs: FleetCostResult, days: CostDays, page: Sequence[tuple[LineBill, LineAdvice]], most: int) -> FleetCosts:
    bill, codes = costs.bill, costs.codes
    return {
        "window": days,
        **cost_figures(bill.total),
        "margin": euros(bill.total.usage_income - bill.total.network_cost),
        "package_income": known_euros(bill.package_income),
        "margin_with_packages": known_euros(bill.margin),
        "lines_with_cost": len(bill.lines),
        "pareto": pareto_figures(bill),
        "kinds": kind_costs(bill.kinds),
        "countries": [country_cost(country, bill.total) for country in bill.countries[:most]],
        "other_countries": other_countries(bill.countries[most:]),
        "unattributed": unattributed_figures(bill.unattributed),
        "unpriced_networks": costs.unpriced,
        "lines": [line_cost(line, bill.total, advice, codes) for line, advice in page],
    }


def cost_days(window: DayWindow, now: float) -> CostDays:
    """The days of `window`, and the first day that may still change."""
    open_from = max(window.first, utc_today(now) - timedelta(days=LATE_RECORD_DAYS - 1))
    return {
        "start": window.first.isoformat(),
        "end": window.last.isoformat(),
        "days": window.days,
        "provisional_from": open_from.isoformat() if open_from <= window.last else None,
    }


class AnyCostQuery(Input):
    """Whatever older clients sent, such as `threshold`; nothing of it is read."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


async def refuse_cost_query_by_get(*asked: object) -> NoReturn:
    """Raises MethodNotAllowed in place of a look at the caller.

    Choice: a query by GET is always 405, so this comes before everything that looks at tier, restrictions or query.
    """
    del asked
    raise cost_method_refusal()


def cost_method_refusal() -> MethodNotAllowed:
    return MethodNotAllowed(
        "The ranking is asked for with POST, and there is no threshold",
        allow="POST",
        hint="POST /v1/intelligence/high-cost-subscribers with start, end and, if you like, limit in the JSON body",
    )


@operation(
    "GET",
    "/v1/intelligence/high-cost-subscribers",
    tool=False,
    charged=False,
    organisation=False,
    title="High-cost lines by GET",
    proof=refuse_cost_query_by_get,
    raises=[MethodNotAllowed],
    examples=[Example("What an older client sends", {})],
)
async def high_cost_subscribers_method_guard(ctx: Ctx, params: AnyCostQuery) -> Finding[FleetCosts]:
    """Always answers 405: high_cost_subscribers is a POST.

    Nothing is read or charged, whatever the query says; a `threshold` is not accepted there either.
    """
    del ctx, params
    raise cost_method_refusal()


COST_CHART_COUNTRIES = 12
"""Countries of the chart."""
NETWORK_PLACE_LABELS = ("Dearest network", "Second network", "Third network", "Other networks")
USE_KIND_LABELS: Mapping[UseKind, str] = {
    "data": "Data",
    "calls_out": "Calls made",
    "calls_in": "Calls received",
    "sms_out": "Messages sent",
    "sms_in": "Messages received",
    "other": "Other use",
}


def cost_sheet(found: Finding[FleetCosts]) -> Sheet:
    data = found["data"]
    few = data["pareto"]
    return {
        "title": "What lines cost",
        "headline": f"{few['lines']} of {found['of']} lines make {few['percent']} % of the network cost: EUR {data['network_cost']:.2f}.",
        "figures": [
            {"label": "Network cost", "kind": "money", "value": data["network_cost"]},
            {"label": "Package income", "kind": "money", "value": data["package_income"]},
            {"label": "Usage income", "kind": "money", "value": data["usage_income"]},
            {"label": "Margin", "kind": "money", "value": data["margin_with_packages"]},
            {"label": "Lines with cost", "kind": "number", "value": data["lines_with_cost"]},
            {"label": "First day", "kind": "day", "value": data["window"]["start"]},
            {"label": "Last day", "kind": "day", "value": data["window"]["end"]},
        ],
        "charts": [cost_country_chart(data["countries"]), cost_kind_chart(data["kinds"])],
        "tables": [cost_lines_table(data["lines"], data["lines_with_cost"]), cost_countries_table(data["countries"])],
    }


def cost_country_chart(rows: Sequence[CountryCost]) -> Chart:
    """The dearest countries. Networks differ from country to country, so the layers are their places in it."""
    named = [row for row in rows if row["country"] is not None][:COST_CHART_COUNTRIES]
    costs = [network_place_costs(row) for row in named]
    series: list[Series] = [{"label": label, "values": [each[place] for each in costs]} for place, label in enumerate(NETWORK_PLACE_LABELS)]
    places, filled = [row["country"] or "" for row in named], [one for one in series if any(one["values"])]
    return stacked_chart("Network cost by country, stacked by network", places, filled, kind="money", places_kind="country")


def network_place_costs(row: CountryCost) -> list[float | None]:
    """A network cost for each of NETWORK_PLACE_LABELS."""
    named = [network["network_cost"] for network in row["networks"]]
    return [*named, *[None] * (NETWORKS_SHOWN - len(named)), None if row["rest"] is None else row["rest"]["network_cost"]]


def cost_kind_chart(kinds: Mapping[UseKind, float]) -> Chart:
    ordered = sorted(kinds, key=lambda kind: -kinds[kind])
    labelled = {USE_KIND_LABELS[kind]: kinds[kind] for kind in ordered}
    return bar_chart_of("Network cost by kind of use", "Network cost", labelled, kind="money")


def cost_lines_table(rows: Sequence[LineCost], of: int) -> Table:
    return sheet_table(
        "Dearest lines",
        {
            "Line": "line",
            "Network cost": "money",
            "Share": "percent",
            "Package income": "money",
            "Usage income": "money",
            "Margin": "money",
            "Country": "country",
            "Network": "network",
            "What to do": "word",
            "Saving for the operator": "money",
            "Saving for the customer": "money",
        },
        [cost_line_row(row) for row in rows],
        f"{len(rows)} of {of} lines with cost; country and network are the dearest of each" if rows else None,
    )


def cost_line_row(row: LineCost) -> list[SheetValue]:
    first = row["networks"][0] if row["networks"] else None
    country, network = (None, None) if first is None else (first["country"], cost_network_code(first))
    money = row["network_cost"], row["share_percent"], row["package_income"], row["usage_income"], row["margin_with_packages"]
    action = row["action"].replace("_", " ")
    return [row["iccid"], *money, country, network, action, row["saving_operator"], row["saving_customer"]]


def cost_countries_table(rows: Sequence[CountryCost]) -> Table:
    columns: dict[str, SheetKind] = {
        "Country": "country",
        "Network cost": "money",
        "Share": "percent",
        "Usage income": "money",
        "Dearest network": "network",
    }
    return sheet_table("Countries", columns, [cost_country_row(row) for row in rows])


def cost_country_row(row: CountryCost) -> list[SheetValue]:
    return [row["country"], row["network_cost"], row["share_percent"], row["usage_income"], cost_network_code(row["networks"][0])]


def cost_network_code(network: NetworkCost) -> str:
    return f"{network['mcc']:03d}-{network['mnc']:02d}"
