"""Where packages work: zones as the countries of one network profile, steering lists and destination lists."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from simulators.network.entities import MEBIBYTE, PackageTemplate, ThrottleThreshold
from simulators.network.seed import geography
from simulators.network.seed.resellers import ALPINE, ALPINE_LUMEN, ALPINE_SPX, FJORD, FJORD_EUROPE, FJORD_MERIDIAN, FJORD_SPX
from simulators.network.world import DestinationList, Network, NetworkProfile, SteeringList, Zone

FIRST_ZONE_ID = 2301
MALFORMED_ZONE = "Iberia"

# Name, profile, countries; the name is unique within the reseller, and so is the set of networks.
ZONE_TABLE: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("Nordics", FJORD_SPX, geography.NORDICS),
    ("European Union", FJORD_SPX, geography.EUROPEAN_UNION),
    ("Europe", FJORD_SPX, geography.EUROPE),
    ("World", FJORD_SPX, geography.WHOLE_WORLD),
    ("Americas", FJORD_SPX, geography.AMERICAS),
    ("North America", FJORD_SPX, geography.NORTH_AMERICA),
    ("Asia-Pacific", FJORD_SPX, geography.ASIA_PACIFIC),
    ("Africa & Middle East", FJORD_SPX, geography.MIDDLE_EAST_AND_AFRICA),
    ("Baltics", FJORD_SPX, geography.BALTICS),
    ("Benelux", FJORD_SPX, geography.BENELUX),
    (MALFORMED_ZONE, FJORD_SPX, geography.IBERIA),
    ("Norway", FJORD_SPX, ("no",)),
    ("United States", FJORD_SPX, ("us",)),
    ("Japan", FJORD_SPX, ("jp",)),
    ("Türkiye", FJORD_SPX, ("tr",)),
    ("M2M World", FJORD_MERIDIAN, geography.WHOLE_WORLD),
    ("M2M Europe", FJORD_MERIDIAN, geography.EUROPE),
    ("M2M Nordics", FJORD_MERIDIAN, geography.NORDICS),
    ("DACH lite", FJORD_EUROPE, geography.DACH),
    ("World", ALPINE_SPX, geography.WHOLE_WORLD),
    ("Europe", ALPINE_SPX, geography.EUROPE),
    ("DACH", ALPINE_SPX, geography.DACH),
    ("Switzerland", ALPINE_SPX, ("ch",)),
    ("Alps", ALPINE_LUMEN, geography.ALPS),
    ("Europe lite", ALPINE_LUMEN, geography.EUROPE),
    ("Asia-Pacific", ALPINE_LUMEN, geography.ASIA_PACIFIC),
)
EUROPE_PREFIXES = ("46", "45", "358", "354", "44", "49", "33", "31", "32", "34", "39", "48")
HOME_CALLS, EUROPE_CALLS, ALPINE_CALLS = 64, 65, 67
FIRST_TEMPLATE_ID = 55010
CENT = 10_000
DAILY, WEEKLY, MONTHLY = 0, 1, 2


def make_zones(networks: Mapping[int, Network], profiles: Mapping[int, NetworkProfile]) -> dict[int, Zone]:
    made = (
        make_zone(number, name, profiles[profile], geography.network_ids_in(networks.values(), places))
        for number, (name, profile, places) in enumerate(ZONE_TABLE, start=FIRST_ZONE_ID)
    )
    return {one.id: one for one in made}


def make_zone(number: int, name: str, profile: NetworkProfile, wanted: frozenset[int]) -> Zone:
    """A zone of the `wanted` networks that the profile allows."""
    allowed = tuple(sorted(wanted & profile.network_ids))
    return Zone(number, name, profile.reseller_id, profile.id, allowed, malformed=name == MALFORMED_ZONE)


def zone_countries(zone: Zone, networks: Mapping[int, Network]) -> frozenset[str]:
    """The ISO codes of the countries in which `zone` has a network."""
    return frozenset(networks[network_id].iso2 for network_id in zone.network_ids)


def make_steering_lists(networks: Mapping[int, Network]) -> dict[int, SteeringList]:
    """Every steering list by its id; Alpine has none, so its list is null on the wire."""
    made = (
        SteeringList(17, "Nordic first", FJORD, preferred_networks(networks, geography.NORDICS, 0)),
        SteeringList(18, "Cheapest in Europe", FJORD, preferred_networks(networks, geography.EUROPE, -1)),
        SteeringList(19, "Best coverage worldwide", FJORD, preferred_networks(networks, geography.WHOLE_WORLD, 0)),
        SteeringList(20, "DACH partners", FJORD, preferred_networks(networks, geography.DACH, 1)),
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


class TemplateCatalogue(NamedTuple):
    """Where templates are put together: the zones of one reseller, and the network profiles that they belong to."""

    reseller_id: int
    zones: Mapping[int, Zone]
    profiles: Mapping[int, NetworkProfile]

    def data(self, name: str, zone: str, mebibytes: int, days: int, cents: int) -> PackageTemplate:
        """A one-time data package; its id comes with its place in the catalogue."""
        zone_id = {(zone.reseller_id, zone.name): zone.id for zone in self.zones.values()}[self.reseller_id, zone]
        sponsor_id = self.profiles[self.zones[zone_id].profile_id].sponsor_id
        volume = mebibytes * MEBIBYTE
        return PackageTemplate(0, name, self.reseller_id, zone_id, sponsor_id, days, data_bytes=volume, cost=cents * CENT, ui_visible=True)


def recurring_template(
    template: PackageTemplate, periodicity: int, *, frequency: int = 1, occurrences: int | None, carry_over: bool = False
) -> PackageTemplate:
    return replace(
        template,
        recurring=True,
        periodicity=periodicity,
        frequency=frequency,
        occurrences=occurrences,
        carry_over=carry_over,
        ui_visible=False,
    )


def throttled_template(template: PackageTemplate, *steps: ThrottleThreshold, error_action: int = 0) -> PackageTemplate:
    """The same package, slower from some percentages of its volume on."""
    rest = (None,) * (4 - len(steps))
    return replace(template, throttling=True, throttles=(*steps, *rest), throttling_error_action=error_action)


def voice_template(template: PackageTemplate, minutes: int, messages: int, destination_id: int) -> PackageTemplate:
    """The same package with calls and messages, to some destinations."""
    return replace(
        template, moc_seconds=minutes * 60, mtc_seconds=minutes * 60, mo_sms=messages, mt_sms=messages, destination_id=destination_id
    )


def _fjord_templates(shelf: TemplateCatalogue) -> list[PackageTemplate]:
    data = shelf.data
    return [
        data("Nordic 1GB 30d", "Nordics", 1024, 30, 450),
        data("Nordic 5GB 30d", "Nordics", 5120, 30, 1490),
        data("Norway 10GB 30d", "Norway", 10240, 30, 1990),
        data("Europe 500MB 7d", "Europe", 512, 7, 350),
        data("Europe 1GB 30d", "Europe", 1024, 30, 490),
        data("Europe 3GB 30d", "Europe", 3072, 30, 990),
        throttled_template(data("Europe 10GB 30d", "Europe", 10240, 30, 2490), ThrottleThreshold(80, 5120), ThrottleThreshold(95, 512)),
        data("EU 20GB 30d", "European Union", 20480, 30, 3490),
        data("Baltics 2GB 15d", "Baltics", 2048, 15, 690),
        data("Iberia 2GB 10d", "Iberia", 2048, 10, 590),
        data("USA 3GB 30d", "United States", 3072, 30, 1290),
        data("North America 5GB 30d", "North America", 5120, 30, 2290),
        data("Americas 1GB 15d", "Americas", 1024, 15, 990),
        data("Japan 3GB 15d", "Japan", 3072, 15, 1190),
        data("Asia-Pacific 2GB 30d", "Asia-Pacific", 2048, 30, 1590),
        data("Türkiye 1GB 7d", "Türkiye", 1024, 7, 420),
        data("Africa & Middle East 1GB 15d", "Africa & Middle East", 1024, 15, 1890),
        data("World 500MB 15d", "World", 512, 15, 890),
        data("World 1GB 30d", "World", 1024, 30, 1490),
        throttled_template(
            data("World 5GB 30d", "World", 5120, 30, 4990),
            ThrottleThreshold(50, 10240),
            ThrottleThreshold(80, 1024),
            ThrottleThreshold(100, 128),
            error_action=1,
        ),
        voice_template(data("Nordic Talk 2GB 30d", "Nordics", 2048, 30, 1290), 300, 100, HOME_CALLS),
        voice_template(data("Europe Business 5GB 30d", "Europe", 5120, 30, 2990), 500, 200, EUROPE_CALLS),
        recurring_template(data("Nordic monthly 3GB", "Nordics", 3072, 31, 890), MONTHLY, occurrences=None),
        recurring_template(data("Europe monthly 5GB carry-over", "Europe", 5120, 31, 1690), MONTHLY, occurrences=12, carry_over=True),
        recurring_template(data("Europe weekly 1GB", "Europe", 1024, 7, 390), WEEKLY, occurrences=10),
        recurring_template(data("World day pass 200MB", "World", 200, 1, 290), DAILY, occurrences=14),
        recurring_template(data("M2M World 20MB monthly", "M2M World", 20, 31, 95), MONTHLY, occurrences=None, carry_over=True),
        recurring_template(data("M2M Europe 50MB monthly", "M2M Europe", 50, 31, 110), MONTHLY, occurrences=None),
        throttled_template(data("M2M Europe 250MB 90d", "M2M Europe", 250, 90, 320), ThrottleThreshold(90, 128), error_action=1),
        data("M2M Nordics 100MB 365d", "M2M Nordics", 100, 365, 240),
        replace(data("DACH lite 1GB 14d", "DACH lite", 1024, 14, 390), ui_start=1_577_836_800, ui_end=2_208_988_799),  # shown 2020-2039
        replace(data("Europe 2GB 2024", "Europe", 2048, 30, 990), deleted=True, ui_visible=False),
    ]


def _alpine_templates(shelf: TemplateCatalogue) -> list[PackageTemplate]:
    data = shelf.data
    return [
        data("Switzerland 2GB 30d", "Switzerland", 2048, 30, 1190),
        data("DACH 5GB 30d", "DACH", 5120, 30, 1890),
        data("Europe 3GB 30d", "Europe", 3072, 30, 1290),
        data("Alps 1GB 7d", "Alps", 1024, 7, 490),
        throttled_template(data("Europe lite 2GB 15d", "Europe lite", 2048, 15, 690), ThrottleThreshold(80, 3072)),
        data("Asia-Pacific 1GB 15d", "Asia-Pacific", 1024, 15, 1090),
        voice_template(data("DACH Talk 3GB 30d", "DACH", 3072, 30, 1990), 200, 50, ALPINE_CALLS),
        recurring_template(data("Alps weekly 1GB", "Alps", 1024, 7, 450), WEEKLY, frequency=2, occurrences=6),
        data("World 1GB 30d", "World", 1024, 30, 1690),
    ]


def make_templates(zones: Mapping[int, Zone], profiles: Mapping[int, NetworkProfile]) -> dict[int, PackageTemplate]:
    made = _fjord_templates(TemplateCatalogue(FJORD, zones, profiles)) + _alpine_templates(TemplateCatalogue(ALPINE, zones, profiles))
    return {number: replace(template, id=number) for number, template in enumerate(made, start=FIRST_TEMPLATE_ID)}
