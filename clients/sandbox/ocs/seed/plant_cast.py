"""Who plays which part in a planted world: drawn from the seed, account by account."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from clients.sandbox.ocs.dice import Random, dice
from clients.sandbox.ocs.entities import Line, Persona, Template
from clients.sandbox.ocs.seed.personas import FAR, HABITS, NEAR, Kind
from clients.sandbox.ocs.seed.plan import Plan
from clients.sandbox.ocs.seed.plant_parts import PENNILESS, Part, Role, shares
from clients.sandbox.ocs.seed.plant_wares import dear_countries, oversized, slowing, small, steerable, ware
from clients.sandbox.ocs.seed.shopping import Offer, Shop
from clients.sandbox.ocs.seed.sponsors import FJORD, SPX
from clients.sandbox.ocs.state import World

MONTH = 30
LIGHT = 5_000_000
GIB = 1 << 30


class Audition(NamedTuple):
    """A line that may get a part, and what the answer depends on."""

    world: World
    role: Role
    line: Line
    chance: Random
    offers: list[Offer]
    partner: Template
    last: int
    """The UTC day of the start, which is not over."""


def cast(world: World, plans: list[Plan], shop: Shop, partner: Template, last: int) -> list[Part]:
    """The parts of all accounts. Lines whose way through the history is drawn otherwise, and stock, get none."""
    free = {plan.line_id for plan in plans if plan.used and not plan.turns}
    parts: list[Part] = []
    for account_id in world.accounts:
        lines = list(world.lines_of(account_id))
        waiting = [line for line in lines if line.id in free]
        dice(world.seed, "cast", account_id).shuffle(waiting)
        for role, share in shares(account_id).items():
            parts += take(world, role, int(share * len(lines) + 0.5), waiting, shop, partner, last)
    return sorted(parts, key=lambda part: part.line_id)


def take(world: World, role: Role, count: int, waiting: list[Line], shop: Shop, partner: Template, last: int) -> list[Part]:
    """The first lines that can play a part; they wait no longer."""
    found: list[Part] = []
    for line in list(waiting):
        if len(found) == count:
            break
        chance = dice(world.seed, "part", line.id, role)
        part = MAKERS[role](Audition(world, role, line, chance, shop.fitting(line), partner, last))
        if part is not None:
            found.append(part)
            waiting.remove(line)
            prepare(line, role)
    return found


def prepare(line: Line, role: Role) -> None:
    """What is true of the line from its first day."""
    if role in PENNILESS:
        line.use_account, line.balance = False, 0
    if role in ("mis_steered", "partner"):
        line.steering_list_id = None


def lively(line: Line, least: float = 0.0) -> Persona:
    """The life the line has; one that sleeps is woken."""
    base = line.persona if line.persona.kind != "dormant" else like(line.persona, "traveller")
    return base._replace(active_share=max(base.active_share, least))


def like(persona: Persona, kind: Kind) -> Persona:
    """Another kind of life in the same places."""
    return Persona(kind, persona.home_iso2, persona.travel_iso2, *HABITS[kind])


def at_home(persona: Persona) -> Persona:
    """No travels."""
    return persona._replace(travel_iso2=(), travel_share=0.0)


def a_month(persona: Persona) -> int:
    """Bytes."""
    return int(persona.active_share * persona.sessions * persona.session_bytes * MONTH)


def part_of(given: Audition, base: Persona, template: Template | None, begin: int, end: int, place: str = "") -> Part | None:
    """The part, when there is a package for it; days count back from the last."""
    if template is None:
        return None
    return Part(given.role, given.line.id, base, template.id, given.last + begin, given.last + end, place)


def bought(given: Audition, base: Persona, *places: str) -> Template | None:
    """A package for that life, there and everywhere it goes."""
    return ware(given.offers, given.chance, {base.home_iso2, *base.travel_iso2, *places}, a_month(base)) or ware(
        given.offers, given.chance, {base.home_iso2, *places}, a_month(base)
    )


def churn(given: Audition) -> Part | None:
    """Use fades over three to six weeks and ends some days before the start, or with it."""
    base = lively(given.line)
    return part_of(given, base, bought(given, base), -7 * given.chance.randint(3, 6), -given.chance.randrange(10))


def pause(given: Audition) -> Part | None:
    """Silent for a week or more at the start, and back soon after."""
    base = regular(given)
    return part_of(given, base, bought(given, base), -given.chance.randint(6, 12), given.chance.randint(3, 12))


def silence(given: Audition) -> Part | None:
    """Silent for some days, and back before the start."""
    base, begin = regular(given), given.chance.randint(14, 25)
    return part_of(given, base, bought(given, base), -begin, given.chance.randint(5, 9) - begin)


def regular(given: Audition) -> Persona:
    """Something nearly every day, at home."""
    kind: Kind = "tracker" if given.line.persona.kind == "tracker" else "commuter"
    return at_home(like(given.line.persona, kind))._replace(active_share=0.96)


def spike(given: Audition) -> Part | None:
    """One day or two with a multiple of what is usual."""
    base, first = lively(given.line, 0.55), given.chance.randint(9, 24)
    part = part_of(given, base, bought(given, base), -28, 0)
    days = (-first, -given.chance.randint(2, first - 5)) if given.chance.random() < 0.4 else (-first,)
    return None if part is None else part._replace(days=tuple(given.last + day for day in days))


def on_partners(given: Audition) -> tuple[Persona, str] | None:
    """A life where the partners' package works; nothing for lines that it is not made for."""
    line = given.line
    rich = line.use_account and not given.world.accounts[line.account_id].package_only
    if not rich or (line.reseller_id, line.sim.sponsor_id) != (FJORD, SPX):
        return None
    place = given.chance.choice(steerable(given.world, given.partner))
    return at_home(lively(line, 0.65)), place


def mis_steered(given: Audition) -> Part | None:
    """Two or three weeks ago its steering list was changed: some live where it harms, some went there then."""
    found = on_partners(given)
    if found is None:
        return None
    base, place = found
    base = base._replace(home_iso2=place) if given.chance.random() < 0.5 else base
    return part_of(given, base, given.partner, -given.chance.randint(14, 24), MONTH, place)


def partner(given: Audition) -> Part | None:
    """The same package where it works."""
    found = on_partners(given)
    return None if found is None else part_of(given, found[0]._replace(home_iso2=found[1]), given.partner, 0, 0)


def wrong_package(given: Audition) -> Part | None:
    """Little data at home, on a package that costs a multiple of one that would do."""
    base = at_home(like(given.line.persona, "commuter"))._replace(session_bytes=LIGHT, calls=0.0, messages=0.0)
    return part_of(given, base, oversized(given.offers, given.chance, base.home_iso2), 0, 0)


def high_cost(given: Audition) -> Part | None:
    """Much data every day where data is dear."""
    base = at_home(like(given.line.persona, "heavy"))
    world_wide = [offer for offer in given.offers if len(offer.countries) > 40 and not offer.template.recurring]
    largest = max(world_wide, key=lambda offer: offer.template.data_bytes or 0, default=None)
    places = dear_countries(given.world, given.line, largest) if largest is not None else []
    if largest is None or not places:
        return None
    return part_of(given, base._replace(home_iso2=given.chance.choice(places)), largest.template, 0, 0)


def abroad(given: Audition) -> Part | None:
    """Since some days where nobody expects it, with a package that works there."""
    base = at_home(lively(given.line, 0.85))
    place = given.chance.choice([iso2 for iso2 in NEAR if iso2 != base.home_iso2])
    return part_of(
        given, base, ware(given.offers, given.chance, {base.home_iso2, place}, a_month(base)), -given.chance.randint(3, 9), MONTH, place
    )


def exhausted(given: Audition) -> Part | None:
    """The data is used up in a day or two, and nobody buys more."""
    base = at_home(lively(given.line, 0.9))
    return part_of(given, base, bought(given, base), -given.chance.randint(4, 8), MONTH)


def light(given: Audition) -> Persona:
    """Little data nearly every day, at home."""
    return at_home(like(given.line.persona, "commuter"))._replace(active_share=0.92, session_bytes=LIGHT)


def expired(given: Audition) -> Part | None:
    """The week is over, and nobody buys another."""
    base = light(given)
    return part_of(given, base, small(given.offers, base.home_iso2), -12, MONTH)


def stopped(given: Audition) -> Part | None:
    """Since some days something is switched off."""
    base = light(given)
    return part_of(given, base, ware(given.offers, given.chance, {base.home_iso2}, GIB), -given.chance.randint(2, 5), MONTH)


def no_coverage(given: Audition) -> Part | None:
    """Where its package does not work."""
    base = light(given)
    template = ware(given.offers, given.chance, {base.home_iso2}, GIB)
    works = next((offer.countries for offer in given.offers if offer.template is template), frozenset[str]())
    places = [iso2 for iso2 in FAR if iso2 not in works]
    return part_of(given, base, template, -given.chance.randint(3, 5), MONTH, given.chance.choice(places)) if places else None


def throttled(given: Audition) -> Part | None:
    """Uses its package until it is slowed down."""
    base = light(given)
    return part_of(given, base, slowing(given.offers, base.home_iso2), -20, MONTH)


def regular_heavy(given: Audition) -> Part | None:
    """Very much, every day."""
    base = at_home(like(given.line.persona, "heavy"))._replace(active_share=0.98, sessions=5.0)
    return part_of(given, base, bought(given, base), 0, 0)


def weekday(given: Audition) -> Part | None:
    """From Monday to Friday."""
    base = like(given.line.persona, "commuter")._replace(active_share=0.95)
    return part_of(given, base, bought(given, base), 0, 0)


def first_trip(given: Audition) -> Part | None:
    """Always at home, but for some days of the last weeks."""
    base = at_home(lively(given.line, 0.8))
    place, begin = given.chance.choice([iso2 for iso2 in NEAR if iso2 != base.home_iso2]), given.chance.randint(8, 20)
    return part_of(given, base, bought(given, base, place), -begin, given.chance.randint(5, 8) - begin, place)


MAKERS: Mapping[Role, Callable[[Audition], Part | None]] = {
    "churn": churn,
    "pause": pause,
    "spike": spike,
    "silence": silence,
    "mis_steered": mis_steered,
    "partner": partner,
    "wrong_package": wrong_package,
    "high_cost": high_cost,
    "abroad": abroad,
    "exhausted": exhausted,
    "expired": expired,
    "blocked": stopped,
    "suspended": stopped,
    "forbidden": stopped,
    "no_coverage": no_coverage,
    "throttled": throttled,
    "regular_heavy": regular_heavy,
    "weekday": weekday,
    "first_trip": first_trip,
}
