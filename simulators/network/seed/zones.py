"""Where packages work: zones as the countries of one network profile, steering lists and destination lists."""

from collections.abc import Iterable, Mapping

from simulators.network.catalogue import DestinationList, Network, NetworkProfile, SteeringList, Zone
from simulators.network.seed.geography import (
    ALPS,
    AMERICAS,
    ASIA_PACIFIC,
    BALTICS,
    BENELUX,
    DACH,
    EUROPE,
    EUROPEAN_UNION,
    IBERIA,
    MIDDLE_EAST_AND_AFRICA,
    NORDICS,
    NORTH_AMERICA,
    WHOLE_WORLD,
    network_ids_in,
)
from simulators.network.seed.resellers import ALPINE, ALPINE_LUMEN, ALPINE_SPX, FJORD, FJORD_EUROPE, FJORD_MERIDIAN, FJORD_SPX

FIRST_ZONE_ID = 2301

MALFORMED_ZONE = "Iberia"

# Name, profile, countries; the name is unique within the reseller, and so is the set of networks (ocs.md 3.8).
ZONE_TABLE: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("Nordics", FJORD_SPX, NORDICS),
    ("European Union", FJORD_SPX, EUROPEAN_UNION),
    ("Europe", FJORD_SPX, EUROPE),
    ("World", FJORD_SPX, WHOLE_WORLD),
    ("Americas", FJORD_SPX, AMERICAS),
    ("North America", FJORD_SPX, NORTH_AMERICA),
    ("Asia-Pacific", FJORD_SPX, ASIA_PACIFIC),
    ("Africa & Middle East", FJORD_SPX, MIDDLE_EAST_AND_AFRICA),
    ("Baltics", FJORD_SPX, BALTICS),
    ("Benelux", FJORD_SPX, BENELUX),
    (MALFORMED_ZONE, FJORD_SPX, IBERIA),
    ("Norway", FJORD_SPX, ("no",)),
    ("United States", FJORD_SPX, ("us",)),
    ("Japan", FJORD_SPX, ("jp",)),
    ("Türkiye", FJORD_SPX, ("tr",)),
    ("M2M World", FJORD_MERIDIAN, WHOLE_WORLD),
    ("M2M Europe", FJORD_MERIDIAN, EUROPE),
    ("M2M Nordics", FJORD_MERIDIAN, NORDICS),
    ("DACH lite", FJORD_EUROPE, DACH),
    ("World", ALPINE_SPX, WHOLE_WORLD),
    ("Europe", ALPINE_SPX, EUROPE),
    ("DACH", ALPINE_SPX, DACH),
    ("Switzerland", ALPINE_SPX, ("ch",)),
    ("Alps", ALPINE_LUMEN, ALPS),
    ("Europe lite", ALPINE_LUMEN, EUROPE),
    ("Asia-Pacific", ALPINE_LUMEN, ASIA_PACIFIC),
)


def make_zones(networks: Mapping[int, Network], profiles: Mapping[int, NetworkProfile]) -> dict[int, Zone]:
    """Every zone by its id."""
    made = (
        make_zone(number, name, profiles[profile], network_ids_in(networks.values(), places))
        for number, (name, profile, places) in enumerate(ZONE_TABLE, start=FIRST_ZONE_ID)
    )
    return {one.id: one for one in made}


def make_zone(number: int, name: str, profile: NetworkProfile, wanted: frozenset[int]) -> Zone:
    """What the profile allows of the wanted networks."""
    allowed = tuple(sorted(wanted & profile.network_ids))
    return Zone(number, name, profile.reseller_id, profile.id, allowed, malformed=name == MALFORMED_ZONE)


def zone_countries(zone: Zone, networks: Mapping[int, Network]) -> frozenset[str]:
    """Where a zone works."""
    return frozenset(networks[network_id].iso2 for network_id in zone.network_ids)


def zone_ids_by_name(zones: Iterable[Zone]) -> dict[tuple[int, str], int]:
    """Zone ids by reseller and name."""
    return {(zone.reseller_id, zone.name): zone.id for zone in zones}


EUROPE_PREFIXES = ("46", "45", "358", "354", "44", "49", "33", "31", "32", "34", "39", "48")

HOME_CALLS, EUROPE_CALLS, ALPINE_CALLS = 64, 65, 67


def make_steering_lists(networks: Mapping[int, Network]) -> dict[int, SteeringList]:
    """Every steering list by its id; Alpine has none, so its list is null on the wire."""
    made = (
        SteeringList(17, "Nordic first", FJORD, preferred_networks(networks, NORDICS, 0)),
        SteeringList(18, "Cheapest in Europe", FJORD, preferred_networks(networks, EUROPE, -1)),
        SteeringList(19, "Best coverage worldwide", FJORD, preferred_networks(networks, WHOLE_WORLD, 0)),
        SteeringList(20, "DACH partners", FJORD, preferred_networks(networks, DACH, 1)),
    )
    return {steering.id: steering for steering in made}


def preferred_networks(networks: Mapping[int, Network], countries: Iterable[str], place: int) -> tuple[int, ...]:
    """One network of each country, by its place in the country."""
    found = ([network.network_id for network in networks.values() if network.iso2 == iso2] for iso2 in countries)
    return tuple(ids[place] for ids in found)


def make_destination_lists() -> dict[int, DestinationList]:
    """Every destination list by its id; one is empty, so its prefixes are absent on the wire."""
    made = (
        DestinationList(HOME_CALLS, "Home", FJORD, ("47",)),
        DestinationList(EUROPE_CALLS, "Europe fixed and mobile", FJORD, EUROPE_PREFIXES),
        DestinationList(66, "Reserved", FJORD, ()),
        DestinationList(ALPINE_CALLS, "DACH", ALPINE, ("41", "49", "43", "423")),
    )
    return {one.id: one for one in made}
