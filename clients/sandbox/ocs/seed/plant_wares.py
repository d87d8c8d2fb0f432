"""What a planted world sells beside the usual: packages on partner networks only, as cheap packages of real catalogues are."""

from itertools import groupby

from clients.sandbox.ocs.dice import Random
from clients.sandbox.ocs.entities import MEBIBYTE, Line, Template
from clients.sandbox.ocs.places import Zone
from clients.sandbox.ocs.seed.regions import EUROPE
from clients.sandbox.ocs.seed.shopping import Offer
from clients.sandbox.ocs.seed.sponsors import FJORD, FJORD_SPX, SPX
from clients.sandbox.ocs.seed.zones import countries_of
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.tariffs import rule

PARTNERS = "Europe partners"
NAME, MEBIBYTES, DAYS, COST = "Europe partners 5GB 30d", 5120, 30, 11_900_000
CHEAPEST_LIST = 18
"""Steering to the last network of each European country, which the partners' zone leaves out."""
DEAREST = 6
CHOICE = 3


def add_partners(world: World) -> Template:
    """A zone of all but one network of each country, and a package there."""
    profile = world.profiles[FJORD_SPX]
    left_out = set(world.steering[CHEAPEST_LIST].network_ids)
    here = tuple(sorted(one for one in profile.network_ids - left_out if world.networks[one].iso2 in EUROPE))
    zone = Zone(world.next_id("zone"), PARTNERS, FJORD, profile.id, here)
    world.zones[zone.id] = zone
    number = world.next_id("template")
    made = Template(number, NAME, FJORD, zone.id, SPX, DAYS, data_bytes=MEBIBYTES * MEBIBYTE, cost=COST, ui_visible=True)
    world.templates[number] = made
    return made


def steerable(world: World, template: Template) -> list[str]:
    """Countries where that list leads out of the package's zone, onto a network that can be had and has a price."""
    covered = countries_of(world.zones[template.zone_id], world.networks)
    allowed, sell = world.profiles[FJORD_SPX].network_ids, world.resellers[FJORD].mobile_plan_id
    found = [world.networks[number] for number in world.steering[CHEAPEST_LIST].network_ids if number in allowed]
    return [one.iso2 for one in found if one.iso2 in covered and rule(world, sell, one.network_id, SPX, world.now) is not None]


def dear_countries(world: World, line: Line, offer: Offer) -> list[str]:
    """Where a package works and data costs the reseller most, on average over the networks this SIM may use."""
    buy, allowed = world.resellers[line.reseller_id].buy_tariff_id, world.profiles[line.profile_id].network_ids
    means: list[tuple[float, str]] = []
    for iso2, group in groupby(world.networks.values(), key=lambda network: network.iso2):
        rules = [rule(world, buy, one.network_id, line.sim.sponsor_id, world.now) for one in group if one.network_id in allowed]
        rates = [found.data_rate or 0 for found in rules if found is not None]
        if iso2 in offer.countries and rates and len(rates) == len(rules):
            means.append((sum(rates) / len(rates), iso2))
    return [iso2 for _, iso2 in sorted(means, reverse=True)[:DEAREST]]


def ware(offers: list[Offer], chance: Random, places: set[str], least: int) -> Template | None:
    """One of the cheapest packages of one time that work everywhere and hold so many bytes; the largest when none does."""
    there = [offer.template for offer in offers if places <= offer.countries and not offer.template.recurring]
    enough = [template for template in there if (template.data_bytes or 0) >= least]
    if enough:
        return chance.choice(sorted(enough, key=lambda template: (template.cost, template.id))[:CHOICE])
    return max(there, key=lambda template: template.data_bytes or 0, default=None)


def oversized(offers: list[Offer], chance: Random, home: str) -> Template | None:
    """One of the packages of a month that cost most there, and at least twice as much as the cheapest that holds a GiB."""
    there = [
        offer.template for offer in offers if home in offer.countries and not offer.template.recurring and offer.template.period_days >= 30
    ]
    least = min((template.cost for template in there if (template.data_bytes or 0) >= 1 << 30), default=0)
    found = sorted((template for template in there if template.cost >= 2 * least), key=lambda template: (-template.cost, template.id))
    return chance.choice(found[:CHOICE]) if found else None


def small(offers: list[Offer], home: str) -> Template | None:
    """The package of a week that works there, the cheapest."""
    there = [
        offer.template for offer in offers if home in offer.countries and not offer.template.recurring and offer.template.period_days == 7
    ]
    return min(there, key=lambda template: (template.cost, template.id), default=None)


def slowing(offers: list[Offer], home: str) -> Template | None:
    """The largest package that works there and slows down at some share of its volume, long before its end."""
    there = [offer.template for offer in offers if home in offer.countries and offer.template.throttling and not offer.template.recurring]
    return max(there, key=lambda template: template.data_bytes or 0, default=None)
