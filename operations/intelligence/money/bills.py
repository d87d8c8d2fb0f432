"""Bills of lines, countries and a fleet: what the operator pays the networks, and what customers pay the operator. Whole micro-euros.

Every micro-euro of use stands at a network and at a kind of use, or is said to stand at none, so that all parts add up. What packages
bring in belongs to the line, since a package is no network's.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from operations.caches.usage import PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.offers.coverage_map import NetworkCodes
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import UseKind, use_kind
from operations.vocabulary import network_country, upstream_text
from storage.fleet_costs import LineMoney, NetworkMoney
from storage.fleet_usage import FleetNetworkRow

PARETO_PERCENT = 80


class UseMoney(NamedTuple):
    """Of use: what the networks charge the operator, and what the line or its account was charged outside packages. Micro-euros."""

    network_cost: int
    usage_income: int

    def plus(self, other: "UseMoney") -> "UseMoney":
        return UseMoney(self.network_cost + other.network_cost, self.usage_income + other.usage_income)


NO_MONEY = UseMoney(0, 0)


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
    total: UseMoney
    networks: tuple[tuple[BillNetwork, UseMoney], ...]
    kinds: tuple[tuple[UseKind, UseMoney], ...]
    unattributed: UseMoney
    """By how much the charging system's own totals of the days differ from its records of them."""
    package_income: int | None
    """Micro-euros; None: its packages could not be read."""

    @property
    def margin(self) -> int | None:
        """What the line brings in, of packages and of use, less what it costs; micro-euros."""
        return None if self.package_income is None else self.package_income + self.total.usage_income - self.total.network_cost


def line_bill(line: FleetLine, use: LineUse, codes: NetworkCodes, package_income: int | None) -> LineBill:
    """The money of `use`, divided over networks and kinds of use. `codes` says by which code a network is named."""
    networks: dict[NetworkCode, tuple[BillNetwork, UseMoney]] = {}
    kinds: dict[UseKind, UseMoney] = {}
    recorded = NO_MONEY
    for place in use.places:
        cost = UseMoney(place.reseller_cost, place.subscriber_cost)
        recorded = recorded.plus(cost)
        code = codes.shown((place.mcc, place.mnc))
        network, former = networks.get(code) or (bill_network(place, code), NO_MONEY)
        networks[code] = network, former.plus(cost)
        kind = use_kind(place.usage_type)
        kinds[kind] = kinds.get(kind, NO_MONEY).plus(cost)
    total = UseMoney(use.reseller_cost, use.subscriber_cost)
    unattributed = UseMoney(total.network_cost - recorded.network_cost, total.usage_income - recorded.usage_income)
    ordered = dearest_first(networks.values())
    return LineBill(line.iccid, line.account_id, total, ordered, tuple(sorted(kinds.items())), unattributed, package_income)


def bill_network(place: PlaceUse, code: NetworkCode) -> BillNetwork:
    """The network of `place`, named by `code`. Its name is text from outside."""
    country = place.iso2 or network_country(f"{place.mcc:03d}", str(place.mnc)) or ""
    return BillNetwork(country, *code, upstream_text(place.operator))


def dearest_first(networks: Iterable[tuple[BillNetwork, UseMoney]]) -> tuple[tuple[BillNetwork, UseMoney], ...]:
    """Sorted by network cost, then by usage income, then by network code, so that the order is always the same."""
    return tuple(sorted(networks, key=lambda found: (-found[1].network_cost, -found[1].usage_income, found[0][:3])))


def sum_money(costs: Iterable[UseMoney]) -> UseMoney:
    total = NO_MONEY
    for cost in costs:
        total = total.plus(cost)
    return total


class CountryBill(NamedTuple):
    """What use in a country cost. The networks, dearest first, add up to the total."""

    country: str
    total: UseMoney
    networks: tuple[tuple[BillNetwork, UseMoney], ...]


class FleetBill(NamedTuple):
    """Lines, dearest first. The lines add up to the total; so do countries and `unattributed`, and kinds and `unattributed`."""

    lines: Sequence[int]
    """Subscriber ids of those that cost or brought in something."""
    total: UseMoney
    countries: Sequence[CountryBill]
    kinds: Sequence[tuple[UseKind, UseMoney]]
    unattributed: UseMoney
    pareto: int
    """The fewest lines that make 80 % of the network cost."""
    pareto_cost: int
    """Theirs together, micro-euros."""
    package_income: int | None
    """Of all lines, those that cost nothing as well; micro-euros. None: the packages of some lines have not been read."""

    @property
    def margin(self) -> int | None:
        return None if self.package_income is None else self.package_income + self.total.usage_income - self.total.network_cost


def fleet_bill(
    lines: Sequence[LineMoney],
    uses: Iterable[NetworkMoney],
    networks: Mapping[NetworkCode, FleetNetworkRow],
    codes: NetworkCodes,
    package_income: int | None,
) -> FleetBill:
    """The bill of `lines`, dearest first, whose use is divided over networks and kinds in `uses`. What this leaves open is unattributed."""
    places: dict[NetworkCode, UseMoney] = {}
    kinds: dict[UseKind, UseMoney] = {}
    for use in uses:
        if not use.mcc:  # the charging system's totals beyond its records
            continue
        cost, code, kind = UseMoney(use.network_cost, use.usage_income), codes.shown((use.mcc, use.mnc)), use_kind(use.kind)
        places[code] = places.get(code, NO_MONEY).plus(cost)
        kinds[kind] = kinds.get(kind, NO_MONEY).plus(cost)
    total, recorded = (
        UseMoney(sum(line.network_cost for line in lines), sum(line.usage_income for line in lines)),
        sum_money(places.values()),
    )
    unattributed = UseMoney(total.network_cost - recorded.network_cost, total.usage_income - recorded.usage_income)
    countries = country_bills((named_network(code, networks), cost) for code, cost in places.items())
    pareto = pareto_count([line.network_cost for line in lines], total.network_cost)
    return FleetBill(
        array("q", (line.subscriber_id for line in lines)),
        total,
        countries,
        sorted(kinds.items()),
        unattributed,
        pareto,
        sum(line.network_cost for line in lines[:pareto]),
        package_income,
    )


def named_network(code: NetworkCode, networks: Mapping[NetworkCode, FleetNetworkRow]) -> BillNetwork:
    """The network of `code`, as records told its country and its operator."""
    told = networks.get(code)
    country = "" if told is None else told.country
    operator = "" if told is None else upstream_text(told.operator)
    return BillNetwork(country or network_country(f"{code[0]:03d}", str(code[1])) or "", *code, operator)


def country_bills(networks: Iterable[tuple[BillNetwork, UseMoney]]) -> Sequence[CountryBill]:
    """Networks grouped by country; countries and networks sorted by network cost, highest first."""
    found: dict[str, list[tuple[BillNetwork, UseMoney]]] = {}
    for network, cost in networks:
        found.setdefault(network.country, []).append((network, cost))
    made = [CountryBill(country, sum_money(cost for _, cost in rows), dearest_first(rows)) for country, rows in found.items()]
    return sorted(made, key=lambda bill: (-bill.total.network_cost, -bill.total.usage_income, bill.country))


def pareto_count(costs: Sequence[int], total: int) -> int:
    """The fewest of `costs`, highest first, that make 80 % of `total`; 0 where `total` is 0."""
    reached = 0
    for count, cost in enumerate(costs):
        if reached * 100 >= total * PARETO_PERCENT:
            return count
        reached += cost
    return len(costs)
