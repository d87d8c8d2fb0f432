"""The actors of a scenario: which lines show what an operator would like to find, drawn from the seed, account by account."""

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Literal, NamedTuple, get_args

from simulators.network.charging import find_tariff_rule
from simulators.network.entities import MEBIBYTE, Line, PackageTemplate, Persona
from simulators.network.seed.catalogue import zone_countries
from simulators.network.seed.fleet import FAR_COUNTRIES, NEAR_COUNTRIES, USAGE_PROFILES, LinePlan, PersonaKind
from simulators.network.seed.geography import EUROPE
from simulators.network.seed.history import PackageShop, TemplateOffer
from simulators.network.seed.resellers import FJORD, FJORD_SPX, SPX
from simulators.network.world import World, Zone
from simulators.seeded_random import Random, seeded_random

PARTNER_ZONE_NAME = "Europe partners"
PARTNER_TEMPLATE_NAME, PARTNER_MEBIBYTES, PARTNER_DAYS, PARTNER_COST = "Europe partners 5GB 30d", 5120, 30, 11_900_000
CHEAPEST_STEERING_LIST = 18
"""Steering to the last network of each European country, which the partners' zone leaves out."""
EXPENSIVE_COUNTRIES = 6
CHEAPEST_CHOICES = 3
MONTH_DAYS = 30
LIGHT_SESSION_BYTES = 5_000_000
GIB = 1 << 30
TroubleCause = Literal["exhausted", "expired", "blocked", "suspended", "forbidden", "no_coverage", "throttled"]
TROUBLE_CAUSES: tuple[TroubleCause, ...] = get_args(TroubleCause)
UsageRole = Literal["churn", "pause", "spike", "silence", "regular_heavy", "weekday"]
PlaceRole = Literal["mis_steered", "partner", "wrong_package", "high_cost", "abroad", "first_trip"]
ActorRole = TroubleCause | UsageRole | PlaceRole
NO_BALANCE_ROLES: frozenset[ActorRole] = frozenset({"exhausted", "expired", "blocked", "no_coverage"})
"""Nobody pays for what their packages do not: else the line would work, and there would be no trouble."""
MACHINE_SHARES: dict[ActorRole, float] = {"churn": 0.08, "spike": 0.06, "silence": 0.04, "pause": 0.03, "abroad": 0.07}
MACHINE_ACCOUNT = 8102


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
    """Countries where the cheapest steering list leads out of the template's zone, to a network that has a price."""
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
    """One of the cheapest one-time packages that work in all `places` and hold `least` bytes; the largest where none holds as much."""
    there = [offer.template for offer in offers if places <= offer.countries and not offer.template.recurring]
    enough = [template for template in there if (template.data_bytes or 0) >= least]
    if enough:
        return chance.choice(sorted(enough, key=lambda template: (template.cost, template.id))[:CHEAPEST_CHOICES])
    return max(there, key=lambda template: template.data_bytes or 0, default=None)


def oversized_template(offers: list[TemplateOffer], chance: Random, home: str) -> PackageTemplate | None:
    """One of the dearest packages of a month there: at least twice the price of the cheapest one that holds a GiB."""
    there = [
        offer.template for offer in offers if home in offer.countries and not offer.template.recurring and offer.template.period_days >= 30
    ]
    least = min((template.cost for template in there if (template.data_bytes or 0) >= 1 << 30), default=0)
    found = sorted((template for template in there if template.cost >= 2 * least), key=lambda template: (-template.cost, template.id))
    return chance.choice(found[:CHEAPEST_CHOICES]) if found else None


def weekly_template(offers: list[TemplateOffer], home: str) -> PackageTemplate | None:
    """The cheapest package of a week that works there."""
    there = [
        offer.template for offer in offers if home in offer.countries and not offer.template.recurring and offer.template.period_days == 7
    ]
    return min(there, key=lambda template: (template.cost, template.id), default=None)


def throttling_template(offers: list[TemplateOffer], home: str) -> PackageTemplate | None:
    """The largest package that works there and slows down at some share of its volume, long before its end."""
    there = [offer.template for offer in offers if home in offer.countries and offer.template.throttling and not offer.template.recurring]
    return max(there, key=lambda template: template.data_bytes or 0, default=None)


class ActorCandidate(NamedTuple):
    """A line that may play a role, and what decides whether it fits."""

    world: World
    role: ActorRole
    line: Line
    chance: Random
    offers: list[TemplateOffer]
    partner: PackageTemplate
    last: int
    """The UTC day of the start, which is not over."""


class ScenarioActor(NamedTuple):
    """What one line is to do. Days are UTC days since 1970; its special time is from `begin` until before `end`."""

    role: ActorRole
    line_id: int
    base: Persona
    template_id: int
    begin: int
    end: int
    place: str = ""
    """The country of its special time, where that is not where it lives."""
    days: tuple[int, ...] = ()
    """The days of its spikes."""


def cast_actors(world: World, plans: list[LinePlan], shop: PackageShop, partner: PackageTemplate, last: int) -> list[ScenarioActor]:
    """The actors of all accounts. Lines in stock, and lines whose status the history changes, get no role."""
    free = {plan.line_id for plan in plans if plan.used and not plan.turns}
    actors: list[ScenarioActor] = []
    for account_id in world.accounts:
        lines = list(world.lines_of(account_id))
        waiting = [line for line in lines if line.id in free]
        seeded_random(world.seed, "cast", account_id).shuffle(waiting)
        people: dict[ActorRole, float] = {role: share for role, (share, _) in ACTOR_MAKERS.items()}
        for role, share in (MACHINE_SHARES if account_id == MACHINE_ACCOUNT else people).items():
            actors += choose_actors(world, role, int(share * len(lines) + 0.5), waiting, shop, partner, last)
    return sorted(actors, key=lambda actor: actor.line_id)


def choose_actors(
    world: World, role: ActorRole, count: int, waiting: list[Line], shop: PackageShop, partner: PackageTemplate, last: int
) -> list[ScenarioActor]:
    """The first `count` lines of `waiting` that `role` fits; they are taken out of `waiting`."""
    found: list[ScenarioActor] = []
    for line in list(waiting):
        if len(found) == count:
            break
        chance = seeded_random(world.seed, "part", line.id, role)
        actor = ACTOR_MAKERS[role][1](ActorCandidate(world, role, line, chance, shop.fitting(line), partner, last))
        if actor is not None:
            found.append(actor)
            waiting.remove(line)
            if role in NO_BALANCE_ROLES:
                line.use_account, line.balance = False, 0
            if role in ("mis_steered", "partner"):
                line.steering_list_id = None
    return found


def lively_persona(line: Line, least: float = 0.0) -> Persona:
    """The persona of the line; a dormant one becomes a traveller. `least` is the lowest share of active days."""
    base = line.persona if line.persona.kind != "dormant" else persona_of_kind(line.persona, "traveller")
    return base._replace(active_share=max(base.active_share, least))


def persona_of_kind(persona: Persona, kind: PersonaKind) -> Persona:
    """The same places with another kind of use."""
    return Persona(kind, persona.home_iso2, persona.travel_iso2, *USAGE_PROFILES[kind])


def _without_travel(persona: Persona) -> Persona:
    return persona._replace(travel_iso2=(), travel_share=0.0)


def _monthly_bytes(persona: Persona) -> int:
    return int(persona.active_share * persona.sessions * persona.session_bytes * MONTH_DAYS)


def make_actor(
    given: ActorCandidate, base: Persona, template: PackageTemplate | None, begin: int, end: int, place: str = ""
) -> ScenarioActor | None:
    """The actor, or None without a package. `begin` and `end` count days from the last day."""
    if template is None:
        return None
    return ScenarioActor(given.role, given.line.id, base, template.id, given.last + begin, given.last + end, place)


def fitting_package(given: ActorCandidate, base: Persona, *places: str) -> PackageTemplate | None:
    """A package for that persona at home, in `places`, and where it travels if there is one."""
    return affordable_template(
        given.offers, given.chance, {base.home_iso2, *base.travel_iso2, *places}, _monthly_bytes(base)
    ) or affordable_template(given.offers, given.chance, {base.home_iso2, *places}, _monthly_bytes(base))


def churn_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Use fades over three to six weeks and ends some days before the start, or with it."""
    base = lively_persona(given.line)
    return make_actor(given, base, fitting_package(given, base), -7 * given.chance.randint(3, 6), -given.chance.randrange(10))


def pause_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Silent for a week or more at the start, and back soon after."""
    base = regular_persona(given)
    return make_actor(given, base, fitting_package(given, base), -given.chance.randint(6, 12), given.chance.randint(3, 12))


def silence_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Silent for some days, and back before the start."""
    base, begin = regular_persona(given), given.chance.randint(14, 25)
    return make_actor(given, base, fitting_package(given, base), -begin, given.chance.randint(5, 9) - begin)


def regular_persona(given: ActorCandidate) -> Persona:
    """Something nearly every day, at home."""
    kind: PersonaKind = "tracker" if given.line.persona.kind == "tracker" else "commuter"
    return _without_travel(persona_of_kind(given.line.persona, kind))._replace(active_share=0.96)


def spike_actor(given: ActorCandidate) -> ScenarioActor | None:
    """One day or two with a multiple of what is usual."""
    base, first = lively_persona(given.line, 0.55), given.chance.randint(9, 24)
    actor = make_actor(given, base, fitting_package(given, base), -28, 0)
    days = (-first, -given.chance.randint(2, first - 5)) if given.chance.random() < 0.4 else (-first,)
    return None if actor is None else actor._replace(days=tuple(given.last + day for day in days))


def partner_persona(given: ActorCandidate) -> tuple[Persona, str] | None:
    """A persona, and a country, where the partners' package works; None for a line that the package is not made for."""
    line = given.line
    rich = line.use_account and not given.world.accounts[line.account_id].package_only
    if not rich or (line.reseller_id, line.sim.sponsor_id) != (FJORD, SPX):
        return None
    place = given.chance.choice(steerable_countries(given.world, given.partner))
    return _without_travel(lively_persona(line, 0.65)), place


def mis_steered_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Two or three weeks ago its steering list was changed. Half of these lines live where that harms, the others went there then."""
    found = partner_persona(given)
    if found is None:
        return None
    base, place = found
    base = base._replace(home_iso2=place) if given.chance.random() < 0.5 else base
    return make_actor(given, base, given.partner, -given.chance.randint(14, 24), MONTH_DAYS, place)


def partner_actor(given: ActorCandidate) -> ScenarioActor | None:
    """The same package in a country where it works."""
    found = partner_persona(given)
    return None if found is None else make_actor(given, found[0]._replace(home_iso2=found[1]), given.partner, 0, 0)


def wrong_package_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Little data at home, on a package that costs a multiple of one that would do."""
    base = _without_travel(persona_of_kind(given.line.persona, "commuter"))._replace(
        session_bytes=LIGHT_SESSION_BYTES, calls=0.0, messages=0.0
    )
    return make_actor(given, base, oversized_template(given.offers, given.chance, base.home_iso2), 0, 0)


def high_cost_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Much data every day where data is dear."""
    base = _without_travel(persona_of_kind(given.line.persona, "heavy"))
    world_wide = [offer for offer in given.offers if len(offer.countries) > 40 and not offer.template.recurring]
    largest = max(world_wide, key=lambda offer: offer.template.data_bytes or 0, default=None)
    places = expensive_countries(given.world, given.line, largest) if largest is not None else []
    if largest is None or not places:
        return None
    return make_actor(given, base._replace(home_iso2=given.chance.choice(places)), largest.template, 0, 0)


def abroad_actor(given: ActorCandidate) -> ScenarioActor | None:
    """For some days in a country where nobody expects it, with a package that works there."""
    base = _without_travel(lively_persona(given.line, 0.85))
    place = given.chance.choice([iso2 for iso2 in NEAR_COUNTRIES if iso2 != base.home_iso2])
    return make_actor(
        given,
        base,
        affordable_template(given.offers, given.chance, {base.home_iso2, place}, _monthly_bytes(base)),
        -given.chance.randint(3, 9),
        MONTH_DAYS,
        place,
    )


def exhausted_actor(given: ActorCandidate) -> ScenarioActor | None:
    """The data is used up in a day or two, and nobody buys more."""
    base = _without_travel(lively_persona(given.line, 0.9))
    return make_actor(given, base, fitting_package(given, base), -given.chance.randint(4, 8), MONTH_DAYS)


def light_persona(given: ActorCandidate) -> Persona:
    """Little data nearly every day, at home."""
    return _without_travel(persona_of_kind(given.line.persona, "commuter"))._replace(active_share=0.92, session_bytes=LIGHT_SESSION_BYTES)


def expired_actor(given: ActorCandidate) -> ScenarioActor | None:
    """The week is over, and nobody buys another."""
    base = light_persona(given)
    return make_actor(given, base, weekly_template(given.offers, base.home_iso2), -12, MONTH_DAYS)


def stopped_actor(given: ActorCandidate) -> ScenarioActor | None:
    """For some days something has been switched off."""
    base = light_persona(given)
    return make_actor(
        given, base, affordable_template(given.offers, given.chance, {base.home_iso2}, GIB), -given.chance.randint(2, 5), MONTH_DAYS
    )


def no_coverage_actor(given: ActorCandidate) -> ScenarioActor | None:
    """For some days in a country where its package does not work."""
    base = light_persona(given)
    template = affordable_template(given.offers, given.chance, {base.home_iso2}, GIB)
    works = next((offer.countries for offer in given.offers if offer.template is template), frozenset[str]())
    places = [iso2 for iso2 in FAR_COUNTRIES if iso2 not in works]
    return make_actor(given, base, template, -given.chance.randint(3, 5), MONTH_DAYS, given.chance.choice(places)) if places else None


def throttled_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Uses its package until it is slowed down."""
    base = light_persona(given)
    return make_actor(given, base, throttling_template(given.offers, base.home_iso2), -20, MONTH_DAYS)


def regular_heavy_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Very much, every day."""
    base = _without_travel(persona_of_kind(given.line.persona, "heavy"))._replace(active_share=0.98, sessions=5.0)
    return make_actor(given, base, fitting_package(given, base), 0, 0)


def weekday_actor(given: ActorCandidate) -> ScenarioActor | None:
    """From Monday to Friday."""
    base = persona_of_kind(given.line.persona, "commuter")._replace(active_share=0.95)
    return make_actor(given, base, fitting_package(given, base), 0, 0)


def first_trip_actor(given: ActorCandidate) -> ScenarioActor | None:
    """Always at home, but for some days of the last weeks."""
    base = _without_travel(lively_persona(given.line, 0.8))
    place, begin = given.chance.choice([iso2 for iso2 in NEAR_COUNTRIES if iso2 != base.home_iso2]), given.chance.randint(8, 20)
    return make_actor(given, base, fitting_package(given, base, place), -begin, given.chance.randint(5, 8) - begin, place)


ACTOR_MAKERS: Mapping[ActorRole, tuple[float, Callable[[ActorCandidate], ScenarioActor | None]]] = {
    "mis_steered": (0.09, mis_steered_actor),
    "partner": (0.03, partner_actor),
    "high_cost": (0.05, high_cost_actor),
    "expired": (0.012, expired_actor),
    "throttled": (0.012, throttled_actor),
    "exhausted": (0.012, exhausted_actor),
    "blocked": (0.012, stopped_actor),
    "no_coverage": (0.012, no_coverage_actor),
    "suspended": (0.012, stopped_actor),
    "forbidden": (0.012, stopped_actor),
    "wrong_package": (0.06, wrong_package_actor),
    "churn": (0.08, churn_actor),
    "pause": (0.025, pause_actor),
    "spike": (0.06, spike_actor),
    "silence": (0.03, silence_actor),
    "abroad": (0.05, abroad_actor),
    "regular_heavy": (0.03, regular_heavy_actor),
    "weekday": (0.03, weekday_actor),
    "first_trip": (0.03, first_trip_actor),
}
"""In the order in which they choose their lines: who fits few lines comes first. Shares of all lines of an account."""
