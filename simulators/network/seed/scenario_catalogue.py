"""What a scenario sells beside the usual: packages on partner networks only, as cheap packages of real catalogues are."""

from itertools import groupby

from simulators.network.catalogue import Zone
from simulators.network.charging import find_tariff_rule
from simulators.network.entities import MEBIBYTE, Line, PackageTemplate
from simulators.network.seed.geography import EUROPE
from simulators.network.seed.history import TemplateOffer
from simulators.network.seed.resellers import FJORD, FJORD_SPX, SPX
from simulators.network.seed.zones import zone_countries
from simulators.network.world import World
from simulators.seeded_random import Random

PARTNER_ZONE_NAME = "Europe partners"
PARTNER_TEMPLATE_NAME, PARTNER_MEBIBYTES, PARTNER_DAYS, PARTNER_COST = "Europe partners 5GB 30d", 5120, 30, 11_900_000
CHEAPEST_STEERING_LIST = 18
"""Steering to the last network of each European country, which the partners' zone leaves out."""
EXPENSIVE_COUNTRIES = 6
CHEAPEST_CHOICES = 3


def add_partner_template(world: World) -> PackageTemplate:
    """A zone of all but one network of each country, and a package there."""
    profile = world.profiles[FJORD_SPX]
    left_out = set(world.steering[CHEAPEST_STEERING_LIST].network_ids)
    here = tuple(sorted(one for one in profile.network_ids - left_out if world.networks[one].iso2 in EUROPE))
    zone = Zone(world.next_id("zone"), PARTNER_ZONE_NAME, FJORD, profile.id, here)
    world.zones[zone.id] = zone
    number = world.next_id("template")
    made = PackageTemplate(
        number,
        PARTNER_TEMPLATE_NAME,
        FJORD,
        zone.id,
        SPX,
        PARTNER_DAYS,
        data_bytes=PARTNER_MEBIBYTES * MEBIBYTE,
        cost=PARTNER_COST,
        ui_visible=True,
    )
    world.templates[number] = made
    return made


def steerable_countries(world: World, template: PackageTemplate) -> list[str]:
    """Countries where that list leads out of the package's zone, onto a network that can be had and has a price."""
    covered = zone_countries(world.zones[template.zone_id], world.networks)
    allowed, sell = world.profiles[FJORD_SPX].network_ids, world.resellers[FJORD].mobile_plan_id
    found = [world.networks[number] for number in world.steering[CHEAPEST_STEERING_LIST].network_ids if number in allowed]
    return [one.iso2 for one in found if one.iso2 in covered and find_tariff_rule(world, sell, one.network_id, SPX, world.now) is not None]


def expensive_countries(world: World, line: Line, offer: TemplateOffer) -> list[str]:
    """Where a package works and data costs the reseller most, on average over the networks this SIM may use."""
    buy, allowed = world.resellers[line.reseller_id].buy_tariff_id, world.profiles[line.profile_id].network_ids
    means: list[tuple[float, str]] = []
    for iso2, group in groupby(world.networks.values(), key=lambda network: network.iso2):
        rules = [find_tariff_rule(world, buy, one.network_id, line.sim.sponsor_id, world.now) for one in group if one.network_id in allowed]
        rates = [found.data_rate or 0 for found in rules if found is not None]
        if iso2 in offer.countries and rates and len(rates) == len(rules):
            means.append((sum(rates) / len(rates), iso2))
    return [iso2 for _, iso2 in sorted(means, reverse=True)[:EXPENSIVE_COUNTRIES]]


def affordable_template(offers: list[TemplateOffer], chance: Random, places: set[str], least: int) -> PackageTemplate | None:
    """One of the cheapest packages of one time that work everywhere and hold so many bytes; the largest when none does."""
    there = [offer.template for offer in offers if places <= offer.countries and not offer.template.recurring]
    enough = [template for template in there if (template.data_bytes or 0) >= least]
    if enough:
        return chance.choice(sorted(enough, key=lambda template: (template.cost, template.id))[:CHEAPEST_CHOICES])
    return max(there, key=lambda template: template.data_bytes or 0, default=None)


def oversized_template(offers: list[TemplateOffer], chance: Random, home: str) -> PackageTemplate | None:
    """One of the packages of a month that cost most there, and at least twice as much as the cheapest that holds a GiB."""
    there = [
        offer.template for offer in offers if home in offer.countries and not offer.template.recurring and offer.template.period_days >= 30
    ]
    least = min((template.cost for template in there if (template.data_bytes or 0) >= 1 << 30), default=0)
    found = sorted((template for template in there if template.cost >= 2 * least), key=lambda template: (-template.cost, template.id))
    return chance.choice(found[:CHEAPEST_CHOICES]) if found else None


def weekly_template(offers: list[TemplateOffer], home: str) -> PackageTemplate | None:
    """The package of a week that works there, the cheapest."""
    there = [
        offer.template for offer in offers if home in offer.countries and not offer.template.recurring and offer.template.period_days == 7
    ]
    return min(there, key=lambda template: (template.cost, template.id), default=None)


def throttling_template(offers: list[TemplateOffer], home: str) -> PackageTemplate | None:
    """The largest package that works there and slows down at some share of its volume, long before its end."""
    there = [offer.template for offer in offers if home in offer.countries and offer.template.throttling and not offer.template.recurring]
    return max(there, key=lambda template: template.data_bytes or 0, default=None)
