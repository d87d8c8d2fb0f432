"""Bills of lines, countries and a fleet: what the operator pays the networks, and what customers pay the operator. Whole micro-euros.

Every micro-euro of use stands at a network and at a kind of use, or is said to stand at none, so that all parts add up. What packages
bring in belongs to the line, since a package is no network's.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from operations.caches.usage import PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.offers.coverage_map import NetworkCodes
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import UseKind, use_kind
from operations.vocabulary import network_country, upstream_text

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

    lines: Sequence[LineBill]
    total: UseMoney
    countries: Sequence[CountryBill]
    kinds: Sequence[tuple[UseKind, UseMoney]]
    unattributed: UseMoney
    pareto: int
    """The fewest lines that make 80 % of the network cost."""
    package_income: int | None
    """Of all lines, those that cost nothing as well; micro-euros. None: the packages of some lines could not be read."""

    @property
    def margin(self) -> int | None:
        return None if self.package_income is None else self.package_income + self.total.usage_income - self.total.network_cost


def fleet_bill(bills: Iterable[LineBill]) -> FleetBill:
    """The sum of `bills`. Lines that cost nothing and were charged nothing are left out of the list."""
    given = list(bills)
    ranked = sorted(
        (bill for bill in given if has_costs(bill)), key=lambda bill: (-bill.total.network_cost, -bill.total.usage_income, bill.iccid)
    )
    networks: dict[NetworkCode, tuple[BillNetwork, UseMoney]] = {}
    kinds: dict[UseKind, UseMoney] = {}
    for bill in ranked:
        for network, cost in bill.networks:
            named, former = networks.get(network[1:3]) or (network, NO_MONEY)
            networks[network[1:3]] = named, former.plus(cost)
        for kind, cost in bill.kinds:
            kinds[kind] = kinds.get(kind, NO_MONEY).plus(cost)
    total = sum_money(bill.total for bill in ranked)
    unattributed = sum_money(bill.unattributed for bill in ranked)
    pareto = pareto_count([bill.total.network_cost for bill in ranked], total.network_cost)
    countries = country_bills(networks.values())
    return FleetBill(ranked, total, countries, sorted(kinds.items()), unattributed, pareto, sum_package_income(given))


def sum_package_income(bills: Iterable[LineBill]) -> int | None:
    """None where that of one line is not known, since a part of a sum would be a wrong sum."""
    total = 0
    for bill in bills:
        if bill.package_income is None:
            return None
        total += bill.package_income
    return total


def has_costs(bill: LineBill) -> bool:
    """Whether `bill` has an amount to pay or to explain."""
    return bill.total != NO_MONEY or bill.unattributed != NO_MONEY or any(cost != NO_MONEY for _, cost in bill.networks)


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
