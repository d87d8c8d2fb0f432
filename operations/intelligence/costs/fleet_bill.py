"""The bill of a fleet: its lines' bills, dearest first, and where their costs come from all together."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from operations.intelligence.costs.line_bill import NOTHING, Bill, Cost, Network, dearest_first, summed
from operations.intelligence.lines.use_kinds import Kind

PARETO_PERCENT = 80


class CountryBill(NamedTuple):
    """What use in a country cost. The networks, dearest first, add up to the total."""

    country: str
    total: Cost
    networks: tuple[tuple[Network, Cost], ...]


class FleetBill(NamedTuple):
    """Lines, dearest first. The lines add up to the total; so do countries and `unattributed`, and kinds and `unattributed`."""

    lines: Sequence[Bill]
    total: Cost
    countries: Sequence[CountryBill]
    kinds: Sequence[tuple[Kind, Cost]]
    unattributed: Cost
    pareto: int
    """The fewest lines that make 80 % of the cost."""


def fleet_bill(bills: Iterable[Bill]) -> FleetBill:
    """All bills together. Lines that cost nothing and were charged nothing are left out of the list."""
    ranked = sorted((bill for bill in bills if anything(bill)), key=lambda bill: (-bill.total.reseller, -bill.total.charged, bill.iccid))
    networks: dict[tuple[int, int], tuple[Network, Cost]] = {}
    kinds: dict[Kind, Cost] = {}
    for bill in ranked:
        for network, cost in bill.networks:
            named, former = networks.get(network[1:3]) or (network, NOTHING)
            networks[network[1:3]] = named, former.plus(cost)
        for kind, cost in bill.kinds:
            kinds[kind] = kinds.get(kind, NOTHING).plus(cost)
    total = summed(bill.total for bill in ranked)
    unattributed = summed(bill.unattributed for bill in ranked)
    costs = [bill.total.reseller for bill in ranked]
    return FleetBill(ranked, total, by_country(networks.values()), sorted(kinds.items()), unattributed, pareto(costs, total.reseller))


def anything(bill: Bill) -> bool:
    """Whether there is anything to pay, or to explain."""
    return bill.total != NOTHING or bill.unattributed != NOTHING or any(cost != NOTHING for _, cost in bill.networks)


def by_country(networks: Iterable[tuple[Network, Cost]]) -> Sequence[CountryBill]:
    """Networks under their countries, both dearest first."""
    found: dict[str, list[tuple[Network, Cost]]] = {}
    for network, cost in networks:
        found.setdefault(network.country, []).append((network, cost))
    made = [CountryBill(country, summed(cost for _, cost in rows), dearest_first(rows)) for country, rows in found.items()]
    return sorted(made, key=lambda bill: (-bill.total.reseller, -bill.total.charged, bill.country))


def pareto(costs: Sequence[int], total: int) -> int:
    """How many of the dearest make 80 % of the total; none where nothing was paid."""
    reached = 0
    for count, cost in enumerate(costs):
        if reached * 100 >= total * PARETO_PERCENT:
            return count
        reached += cost
    return len(costs)
