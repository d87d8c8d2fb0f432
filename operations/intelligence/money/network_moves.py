"""What a line's use would have cost on other networks, for the operator and for the customer: tariff and coverage included."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from operations.caches.usage import PlaceUse
from operations.intelligence.money.advice import AdviceReason, Saving
from operations.intelligence.money.network_rates import VOIP_USAGE_TYPES, NetworkRates
from operations.intelligence.offers.coverage_map import CoverageMap, KnownNetwork
from operations.upstream.usage import USAGE_TYPE_DATA

RATE_TOLERANCE_PERCENT, RATE_TOLERANCE_MICRO = 1, 1_000
"""By how much what a customer was charged may differ from a tariff that is taken for theirs: every record is rounded by itself."""
NetworkOfCountry = Callable[[str], int | None]


class MovedLine(NamedTuple):
    """What is known of a line that could be on another network: its use, and what its packages still hold."""

    sponsor: int | None
    places: tuple[PlaceUse, ...]
    room: Mapping[int, int]
    """Bytes left in packages that data can be taken from now, by zone."""


class NetworkPrices(NamedTuple):
    """What the operator pays networks, and what customers pay the operator outside packages; None: not known."""

    buying: NetworkRates
    selling: NetworkRates | None


def move_saving(
    line: MovedLine, country: str, network_id: int, elsewhere: NetworkOfCountry | None, coverage: CoverageMap, prices: NetworkPrices
) -> Saving | AdviceReason:
    """What the same use would have cost less, had the line been on `network_id` in `country`, and in other countries where `elsewhere`
    says; None: there it stays as it was. The reason where that cannot be told.

    Choice: what it did cost is the lower one of what was recorded and of what today's tariff says, so that nothing is saved by a tariff
    that has changed.
    """
    selling = own_selling_rates(line, coverage, prices.selling)
    room, operator, customer = dict(line.room), 0, 0
    for place in line.places:
        where, present = coverage.country((place.mcc, place.mnc)), coverage.find((place.mcc, place.mnc))
        if place.usage_type in VOIP_USAGE_TYPES or (elsewhere is None and where != country):
            continue
        target = network_id if where == country else elsewhere(where) if elsewhere is not None and where is not None else None
        if target is None:
            return "no_list_known"
        if present is not None and present.id == target:
            continue
        paid = saving_of_place(line, place, present, target, prices.buying)
        charged = charged_there(line, place, coverage.network(target), room, coverage, selling)
        if paid is None or charged is None:
            return "price_not_known"
        operator, customer = operator + paid, customer + place.subscriber_cost - charged
    return Saving(operator, customer)


def saving_of_place(line: MovedLine, place: PlaceUse, present: KnownNetwork | None, target: int, buying: NetworkRates) -> int | None:
    """What the operator would have paid less, micro-euros. A network without an active rule costs nobody knows what, never nothing."""
    if present is None or place.quantity < 0:
        return None
    now = buying.amount(present.id, line.sponsor, place.usage_type, place.quantity)
    then = buying.amount(target, line.sponsor, place.usage_type, place.quantity)
    return None if now is None or then is None else min(now, place.reseller_cost) - then


def charged_there(
    line: MovedLine,
    place: PlaceUse,
    target: KnownNetwork | None,
    room: dict[int, int],
    coverage: CoverageMap,
    selling: NetworkRates | None,
) -> int | None:
    """What the customer would have been charged on `target`, micro-euros; None: not known. Takes data from the packages' `room`.

    Where the packages work, they pay what they paid, and of data what they still hold; elsewhere they pay nothing.
    """
    if target is None:
        return None
    zones = [zone for zone in room if target.id in coverage.held_by(zone)]
    rest = place.quantity - (min(place.quantity, place.in_package) if zones else 0)
    if place.usage_type == USAGE_TYPE_DATA:
        for zone in zones:
            taken = min(rest, room[zone])
            room[zone] -= taken
            rest -= taken
    if rest <= 0:
        return 0
    return None if selling is None else selling.amount(target.id, line.sponsor, place.usage_type, rest)


def own_selling_rates(line: MovedLine, coverage: CoverageMap, selling: NetworkRates | None) -> NetworkRates | None:
    """`selling`, if what the line was charged outside packages is just what these rates say; None: it may have a plan of its own."""
    if selling is None:
        return None
    met = False
    for place in line.places:
        outside, network = place.quantity - place.in_package, coverage.find((place.mcc, place.mnc))
        if outside <= 0 or place.usage_type in VOIP_USAGE_TYPES:
            continue
        told = None if network is None else selling.amount(network.id, line.sponsor, place.usage_type, outside)
        if told is None or abs(told - place.subscriber_cost) * 100 > RATE_TOLERANCE_PERCENT * told + 100 * RATE_TOLERANCE_MICRO:
            return None
        met = True
    return selling if met else None
