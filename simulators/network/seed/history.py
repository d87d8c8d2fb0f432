"""The months before the start: customers get their lines, choose packages, renew them, leave; the radio life runs in between."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from simulators.network import packages
from simulators.network.entities import (
    DATA,
    DAY_SECONDS,
    MEBIBYTE,
    BalanceChange,
    Line,
    PackageTemplate,
    Persona,
    Reseller,
    ResellerAccount,
    StatusRow,
)
from simulators.network.seed.catalogue import zone_countries
from simulators.network.seed.fleet import ISSUE_STEPS, PROFILE_TYPE, LinePlan, PersonaKind, StatusChange
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from simulators.seeded_random import Random, seeded_random

RENEWAL_CHANCES: dict[PersonaKind, float] = {
    "traveller": 0.9,
    "commuter": 0.93,
    "heavy": 0.95,
    "tracker": 0.95,
    "dormant": 0.25,
    "stock": 0.0,
}
"""How likely a customer whose data is gone buys again."""

LOW_BALANCE_SHARE = 0.25
"""Of the first balance: below it the balance is topped up."""
PACKAGE_SIZES: dict[PersonaKind, tuple[int, int]] = {
    "traveller": (500, 3072),
    "commuter": (1024, 5120),
    "heavy": (3072, 20480),
    "tracker": (0, 512),
    "dormant": (0, 1024),
    "stock": (0, 0),
}
"""MiB a kind of customer looks for."""


class TemplateOffer(NamedTuple):
    template: PackageTemplate
    countries: frozenset[str]


class PackageShop:
    """The templates on sale, and which of them a line buys."""

    def __init__(self, world: World) -> None:
        on_sale = [template for template in world.templates.values() if not template.deleted]
        self.offers = [TemplateOffer(template, zone_countries(world.zones[template.zone_id], world.networks)) for template in on_sale]

    def pick(self, chance: Random, line: Line) -> PackageTemplate | None:
        """Something that works at home, mostly everywhere the line goes, and has about the right size."""
        places = {line.persona.home_iso2, *line.persona.travel_iso2}
        at_home = [offer for offer in self.fitting(line) if line.persona.home_iso2 in offer.countries]
        everywhere = [offer for offer in at_home if places <= offer.countries]
        found = everywhere if everywhere and chance.random() < 0.85 else at_home
        sized = [offer for offer in found if _has_wanted_size(line.persona, offer.template)] or found
        return chance.choice(sized).template if sized else None

    def fitting(self, line: Line) -> list[TemplateOffer]:
        """The offers of the line's reseller for its SIM's sponsor."""
        wanted = line.reseller_id, line.sim.sponsor_id
        return [offer for offer in self.offers if (offer.template.reseller_id, offer.template.sponsor_id) == wanted]


@dataclass(slots=True)
class History:
    """A history while it is lived: activations and status changes by day, and when lines without data buy again."""

    world: World
    shop: PackageShop
    activations: dict[int, list[Line]]
    """By day since the first: who is activated in the day before."""
    turns: dict[int, list[tuple[Line, StatusChange]]]
    moments: dict[int, int]
    """When within its day a line is activated."""
    first: int
    due: dict[int, int | None] = field(default_factory=dict[int, int | None])
    """Lines without data: the day they buy again, None for never."""
    balances: dict[int, int] = field(default_factory=dict[int, int])


def run_history(world: World, plans: list[LinePlan], first: int, start: int) -> None:
    """Live through the history day by day, up to `start`."""
    world.now = first
    history = prepare_history(world, plans, first)
    apply_day(history, 0)
    for day, moment in enumerate(range(first, start, DAY_SECONDS), start=1):
        run_world_to(world, min(moment + DAY_SECONDS, start))
        apply_day(history, day)


def prepare_history(world: World, plans: list[LinePlan], first: int) -> History:
    """Sorts what the plans hold by the day on which it happens."""
    history = History(world, PackageShop(world), {}, {}, {}, first)
    history.balances = {owner.id: owner.balance for owner in _balance_owners(world)}
    for plan in plans:
        line = world.lines[plan.line_id]
        if plan.used:
            moment = first if plan.activation is None else plan.activation
            history.moments[line.id] = moment
            history.activations.setdefault(evening_of(moment, first), []).append(line)
        for turn in plan.turns:
            history.turns.setdefault(evening_of(turn.at, first), []).append((line, turn))
    return history


def evening_of(moment: int, first: int) -> int:
    """The evening at which something of the day before is carried out."""
    return -(-(moment - first) // DAY_SECONDS)


def _balance_owners(world: World) -> list[Reseller | ResellerAccount]:
    return [*world.resellers.values(), *(account for account in world.accounts.values() if not account.package_only)]


def apply_day(history: History, day: int) -> None:
    """What customers and resellers did in the day that just went by."""
    world = history.world
    for line in history.activations.get(day, ()):
        chance = seeded_random(history.world.seed, "first package", line.id)
        template = history.shop.pick(chance, line)
        if template is not None:
            begin_line_life(history, chance, line, template)
    renew_packages(history, day)
    for line, turn in history.turns.get(day, ()):
        change_line_status(world, line, turn)
    for owner in _balance_owners(world):
        top_up_balance(world, owner, history.balances[owner.id])


@contextmanager
def at_earlier_moment(world: World, line: Line, moment: int) -> Generator[int]:
    """Act at a moment of the day that went by, but never before the line's last use."""
    now = world.now
    used = now if line.last_usage_at is None else line.last_usage_at
    world.now = moment if line.last_usage_at is None else min(now, max(moment, used))
    try:
        yield world.now
    finally:
        world.now = now


def begin_line_life(history: History, chance: Random, line: Line, template: PackageTemplate) -> None:
    world = history.world
    evening, is_new = world.now, line.sim.status == "FREE"
    with at_earlier_moment(world, line, history.moments[line.id]) as moment:
        buy_package(world, chance, line, template)
        for status, delay in ISSUE_STEPS[1:] if is_new and line.sim.esim else ():
            world.now = min(moment + delay, evening)
            world.add_provider_status(line, status, PROFILE_TYPE)


def buy_package(world: World, chance: Random, line: Line, template: PackageTemplate) -> None:
    """A package that begins with its first use, now and then one with a date, or a series."""
    if template.recurring:
        packages.assign_package_series(world, line, template, start=None, at_first_use=chance.random() < 0.5)
        return
    days = template.period_days if chance.random() < 0.2 else None
    packages.assign_package(world, line, template, period=None, validity_days=days)


def renew_packages(history: History, day: int) -> None:
    """Lines whose data is gone buy again after some days, or never."""
    for line in history.world.lines.values():
        if line.packages and line.status == "ACTIVE" and not has_supply(line, history.world.now):
            if line.id not in history.due:
                # drawn once for each time the data is gone
                chance = seeded_random(history.world.seed, "renewal", line.id, len(line.packages))
                history.due[line.id] = (
                    day + chance.choice((1, 1, 1, 2, 3, 5)) if chance.random() < RENEWAL_CHANCES[line.persona.kind] else None
                )
            elif history.due[line.id] == day:
                del history.due[line.id]
                buy_again(history, line)


def has_supply(line: Line, now: int) -> bool:
    """Whether a package has data left, or a series goes on."""
    if any(series.active and (series.occurrences is None or series.created < series.occurrences) for series in line.series):
        return True
    return any(package.in_date(now) and package.units_left(DATA) for package in reversed(line.packages))


def buy_again(history: History, line: Line) -> None:
    """Buys the same package once more, or now and then another one."""
    world, chance = history.world, seeded_random(history.world.seed, "again", line.id, len(line.packages))
    former = world.templates[line.packages[-1].template_id]
    template = former if chance.random() < 0.6 and not former.recurring else history.shop.pick(chance, line)
    if template is not None:
        with at_earlier_moment(world, line, world.now - chance.randrange(DAY_SECONDS * 2 // 3)):
            buy_package(world, chance, line, template)


def change_line_status(world: World, line: Line, turn: StatusChange) -> None:
    """Suspended, given up, or active again; nothing follows the end of life."""
    with at_earlier_moment(world, line, turn.at) as moment:
        line.statuses[-1].end = moment
        line.statuses.append(StatusRow(world.next_id("row"), turn.status, moment))


def top_up_balance(world: World, owner: Reseller | ResellerAccount, first_balance: int) -> None:
    """A balance that runs low is filled to what it was, to the cent and logged."""
    if owner.balance < first_balance * LOW_BALANCE_SHARE:
        amount = (first_balance - owner.balance) // 10_000 * 10_000
        owner.balance += amount
        kind = "reseller" if isinstance(owner, Reseller) else "account"
        world.transactions.append(BalanceChange(world.now, kind, owner.id, amount, owner.balance, "Bank transfer"))


def _has_wanted_size(persona: Persona, template: PackageTemplate) -> bool:
    low, high = PACKAGE_SIZES[persona.kind]
    months = 30 / template.period_days if template.recurring else 1  # a day pass is not a small package, it comes every day
    return low * MEBIBYTE <= (template.data_bytes or 0) * months <= high * MEBIBYTE
