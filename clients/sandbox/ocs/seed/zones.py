"""Where packages work: every zone of both resellers, as the countries of one network profile."""

from collections.abc import Iterable, Mapping

from clients.sandbox.ocs.places import Network, NetworkProfile, Zone
from clients.sandbox.ocs.seed.networks import networks_in
from clients.sandbox.ocs.seed.regions import (
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
    WORLD,
)
from clients.sandbox.ocs.seed.sponsors import ALPINE_LUMEN, ALPINE_SPX, FJORD_EUROPE, FJORD_MERIDIAN, FJORD_SPX

FIRST_ID = 2301
MALFORMED = "Iberia"
# Name, profile, countries; the name is unique within the reseller, and so is the set of networks (ocs.md 3.8).
ZONES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("Nordics", FJORD_SPX, NORDICS),
    ("European Union", FJORD_SPX, EUROPEAN_UNION),
    ("Europe", FJORD_SPX, EUROPE),
    ("World", FJORD_SPX, WORLD),
    ("Americas", FJORD_SPX, AMERICAS),
    ("North America", FJORD_SPX, NORTH_AMERICA),
    ("Asia-Pacific", FJORD_SPX, ASIA_PACIFIC),
    ("Africa & Middle East", FJORD_SPX, MIDDLE_EAST_AND_AFRICA),
    ("Baltics", FJORD_SPX, BALTICS),
    ("Benelux", FJORD_SPX, BENELUX),
    (MALFORMED, FJORD_SPX, IBERIA),
    ("Norway", FJORD_SPX, ("no",)),
    ("United States", FJORD_SPX, ("us",)),
    ("Japan", FJORD_SPX, ("jp",)),
    ("Türkiye", FJORD_SPX, ("tr",)),
    ("M2M World", FJORD_MERIDIAN, WORLD),
    ("M2M Europe", FJORD_MERIDIAN, EUROPE),
    ("M2M Nordics", FJORD_MERIDIAN, NORDICS),
    ("DACH lite", FJORD_EUROPE, DACH),
    ("World", ALPINE_SPX, WORLD),
    ("Europe", ALPINE_SPX, EUROPE),
    ("DACH", ALPINE_SPX, DACH),
    ("Switzerland", ALPINE_SPX, ("ch",)),
    ("Alps", ALPINE_LUMEN, ALPS),
    ("Europe lite", ALPINE_LUMEN, EUROPE),
    ("Asia-Pacific", ALPINE_LUMEN, ASIA_PACIFIC),
)


def zones(networks: Mapping[int, Network], profiles: Mapping[int, NetworkProfile]) -> dict[int, Zone]:
    """Every zone by its id."""
    made = (
        zone(number, name, profiles[profile], networks_in(networks.values(), places))
        for number, (name, profile, places) in enumerate(ZONES, start=FIRST_ID)
    )
    return {one.id: one for one in made}


def zone(number: int, name: str, profile: NetworkProfile, wanted: frozenset[int]) -> Zone:
    """What the profile allows of the wanted networks."""
    allowed = tuple(sorted(wanted & profile.network_ids))
    return Zone(number, name, profile.reseller_id, profile.id, allowed, malformed=name == MALFORMED)


def countries_of(zone: Zone, networks: Mapping[int, Network]) -> frozenset[str]:
    """Where a zone works."""
    return frozenset(networks[network_id].iso2 for network_id in zone.network_ids)


def by_name(zones: Iterable[Zone]) -> dict[tuple[int, str], int]:
    """Zone ids by reseller and name."""
    return {(zone.reseller_id, zone.name): zone.id for zone in zones}
