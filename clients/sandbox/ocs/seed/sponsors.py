"""The operators whose IMSI ranges the SIMs roam with, and what each reseller may use of their networks."""

from collections.abc import Mapping
from itertools import groupby

from clients.sandbox.ocs.dice import dice
from clients.sandbox.ocs.places import Network, NetworkProfile, Sponsor
from clients.sandbox.ocs.seed.networks import networks_in
from clients.sandbox.ocs.seed.regions import EUROPE

SPX, MERIDIAN, LUMEN = 31, 32, 33
FJORD, ALPINE = 7001, 7002
FJORD_SPX, FJORD_MERIDIAN, FJORD_EUROPE, ALPINE_SPX, ALPINE_LUMEN = 412, 413, 414, 415, 416

SPONSORED = {FJORD: (SPX, MERIDIAN), ALPINE: (SPX, LUMEN)}
MAIN_PROFILES = {(FJORD, SPX): FJORD_SPX, (FJORD, MERIDIAN): FJORD_MERIDIAN, (ALPINE, SPX): ALPINE_SPX, (ALPINE, LUMEN): ALPINE_LUMEN}
"""Which profile a reseller's SIMs of a sponsor have."""


def sponsors() -> dict[int, Sponsor]:
    """Every sponsor by its id."""
    made = (
        Sponsor(SPX, "SPX", "SPX Roaming", 90170, 301),
        Sponsor(MERIDIAN, "MERIDIAN", "Meridian M2M", 90177, 302),
        Sponsor(LUMEN, "LUMEN", "Lumen Travel", 24087, 303),
    )
    return {sponsor.id: sponsor for sponsor in made}


def agreements(seed: int, sponsor_id: int, share: float, networks: Mapping[int, Network]) -> frozenset[int]:
    """The networks a sponsor has agreements with: the largest of each country, and a share of the others."""
    chance = dice(seed, "agreements", sponsor_id)
    kept: set[int] = set()
    for _, group in groupby(networks.values(), key=lambda network: network.iso2):
        first, *others = group
        kept |= {first.network_id, *(other.network_id for other in others if chance.random() < share)}
    return frozenset(kept)


def profiles(seed: int, networks: Mapping[int, Network]) -> dict[int, NetworkProfile]:
    """Every network profile by its id."""
    spx = agreements(seed, SPX, 0.9, networks)
    europe = spx & networks_in(networks.values(), EUROPE)
    made = (
        NetworkProfile(FJORD_SPX, "Fjord SPX", FJORD, SPX, 77, spx),
        NetworkProfile(FJORD_MERIDIAN, "Fjord Meridian", FJORD, MERIDIAN, 78, agreements(seed, MERIDIAN, 0.6, networks)),
        NetworkProfile(FJORD_EUROPE, "Fjord SPX Europe", FJORD, SPX, 79, europe),
        NetworkProfile(ALPINE_SPX, "Alpine SPX", ALPINE, SPX, 80, spx),
        NetworkProfile(ALPINE_LUMEN, "Alpine Lumen", ALPINE, LUMEN, 81, agreements(seed, LUMEN, 0.5, networks)),
    )
    return {profile.id: profile for profile in made}
