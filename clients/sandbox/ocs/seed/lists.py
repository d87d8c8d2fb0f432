"""Steering lists and destination lists."""

from collections.abc import Iterable, Mapping

from clients.sandbox.ocs.places import DestinationList, Network, SteeringList
from clients.sandbox.ocs.seed.regions import DACH, EUROPE, NORDICS, WORLD
from clients.sandbox.ocs.seed.sponsors import ALPINE, FJORD

EUROPE_PREFIXES = ("46", "45", "358", "354", "44", "49", "33", "31", "32", "34", "39", "48")
HOME, EUROPE_CALLS, ALPINE_CALLS = 64, 65, 67


def steering_lists(networks: Mapping[int, Network]) -> dict[int, SteeringList]:
    """Every steering list by its id; Alpine has none, so its list is null on the wire."""
    made = (
        SteeringList(17, "Nordic first", FJORD, preferred(networks, NORDICS, 0)),
        SteeringList(18, "Cheapest in Europe", FJORD, preferred(networks, EUROPE, -1)),
        SteeringList(19, "Best coverage worldwide", FJORD, preferred(networks, WORLD, 0)),
        SteeringList(20, "DACH partners", FJORD, preferred(networks, DACH, 1)),
    )
    return {steering.id: steering for steering in made}


def preferred(networks: Mapping[int, Network], countries: Iterable[str], place: int) -> tuple[int, ...]:
    """One network of each country, by its place in the country."""
    found = ([network.network_id for network in networks.values() if network.iso2 == iso2] for iso2 in countries)
    return tuple(ids[place] for ids in found)


def destination_lists() -> dict[int, DestinationList]:
    """Every destination list by its id; one is empty, so its prefixes are absent on the wire."""
    made = (
        DestinationList(HOME, "Home", FJORD, ("47",)),
        DestinationList(EUROPE_CALLS, "Europe fixed and mobile", FJORD, EUROPE_PREFIXES),
        DestinationList(66, "Reserved", FJORD, ()),
        DestinationList(ALPINE_CALLS, "DACH", ALPINE, ("41", "49", "43", "423")),
    )
    return {one.id: one for one in made}
