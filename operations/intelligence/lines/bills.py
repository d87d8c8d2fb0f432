"""What lines and fleets cost over some days, and where, with the figures that answers show of it.

Every micro-euro stands at a network and at a kind of use, or is said to stand at none. A few networks are named and the rest is one, so
that the figures still add up.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.caches.usage import LineUse, PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import UseKind, euros, use_kind
from operations.intelligence.reports.sheet import upstream_text
from operations.vocabulary import network_country


class UseCost(NamedTuple):
    """Micro-euros: what the networks charge the reseller, and what the line or its account was charged outside packages."""

    reseller: int
    charged: int

    def plus(self, other: "UseCost") -> "UseCost":
        return UseCost(self.reseller + other.reseller, self.charged + other.charged)

    def minus(self, other: "UseCost") -> "UseCost":
        return UseCost(self.reseller - other.reseller, self.charged - other.charged)


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
    return LineBill(
        line.iccid, line.account_id, total, dearest_first(networks.values()), tuple(sorted(kinds.items())), total.minus(recorded)
    )


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


def cost_margin(cost: UseCost) -> float:
    return euros(cost.charged - cost.reseller)


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
        "margin": cost_margin(bill.total),
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
