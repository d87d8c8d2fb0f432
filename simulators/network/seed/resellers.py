"""The two resellers, neither of which is the other's parent: their accounts, the sponsors of their SIMs, and their tokens."""

from collections.abc import Mapping
from itertools import groupby

from simulators.network.entities import MICRO_EURO, GreenZone, NetworkToken, Reseller, ResellerAccount
from simulators.network.seed.geography import EUROPE, network_ids_in
from simulators.network.world import Network, NetworkProfile, Sponsor
from simulators.seeded_random import seeded_random

DEMO_ACCOUNT = 8101
FJORD, ALPINE = 7001, 7002
BUY_TARIFFS = {FJORD: 512, ALPINE: 513}
SELL_TARIFFS = {FJORD: 530, ALPINE: 531}
VOIP_PLANS = {FJORD: 92, ALPINE: 95}

FJORD_CONTACT = {
    "contactName": "Ingrid Solberg",
    "email": "noc@fjordmobile.example",
    "phone": "4722000001",
    "address": "Havnegata 12",
    "zip": "0150",
    "city": "Oslo",
    "state": "Oslo",
    "country": "Norway",
}

ALPINE_CONTACT = {
    "contactName": "Beat Zurbriggen",
    "email": "ops@alpineconnect.example",
    "phone": "41440000001",
    "city": "Zürich",
    "state": "ZH",
    "country": "Switzerland",
}
LINE_SHARES = {8101: 140, 8102: 90, 8103: 50, 8104: 40, 8201: 50, 8202: 30}
SPX, MERIDIAN, LUMEN = 31, 32, 33
FJORD_SPX, FJORD_MERIDIAN, FJORD_EUROPE, ALPINE_SPX, ALPINE_LUMEN = 412, 413, 414, 415, 416
RESELLER_SPONSORS = {FJORD: (SPX, MERIDIAN), ALPINE: (SPX, LUMEN)}
MAIN_PROFILES = {(FJORD, SPX): FJORD_SPX, (FJORD, MERIDIAN): FJORD_MERIDIAN, (ALPINE, SPX): ALPINE_SPX, (ALPINE, LUMEN): ALPINE_LUMEN}
"""Which profile a reseller's SIMs of a sponsor have."""
SIMULATED_TOKENS = (NetworkToken("sandbox-7001-token", 7001), NetworkToken("sandbox-7002-token", 7002))


def make_resellers() -> dict[int, Reseller]:
    fjord = Reseller(
        FJORD,
        "Fjord Mobile",
        parent_id=-1,
        balance=1_530_200_000,  # 1530,20 on the wire
        relay_gy=False,
        relay_calls=False,
        relay_location=True,
        relay_voip=False,
        mobile_plan_id=SELL_TARIFFS[FJORD],
        buy_tariff_id=BUY_TARIFFS[FJORD],
        voip_plan_id=VOIP_PLANS[FJORD],
        contact=dict(FJORD_CONTACT),
        green_zone=GreenZone(301, "Fjord green zone", max_mb=50, throttle_kbps=128),
    )
    alpine = Reseller(
        ALPINE,
        "Alpine Connect",
        parent_id=-1,
        balance=612_750_000,
        relay_gy=False,
        relay_calls=False,
        relay_location=False,
        relay_voip=False,
        mobile_plan_id=SELL_TARIFFS[ALPINE],
        buy_tariff_id=BUY_TARIFFS[ALPINE],
        voip_plan_id=VOIP_PLANS[ALPINE],
        contact=dict(ALPINE_CONTACT),
        single_counter=True,
    )
    return {FJORD: fjord, ALPINE: alpine}


def make_accounts() -> dict[int, ResellerAccount]:
    made = (
        ResellerAccount(DEMO_ACCOUNT, FJORD, "Demo Retail", 412_500_000, False, 17, GreenZone(311, "Retail green zone", 0, 128)),
        ResellerAccount(8102, FJORD, "Fleet Trackers", 238 * MICRO_EURO, False, 18, GreenZone(312, "Fleet green zone", 5, 64)),
        ResellerAccount(8103, FJORD, "Corporate Travel", 955_400_000, False, None),
        ResellerAccount(8104, FJORD, "Partner Shop", 0, True, None),
        ResellerAccount(8201, ALPINE, "Retail Alps", 187_250_000, False, None),
        ResellerAccount(8202, ALPINE, "Hotel Guests", 64_900_000, False, None, GreenZone(313, "Guest green zone", 20, 256)),
    )
    return {account.id: account for account in made}


def line_counts(lines: int) -> dict[int, int]:
    """How many of `lines` each account has: in proportion. What is left over, and all beyond 400, is in the demo account."""
    whole = sum(LINE_SHARES.values())
    counts = {account: min(share, share * lines // whole) for account, share in LINE_SHARES.items()}
    counts[DEMO_ACCOUNT] += lines - sum(counts.values())
    return counts


def make_sponsors() -> dict[int, Sponsor]:
    made = (
        Sponsor(SPX, "SPX", "SPX Roaming", 90170, 301),
        Sponsor(MERIDIAN, "MERIDIAN", "Meridian M2M", 90177, 302),
        Sponsor(LUMEN, "LUMEN", "Lumen Travel", 24087, 303),
    )
    return {sponsor.id: sponsor for sponsor in made}


def draw_agreements(seed: int, sponsor_id: int, share: float, networks: Mapping[int, Network]) -> frozenset[int]:
    """The networks a sponsor has agreements with: the largest of each country, and a share of the others."""
    chance = seeded_random(seed, "agreements", sponsor_id)
    kept: set[int] = set()
    for _, group in groupby(networks.values(), key=lambda network: network.iso2):
        first, *others = group
        kept |= {first.network_id, *(other.network_id for other in others if chance.random() < share)}
    return frozenset(kept)


def make_profiles(seed: int, networks: Mapping[int, Network]) -> dict[int, NetworkProfile]:
    spx = draw_agreements(seed, SPX, 0.9, networks)
    europe = spx & network_ids_in(networks.values(), EUROPE)
    made = (
        NetworkProfile(FJORD_SPX, "Fjord SPX", FJORD, SPX, 77, spx),
        NetworkProfile(FJORD_MERIDIAN, "Fjord Meridian", FJORD, MERIDIAN, 78, draw_agreements(seed, MERIDIAN, 0.6, networks)),
        NetworkProfile(FJORD_EUROPE, "Fjord SPX Europe", FJORD, SPX, 79, europe),
        NetworkProfile(ALPINE_SPX, "Alpine SPX", ALPINE, SPX, 80, spx),
        NetworkProfile(ALPINE_LUMEN, "Alpine Lumen", ALPINE, LUMEN, 81, draw_agreements(seed, LUMEN, 0.5, networks)),
    )
    return {profile.id: profile for profile in made}
