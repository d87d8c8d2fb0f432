"""A network small enough to count by hand: two countries, three networks, one reseller, one line that stays silent by itself."""

from dataclasses import replace

from simulators.network.entities import (
    ImsiRow,
    Line,
    NumberRow,
    PackageTemplate,
    Persona,
    ProviderRow,
    PushTarget,
    Reseller,
    ResellerAccount,
    Sim,
    StatusRow,
)
from simulators.network.world import (
    Country,
    DestinationList,
    Network,
    NetworkProfile,
    Sponsor,
    SteeringList,
    Tariff,
    TariffRule,
    World,
    Zone,
)
from tests.network_facts import MIB

SMALL_NOON = 1_769_860_800
"""2026-01-31T12:00:00 UTC: the end of a month, so that months have something to clamp."""
OSLO = 1
BERGEN = 2
STOCKHOLM = 3
NORWAY = 1
NORDICS = 2
SILENT = Persona("traveller", "no", (), 0.0, 0.0, 0, 0.0, 0.0, 0.0)
LIVELY = Persona("traveller", "no", ("se",), 0.9, 5.0, 3 * MIB, 0.4, 1.5, 1.5)


def rule(number: int, tariff: int, network: int, data: int, sponsor: int | None = None) -> TariffRule:
    """Calls at 0.15 EUR out and 0.03 EUR in per minute, messages at 0.05 and 0.01 EUR."""
    return TariffRule(number, tariff, network, sponsor, True, data, 150_000, 30_000, 50_000, 10_000, 0)


def template(**changes: object) -> PackageTemplate:
    plain = PackageTemplate(id=50, name="Nordic", reseller_id=7, zone_id=NORDICS, sponsor_id=31, period_days=30, data_bytes=100 * MIB)
    return replace(plain, **changes)


def line(world: World, number: int = 900, persona: Persona = SILENT) -> Line:
    sim = Sim(number + 1, True, 31, "FREE", "smdp.test", "T1", "1", "2", "3", "4", "8904", provider=[ProviderRow("Allocated", 0, "P1")])
    made = Line(
        id=number,
        account_id=81,
        reseller_id=7,
        batch_id=None,
        name=None,
        email=None,
        phone=None,
        company=None,
        balance=2_000_000,
        use_account=False,
        sim=sim,
        persona=persona,
        imsis=[ImsiRow(1, f"90170{number:010d}", f"8988303{number:012d}", 0)],
        numbers=[NumberRow(1, f"88{number}", 0)],
        multi_imsis=[],
        statuses=[StatusRow(1, "PENDING", 0)],
        own_number=f"88{number}",
        profile_id=1,
    )
    world.lines[number] = made
    return made


def small_world() -> World:
    world = World(seed=1, now=SMALL_NOON)
    world.countries = {
        "no": Country(1, "no", "Norway", "Europe", "47", "+01:00", 59.9, 10.7),
        "se": Country(2, "se", "Sweden", "Europe", "46", "+01:00", 59.3, 18.0),
    }
    world.networks = {
        OSLO: Network(OSLO, "no", "Oslo Tele", (("242", "01"),), ("NORAA",), "4G"),
        BERGEN: Network(BERGEN, "no", "Bergen Mobil", (("242", "02"),), ("NORBB",), "3G"),
        STOCKHOLM: Network(STOCKHOLM, "se", "Svea", (("240", "01"),), ("SWEAA",), "4G"),
    }
    world.sponsors = {31: Sponsor(31, "SPX", "SPX", 90170, 1), 32: Sponsor(32, "SPY", "SPY", 90180, 1)}
    push = PushTarget("https://shop.test/usage", "https://shop.test/esim", "https://shop.test/location")
    contact = {"contactName": "Kari"}
    world.resellers = {7: Reseller(7, "Fjord", -1, 10**9, False, False, True, False, 530, 512, 92, contact, push=push)}
    world.accounts = {81: ResellerAccount(81, 7, "Retail", 3_000_000, False)}
    world.profiles = {1: NetworkProfile(1, "SPX", 7, 31, 77, frozenset({OSLO, BERGEN, STOCKHOLM}))}
    world.zones = {NORWAY: Zone(NORWAY, "Norway", 7, 1, (OSLO, BERGEN)), NORDICS: Zone(NORDICS, "Nordics", 7, 1, (OSLO, BERGEN, STOCKHOLM))}
    world.destinations = {64: DestinationList(64, "Home", 7, ("47",))}
    world.steering = {17: SteeringList(17, "Bergen first", 7, (BERGEN, OSLO))}
    buy = tuple(rule(100 + n, 512, n, 1000 * n) for n in (1, 2, 3))
    sell = (*(rule(200 + n, 530, n, 5000 * n) for n in (1, 2, 3)), rule(299, 530, STOCKHOLM, 7000, 31))
    world.tariffs = {512: Tariff(512, "Buy", 7, "RESELLER", buy), 530: Tariff(530, "Sell", 7, "SUBSCRIBER", sell)}
    world.templates = {50: template()}
    line(world)
    return world
