"""Which lines cost most over some days, and where and by what; and the sheet of it.

Every micro-euro stands at a network and at a kind of use, or is said to stand at none. A few networks are named and the rest is one, so
that the figures still add up.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, NamedTuple, NoReturn, Self

import anyio.to_thread
from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from operations.caches.usage import PlaceUse
from operations.deps import Ctx
from operations.intelligence.lines.fleet_lines import (
    FleetLine,
    FleetResult,
    PageCursor,
    RankingLimit,
    cached_result,
    ranking_page,
    read_each_line,
    read_fleet,
)
from operations.intelligence.lines.usage import LATE_RECORD_DAYS, LineUse, read_line_use
from operations.intelligence.reports.sheet import (
    Chart,
    Finding,
    Series,
    Sheet,
    SheetValue,
    Table,
    bar_chart_of,
    example_finding,
    sheet_table,
    stacked_chart,
)
from operations.times import DayWindow, UtcDay, day_window, utc_today
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.usage import UseKind, euros, use_kind
from operations.vocabulary import network_country, upstream_text
from registry.errors import BadRequest, MethodNotAllowed, OcsError
from registry.operation import CamelInput, Example, Input, operation


class UseCost(NamedTuple):
    """Micro-euros: what the networks charge the reseller, and what the line or its account was charged outside packages."""

    reseller: int
    charged: int

    def plus(self, other: "UseCost") -> "UseCost":
        return UseCost(self.reseller + other.reseller, self.charged + other.charged)


NO_COST = UseCost(0, 0)


class BillNetwork(NamedTuple):
    """Where use happened. `country` is upper case, and empty where the codes do not tell."""

    country: str
    mcc: int
    mnc: int
    operator: str


class LineBill(NamedTuple):
    """A line's bill. Networks come dearest first; they and `unattributed` add up to the total, as do kinds and `unattributed`."""

    iccid: str
    account_id: int
    total: UseCost
    networks: tuple[tuple[BillNetwork, UseCost], ...]
    kinds: tuple[tuple[UseKind, UseCost], ...]
    unattributed: UseCost
    """By how much the charging system's own totals of the days differ from its records of them."""


def line_bill(line: FleetLine, use: LineUse) -> LineBill:
    """The cost of `use`, divided over networks and kinds of use."""
    networks: dict[tuple[int, int], tuple[BillNetwork, UseCost]] = {}
    kinds: dict[UseKind, UseCost] = {}
    recorded = NO_COST
    for place in use.places:
        cost = UseCost(place.reseller_cost, place.subscriber_cost)
        recorded = recorded.plus(cost)
        code = place.mcc, place.mnc
        network, former = networks.get(code) or (bill_network(place), NO_COST)
        networks[code] = network, former.plus(cost)
        kind = use_kind(place.usage_type)
        kinds[kind] = kinds.get(kind, NO_COST).plus(cost)
    total = UseCost(use.reseller_cost, use.subscriber_cost)
    unattributed = UseCost(total.reseller - recorded.reseller, total.charged - recorded.charged)
    return LineBill(line.iccid, line.account_id, total, dearest_first(networks.values()), tuple(sorted(kinds.items())), unattributed)


def bill_network(place: PlaceUse) -> BillNetwork:
    """The network of `place`. Its name is text from outside."""
    country = place.iso2 or network_country(f"{place.mcc:03d}", str(place.mnc)) or ""
    return BillNetwork(country, place.mcc, place.mnc, upstream_text(place.operator))


def dearest_first(networks: Iterable[tuple[BillNetwork, UseCost]]) -> tuple[tuple[BillNetwork, UseCost], ...]:
    """Sorted by cost, then by charge, then by network code, so that the order is always the same."""
    return tuple(sorted(networks, key=lambda found: (-found[1].reseller, -found[1].charged, found[0][:3])))


def sum_costs(costs: Iterable[UseCost]) -> UseCost:
    total = NO_COST
    for cost in costs:
        total = total.plus(cost)
    return total


PARETO_PERCENT = 80


class CountryBill(NamedTuple):
    """What use in a country cost. The networks, dearest first, add up to the total."""

    country: str
    total: UseCost
    networks: tuple[tuple[BillNetwork, UseCost], ...]


class FleetBill(NamedTuple):
    """Lines, dearest first. The lines add up to the total; so do countries and `unattributed`, and kinds and `unattributed`."""

    lines: Sequence[LineBill]
    total: UseCost
    countries: Sequence[CountryBill]
    kinds: Sequence[tuple[UseKind, UseCost]]
    unattributed: UseCost
    pareto: int
    """The fewest lines that make 80 % of the cost."""


def fleet_bill(bills: Iterable[LineBill]) -> FleetBill:
    """The sum of `bills`. Lines that cost nothing and were charged nothing are left out of the list."""
    ranked = sorted((bill for bill in bills if has_costs(bill)), key=lambda bill: (-bill.total.reseller, -bill.total.charged, bill.iccid))
    networks: dict[tuple[int, int], tuple[BillNetwork, UseCost]] = {}
    kinds: dict[UseKind, UseCost] = {}
    for bill in ranked:
        for network, cost in bill.networks:
            named, former = networks.get(network[1:3]) or (network, NO_COST)
            networks[network[1:3]] = named, former.plus(cost)
        for kind, cost in bill.kinds:
            kinds[kind] = kinds.get(kind, NO_COST).plus(cost)
    total = sum_costs(bill.total for bill in ranked)
    unattributed = sum_costs(bill.unattributed for bill in ranked)
    costs = [bill.total.reseller for bill in ranked]
    return FleetBill(
        ranked, total, country_bills(networks.values()), sorted(kinds.items()), unattributed, pareto_count(costs, total.reseller)
    )


def has_costs(bill: LineBill) -> bool:
    """Whether `bill` has an amount to pay or to explain."""
    return bill.total != NO_COST or bill.unattributed != NO_COST or any(cost != NO_COST for _, cost in bill.networks)


def country_bills(networks: Iterable[tuple[BillNetwork, UseCost]]) -> Sequence[CountryBill]:
    """Networks grouped by country; countries and networks sorted by cost, highest first."""
    found: dict[str, list[tuple[BillNetwork, UseCost]]] = {}
    for network, cost in networks:
        found.setdefault(network.country, []).append((network, cost))
    made = [CountryBill(country, sum_costs(cost for _, cost in rows), dearest_first(rows)) for country, rows in found.items()]
    return sorted(made, key=lambda bill: (-bill.total.reseller, -bill.total.charged, bill.country))


def pareto_count(costs: Sequence[int], total: int) -> int:
    """The fewest of `costs`, highest first, that make 80 % of `total`; 0 where `total` is 0."""
    reached = 0
    for count, cost in enumerate(costs):
        if reached * 100 >= total * PARETO_PERCENT:
            return count
        reached += cost
    return len(costs)


NETWORKS_SHOWN = 3
"""Networks that a line or a country shows by name."""
Euros = Annotated[float, Field(description="EUR, exact to a millionth")]


class CostFigures(TypedDict):
    """What use cost the reseller, and what was charged for it outside packages."""

    cost: Euros
    charged: Euros


class NetworkCost(CostFigures):
    """What use of a network cost."""

    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2; null: the codes do not tell")]
    mcc: int
    mnc: int
    operator: Annotated[str, Field(description="As the charging system calls it")]


class OtherNetworks(CostFigures):
    """Networks that are not named, together."""

    networks: int


class CountryCost(CostFigures):
    """What use in a country cost. Networks and `rest` add up to it."""

    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2; null: the codes do not tell")]
    share_percent: Annotated[float, Field(description="Of the fleet's cost")]
    networks: Annotated[list[NetworkCost], Field(description="The three dearest")]
    rest: OtherNetworks | None


class OtherCountries(CostFigures):
    """Countries that are not named, together."""

    countries: int


class LineCost(CostFigures):
    """What a line cost. Networks, `rest` and `unattributed` add up to it; so do `kinds` and `unattributed`."""

    iccid: str
    account_id: int
    margin: Annotated[float, Field(description="EUR: charged less cost. What packages were sold for is in neither")]
    share_percent: Annotated[float, Field(description="Of the fleet's cost")]
    networks: Annotated[list[NetworkCost], Field(description="The three dearest")]
    rest: OtherNetworks | None
    kinds: Annotated[dict[UseKind, float], Field(description="Cost by kind of use, EUR")]
    unattributed: Annotated[
        CostFigures | None, Field(description="The charging system's totals less its records, where they differ; null: they agree")
    ]


def cost_figures(cost: UseCost) -> CostFigures:
    return {"cost": euros(cost.reseller), "charged": euros(cost.charged)}


def unattributed_figures(cost: UseCost) -> CostFigures | None:
    """The part of the cost that no usage record explains; None where the records explain all."""
    return None if cost == NO_COST else cost_figures(cost)


def cost_percent(part: int, whole: int) -> float:
    """`part` of `whole` in percent, with one decimal; 0 where `whole` is 0."""
    return round(100 * part / whole, 1) if whole > 0 else 0.0


def network_costs(networks: Sequence[tuple[BillNetwork, UseCost]]) -> list[NetworkCost]:
    named = networks[:NETWORKS_SHOWN]
    return [
        {"country": one.country or None, "mcc": one.mcc, "mnc": one.mnc, "operator": one.operator, **cost_figures(cost)}
        for one, cost in named
    ]


def other_networks(networks: Sequence[tuple[BillNetwork, UseCost]]) -> OtherNetworks | None:
    rest = networks[NETWORKS_SHOWN:]
    return {"networks": len(rest), **cost_figures(sum_costs(cost for _, cost in rest))} if rest else None


def line_cost(bill: LineBill, fleet: UseCost) -> LineCost:
    return {
        "iccid": bill.iccid,
        "account_id": bill.account_id,
        **cost_figures(bill.total),
        "margin": euros(bill.total.charged - bill.total.reseller),
        "share_percent": cost_percent(bill.total.reseller, fleet.reseller),
        "networks": network_costs(bill.networks),
        "rest": other_networks(bill.networks),
        "kinds": kind_costs(bill.kinds),
        "unattributed": unattributed_figures(bill.unattributed),
    }


def kind_costs(kinds: Sequence[tuple[UseKind, UseCost]]) -> dict[UseKind, float]:
    return {kind: euros(cost.reseller) for kind, cost in kinds if cost.reseller}


def country_cost(bill: CountryBill, fleet: UseCost) -> CountryCost:
    return {
        "country": bill.country or None,
        **cost_figures(bill.total),
        "share_percent": cost_percent(bill.total.reseller, fleet.reseller),
        "networks": network_costs(bill.networks),
        "rest": other_networks(bill.networks),
    }


def other_countries(bills: Sequence[CountryBill]) -> OtherCountries | None:
    return {"countries": len(bills), **cost_figures(sum_costs(bill.total for bill in bills))} if bills else None


COST_METHOD = (
    "The cost of a line is that of its days as the charging system totals them, in whole millionths of a euro; networks and kinds are its "
    "single records added up, and what these leave open is `unattributed`."
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
    kinds: Annotated[dict[UseKind, Euros], Field(description="Cost by kind of use, EUR")]
    countries: Annotated[list[CountryCost], Field(description="Dearest first, at most `limit`")]
    other_countries: OtherCountries | None
    unattributed: Annotated[
        CostFigures | None, Field(description="The charging system's totals less its records, where they differ; null: they agree")
    ]
    lines: Annotated[list[LineCost], Field(description="Dearest first; a page of them")]


FLEET_COSTS_EXAMPLE: Finding[FleetCosts] = example_finding(
    {
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
    window = DayWindow(params.start, params.end)
    if window.first > utc_today(ctx.now):
        raise BadRequest(
            f"start: {window.first} has not come, so nothing has been used then", param="start", hint=f"Today is {utc_today(ctx.now)} (UTC)"
        )
    upstream = await connect_upstream(ctx)
    load, further = partial(read_fleet_costs, ctx, upstream, window), params.starting_after is not None
    costs = await cached_result(ctx, upstream, load, *window, further=further)
    page = ranking_page(ctx, costs.figures.lines, params.limit, params.starting_after)
    return costs.finding(fleet_costs_answer(costs.figures, cost_days(window, costs.at), page, params.limit), COST_METHOD)


async def read_fleet_costs(ctx: Ctx, upstream: Upstream, window: DayWindow) -> FleetResult[FleetBill]:
    """The bills of all lines. Waits for the network."""
    fleet = await read_fleet(upstream)

    async def read(line: FleetLine) -> LineBill:
        return line_bill(line, await read_line_use(ctx, upstream, line, window))

    reading = await read_each_line(ctx, fleet.lines, read)
    return reading.result(ctx, await anyio.to_thread.run_sync(fleet_bill, list(reading.found.values())), fleet)


def fleet_costs_answer(bill: FleetBill, days: CostDays, page: list[LineBill], most: int) -> FleetCosts:
    few = sum_costs(line.total for line in bill.lines[: bill.pareto])
    return {
        "window": days,
        **cost_figures(bill.total),
        "margin": euros(bill.total.charged - bill.total.reseller),
        "lines_with_cost": len(bill.lines),
        "pareto": {"percent": PARETO_PERCENT, "lines": bill.pareto, "cost": euros(few.reseller)},
        "kinds": kind_costs(bill.kinds),
        "countries": [country_cost(country, bill.total) for country in bill.countries[:most]],
        "other_countries": other_countries(bill.countries[most:]),
        "unattributed": unattributed_figures(bill.unattributed),
        "lines": [line_cost(line, bill.total) for line in page],
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
        "headline": f"{few['lines']} of {found['of']} lines make {few['percent']} % of what use cost: EUR {data['cost']:.2f}.",
        "figures": [
            {"label": "Cost", "kind": "money", "value": data["cost"]},
            {"label": "Charged outside packages", "kind": "money", "value": data["charged"]},
            {"label": "Margin without packages", "kind": "money", "value": data["margin"]},
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
    return stacked_chart("Cost by country, stacked by network", places, filled, kind="money", places_kind="country")


def network_place_costs(row: CountryCost) -> list[float | None]:
    """A cost for each of NETWORK_PLACE_LABELS."""
    named = [network["cost"] for network in row["networks"]]
    return [*named, *[None] * (NETWORKS_SHOWN - len(named)), None if row["rest"] is None else row["rest"]["cost"]]


def cost_kind_chart(kinds: Mapping[UseKind, float]) -> Chart:
    ordered = sorted(kinds, key=lambda kind: -kinds[kind])
    return bar_chart_of("Cost by kind of use", "Cost", {USE_KIND_LABELS[kind]: kinds[kind] for kind in ordered}, kind="money")


def cost_lines_table(rows: Sequence[LineCost], of: int) -> Table:
    return sheet_table(
        "Dearest lines",
        {
            "Line": "line",
            "Cost": "money",
            "Share": "percent",
            "Charged": "money",
            "Margin": "money",
            "Country": "country",
            "Network": "network",
        },
        [cost_line_row(row) for row in rows],
        f"{len(rows)} of {of} lines with cost; country and network are the dearest of each" if rows else None,
    )


def cost_line_row(row: LineCost) -> list[SheetValue]:
    first = row["networks"][0] if row["networks"] else None
    country, network = (None, None) if first is None else (first["country"], cost_network_code(first))
    return [row["iccid"], row["cost"], row["share_percent"], row["charged"], row["margin"], country, network]


def cost_countries_table(rows: Sequence[CountryCost]) -> Table:
    return sheet_table(
        "Countries",
        {"Country": "country", "Cost": "money", "Share": "percent", "Charged": "money", "Dearest network": "network"},
        [[row["country"], row["cost"], row["share_percent"], row["charged"], cost_network_code(row["networks"][0])] for row in rows],
    )


def cost_network_code(network: NetworkCost) -> str:
    return f"{network['mcc']:03d}-{network['mnc']:02d}"
