"""What a line cost over some days, and where: every micro-euro stands at a network and at a kind of use, or is said to stand at none."""

from collections.abc import Iterable
from typing import NamedTuple

from operations.intelligence.fleet.reading import FleetLine
from operations.intelligence.lines.use_kinds import Kind, kind_of
from operations.intelligence.upstream_text import plain
from operations.services.network.mobile_countries import country_of
from operations.services.network.usage_weeks import LineUse, PlaceUse


class Cost(NamedTuple):
    """Micro-euros: what the networks charge the reseller, and what the line or its account was charged outside packages."""

    reseller: int
    charged: int

    def plus(self, other: "Cost") -> "Cost":
        """Both together."""
        return Cost(self.reseller + other.reseller, self.charged + other.charged)

    def minus(self, other: "Cost") -> "Cost":
        """What is left."""
        return Cost(self.reseller - other.reseller, self.charged - other.charged)


NOTHING = Cost(0, 0)


class Network(NamedTuple):
    """Where use happened. `country` is upper case, and empty where the codes do not tell."""

    country: str
    mcc: int
    mnc: int
    operator: str


class Bill(NamedTuple):
    """A line's bill. Networks come dearest first; they and `unattributed` add up to the total, as do kinds and `unattributed`."""

    iccid: str
    account_id: int
    total: Cost
    networks: tuple[tuple[Network, Cost], ...]
    kinds: tuple[tuple[Kind, Cost], ...]
    unattributed: Cost
    """By how much the charging system's own totals of the days differ from its records of them."""


def bill_of(line: FleetLine, use: LineUse) -> Bill:
    """The bill of what a line used."""
    networks: dict[tuple[int, int], tuple[Network, Cost]] = {}
    kinds: dict[Kind, Cost] = {}
    told = NOTHING
    for place in use.places:
        cost = Cost(place.reseller_cost, place.subscriber_cost)
        told = told.plus(cost)
        code = place.mcc, place.mnc
        network, former = networks.get(code) or (network_of(place), NOTHING)
        networks[code] = network, former.plus(cost)
        kind = kind_of(place.usage_type)
        kinds[kind] = kinds.get(kind, NOTHING).plus(cost)
    total = Cost(use.reseller_cost, use.subscriber_cost)
    return Bill(line.iccid, line.account_id, total, dearest_first(networks.values()), tuple(sorted(kinds.items())), total.minus(told))


def network_of(place: PlaceUse) -> Network:
    """The network of a record; its name is somebody else's text."""
    country = place.iso2 or country_of(f"{place.mcc:03d}", str(place.mnc)) or ""
    return Network(country, place.mcc, place.mnc, plain(place.operator))


def dearest_first(networks: Iterable[tuple[Network, Cost]]) -> tuple[tuple[Network, Cost], ...]:
    """By cost, then by what was charged, then by code: always the same order."""
    return tuple(sorted(networks, key=lambda found: (-found[1].reseller, -found[1].charged, found[0][:3])))


def summed(costs: Iterable[Cost]) -> Cost:
    """All together."""
    total = NOTHING
    for cost in costs:
        total = total.plus(cost)
    return total
