"""Which lines cost most over some days, where and by what, what they bring in, and what would lower it; and the sheet of it.

A few networks are named and the rest is one, so that the figures still add up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from typing import Annotated, NamedTuple, NoReturn, Self

import anyio.to_thread
from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.packages import PackageList
from operations.deps import Ctx
from operations.fleet.wire_rows import day_start, stored_packages
from operations.intelligence.diagnosis.cost_advice import CostAdviser, CostedLine
from operations.intelligence.diagnosis.facts import data_packages
from operations.intelligence.diagnosis.steering_facts import read_steering_changes, read_steering_facts
from operations.intelligence.lines.fleet_lines import FleetResult, PageCursor, RankingLimit, cached_result, is_in_stock, ranking_page
from operations.intelligence.lines.fleet_view import FleetView, at_once, view_fleet
from operations.intelligence.lines.stored_use import FleetNetworks, listed_line, stored_line_use
from operations.intelligence.lines.usage import LATE_RECORD_DAYS
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
from operations.intelligence.money.steering_advice import SteeringAdviser, SteeringEvidence, sightings_of_fleet
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
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA, UseKind, euros
from registry.errors import BadRequest, MethodNotAllowed, OcsError
from registry.operation import CamelInput, Example, Input, operation
from storage.fleet_costs import NetworkMoney, PackageLife, PackageMoney, UsageMoney, UsedLine, package_money, usage_money, used_lines
from storage.fleet_usage import KEPT_USAGE_DAYS
from storage.line_steering import LineSteering

NO_CATALOGUE = "Zones or package templates could not be read: nothing is advised, and a network may stand under several codes."
COST_METHOD = (
    "The network cost of a line is that of its days as the charging system totals them, in whole millionths of a euro; networks and kinds "
    "are its single records added up, and what these leave open is `unattributed`. A package brings in of its price the part of its life "
    "that lay in the days. Actions follow from the tariff, the packages and where the lines of each steering list are now."
)


class CostQuery(CamelInput):
    """Which days."""

    start: Annotated[UtcDay, Field(description="First UTC day.")]
    end: Annotated[UtcDay, Field(description="Last; at most 92 days. Days to come are left out.")]
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


EXAMPLE_COST: CostFigures = {"cost": 3.204117, "charged": 0.5, "network_cost": 3.204117, "usage_income": 0.5}
EXAMPLE_NETWORK: NetworkCost = {"country": "NO", "mcc": 242, "mnc": 1, "operator": "Telco A", **EXAMPLE_COST}
FLEET_COSTS_EXAMPLE: Finding[FleetCosts] = example_finding(
    {
        "window": {"start": "2027-01-01", "end": "2027-01-07", "days": 7, "provisional_from": None},
        **EXAMPLE_COST,
        "margin": -2.704117,
        "package_income": 1.05,
        "margin_with_packages": -1.654117,
        "lines_with_cost": 1,
        "pareto": {"percent": 80, "lines": 1, "cost": 3.204117, "network_cost": 3.204117},
        "kinds": {"data": 3.159117, "sms_out": 0.045},
        "countries": [
            {
                "country": "NO",
                **EXAMPLE_COST,
                "share_percent": 100.0,
                "networks": [EXAMPLE_NETWORK],
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
                **EXAMPLE_COST,
                "margin": -2.704117,
                "package_income": 1.05,
                "margin_with_packages": -1.654117,
                "share_percent": 100.0,
                "networks": [EXAMPLE_NETWORK],
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
    network has one code in an answer, the one that most use was seen with. Operators are called as the charging system calls them.
    Use and packages come from the read model, which keeps 90 days. Pages within a minute show one ranking.
    """
    window = DayWindow(params.start, max(params.start, min(params.end, utc_today(ctx.now))))
    if window.first > utc_today(ctx.now):
        raise BadRequest(
            f"start: {window.first} has not come, so nothing has been used then", param="start", hint=f"Today is {utc_today(ctx.now)} (UTC)"
        )
    first = max(window.first, oldest_kept_day(ctx.now))
    view = await view_fleet(ctx, params, DayWindow(first, max(first, window.last)))
    load, further = partial(read_fleet_costs, ctx, view, window), params.starting_after is not None
    costs = await cached_result(ctx, view.upstream, load, *window, further=further)
    numbers = ranking_page(ctx, costs.figures.bill.lines, params.limit, params.starting_after)
    days = {"first": first.toordinal(), "last": window.last.toordinal()}
    stored = await ctx.deps.store.read(used_lines, fleet=view.fleet.state.id, numbers=numbers, **days)
    steering = await read_steering_changes(ctx)  # anew for each page: figures are kept for a minute, and a push must not be advised again
    advised = await anyio.to_thread.run_sync(advise_lines, costs.figures, numbers, stored, steering, ctx.now)
    data = fleet_costs_answer(costs.figures, cost_days(window, costs.at), advised, params.limit)
    return costs.finding(data, COST_METHOD)


def oldest_kept_day(now: float) -> date:
    """The first day whose use is kept at `now`, Unix seconds."""
    return utc_today(now) - timedelta(days=KEPT_USAGE_DAYS - 1)


class CostCatalogue(NamedTuple):
    """What holds for all lines of a fleet, as it was read from the charging system; and sentences on what could not be read."""

    coverage: CoverageMap
    prices: Mapping[int, int]
    """Of one package by template, micro-euros, for packages whose own is not told."""
    adviser: CostAdviser | None
    unread: Sequence[str]


class FleetCostResult(NamedTuple):
    """The bill of a fleet for the days of `window`, and what is needed to say what would lower it."""

    bill: FleetBill
    window: DayWindow
    catalogue: CostCatalogue
    unpriced: int
    """Networks that were used, and have no active rule in the tariff."""
    codes: NetworkCodes
    """By which code each network is named: that which most of the use was seen with."""
    networks: FleetNetworks


async def read_fleet_costs(ctx: Ctx, view: FleetView, window: DayWindow) -> FleetResult[FleetCostResult]:
    """The bill of a fleet, from the read model. Waits for the database, and a few times for the network."""
    fleet, oldest, store = view.fleet.state.id, oldest_kept_day(ctx.now), ctx.deps.store
    first, last = window.first.toordinal(), window.last.toordinal()
    usage = store.read(usage_money, fleet=fleet, first=max(first, oldest.toordinal()), last=last)
    packages = store.read(package_money, fleet=fleet, begin=int(day_start(first)), end=int(day_start(last + 1)))
    catalogue, money = await at_once(read_cost_catalogue(ctx, view), at_once(usage, packages))
    figures = await anyio.to_thread.run_sync(fleet_cost_result, *money, window, catalogue)
    gaps = list(catalogue.unread)
    if window.first < oldest:
        gaps.append(f"Use is kept for {KEPT_USAGE_DAYS} days: what was used before {oldest} is in no figure.")
    if money[1].unread:
        gaps.append(f"The packages of {money[1].unread} lines have not been read: their package income is not known, nor is the fleet's.")
    missing = view.known.progress.unread
    return view.result(ctx, figures, sampled=view.known.lines - missing, missing=missing, others=gaps)


async def read_cost_catalogue(ctx: Ctx, view: FleetView) -> CostCatalogue:
    """Zones, templates, tariffs, steering lists, and where the lines of each list are. Waits for the network."""
    upstream = view.upstream
    try:
        coverage, offers = await read_coverage_map(upstream), await read_offers(upstream)
        facts = await read_steering_facts(ctx, upstream)
    except OcsError:
        return CostCatalogue(CoverageMap(), {}, None, [NO_CATALOGUE])
    seen = await sightings_of_fleet(ctx, view.fleet.state.id, facts.of_accounts, coverage)
    steering = SteeringAdviser(SteeringEvidence(seen, coverage), facts.known, coverage, facts.prices)
    adviser = CostAdviser(coverage, facts, steering, PackageAdviser(offers))
    return CostCatalogue(coverage, offers.costs, adviser, facts.unread)


def fleet_cost_result(usage: UsageMoney, packages: PackageMoney, window: DayWindow, catalogue: CostCatalogue) -> FleetCostResult:
    """The bill that follows from the sums of a fleet. It looks at each line's sum, so it runs in a thread."""
    networks = {(row.mcc, row.mnc): row for row in usage.networks}
    codes = NetworkCodes(catalogue.coverage, most_used_codes(usage.uses))
    others = sum(round(price * share) for price, share in other_package_parts(packages.packages, window, catalogue.prices))
    income = None if packages.unread else packages.income + others
    bill = fleet_bill(usage.lines, usage.uses, networks, codes, income)
    unpriced = 0 if catalogue.adviser is None else count_unpriced(usage.uses, packages.sponsors, catalogue.adviser)
    return FleetCostResult(bill, window, catalogue, unpriced, codes, networks)


def most_used_codes(uses: Sequence[NetworkMoney]) -> Iterator[NetworkCode]:
    """Every network code, the more often the more use was seen with it: so many times as codes were seen no more than it."""
    counted = Counter[NetworkCode]()
    for use in uses:
        if use.mcc:
            counted[use.mcc, use.mnc] += use.uses
    places = {count: place for place, count in enumerate(sorted(set(counted.values())), start=1)}
    return (code for code, count in counted.items() for _ in range(places[count]))


def other_package_parts(packages: Sequence[PackageLife], window: DayWindow, prices: Mapping[int, int]) -> Iterator[tuple[int, Fraction]]:
    """Prices, micro-euros, and the share of each package's life that lay in the days of `window`."""
    begin, end = (int(day_start(day)) for day in (window.first.toordinal(), window.last.toordinal() + 1))
    for package in packages:
        inside = min(package.ends, end) - max(package.starts, begin)
        yield package.price or prices.get(package.template_id, 0), Fraction(max(0, inside), package.ends - package.starts)


def count_unpriced(uses: Sequence[NetworkMoney], sponsors_of_lines: Sequence[int], adviser: CostAdviser) -> int:
    """The networks that were used and have no active rule for SIMs of the fleet; of those that have one for some of them, the ones that
    some use was free of."""
    sponsors = [None if sponsor < 0 else sponsor for sponsor in sponsors_of_lines] or [None]
    buying, free = adviser.facts.prices.buying, dict[int, int]()
    for use in uses:
        network = adviser.coverage.find((use.mcc, use.mnc)) if use.kind == USAGE_TYPE_DATA else None
        if network is not None:
            free[network.id] = free.get(network.id, 0) + use.free
    unpriced = 0
    for network_id, free_uses in free.items():
        known = [buying.rate(network_id, sponsor, "data") is not None for sponsor in sponsors]
        unpriced += not any(known) or (not all(known) and free_uses > 0)
    return unpriced


def advise_lines(
    costs: FleetCostResult, numbers: Sequence[int], stored: Sequence[UsedLine], steering: Mapping[str, LineSteering], now: float
) -> list[tuple[LineBill, LineAdvice]]:
    """The bills of a page, in the order of `numbers`, each with what would lower it at `now`, Unix seconds."""
    found = {used.line.subscriber_id: advised_line(costs, used, steering, now) for used in stored}
    return [found[number] for number in numbers if number in found]


def advised_line(costs: FleetCostResult, used: UsedLine, steering: Mapping[str, LineSteering], now: float) -> tuple[LineBill, LineAdvice]:
    """The bill of a stored line, and what would lower it. A SIM in stock has no packages."""
    line, window = listed_line(used.line), costs.window
    first, last = window.first.toordinal(), window.last.toordinal()
    use = stored_line_use(used.usage, costs.networks, first, last)
    week = stored_line_use(used.usage, costs.networks, max(first, last - WEEK_DAYS + 1), last)
    packages: PackageList | None = {} if is_in_stock(line) else stored_packages(used.packages) if used.line.read > 0 else None
    income = None if packages is None else package_income(packages, window, costs.catalogue.prices)
    bill = line_bill(line, use, costs.codes, income)
    if costs.catalogue.adviser is None:
        return bill, LineAdvice("none", "not_read")
    costed = CostedLine(line, use, week, None if packages is None else data_packages(packages, now))
    return bill, costs.catalogue.adviser.advise(costed, steering, now)


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
