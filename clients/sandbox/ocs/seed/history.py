"""The months before the start: customers get their lines, buy packages, renew them, leave; the radio life runs in between."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from clients.sandbox.ocs import coverage, life, packages
from clients.sandbox.ocs.dice import Random, dice
from clients.sandbox.ocs.entities import DATA, DAY, Account, Line, Reseller, StatusRow, Template, Transaction
from clients.sandbox.ocs.provider import add_provider_status
from clients.sandbox.ocs.seed.cards import PROFILE_TYPE, STEPS
from clients.sandbox.ocs.seed.personas import Kind
from clients.sandbox.ocs.seed.plan import Plan, Turn
from clients.sandbox.ocs.seed.shopping import Shop
from clients.sandbox.ocs.state import World

RENEWAL: dict[Kind, float] = {"traveller": 0.9, "commuter": 0.93, "heavy": 0.95, "tracker": 0.95, "dormant": 0.25, "stock": 0.0}
"""How likely a customer whose data is gone buys again."""
LOW = 0.25
"""Of the first balance: below it the balance is topped up."""


@dataclass(slots=True)
class History:
    """A history on its way: what is still to come, and who thinks about buying."""

    world: World
    shop: Shop
    activations: dict[int, list[Line]]
    """By day since the first: who is activated in the day before."""
    turns: dict[int, list[tuple[Line, Turn]]]
    moments: dict[int, int]
    """When within its day a line is activated."""
    first: int
    due: dict[int, int | None] = field(default_factory=dict[int, int | None])
    """Lines without data: the day they buy again, None for never."""
    balances: dict[int, int] = field(default_factory=dict[int, int])


def run(world: World, plans: list[Plan], first: int, start: int) -> None:
    """Live through the history day by day, up to `start`."""
    world.now = first
    history = prepare(world, plans, first)
    act(history, 0)
    for day, moment in enumerate(range(first, start, DAY), start=1):
        life.run_to(world, min(moment + DAY, start))
        act(history, day)


def prepare(world: World, plans: list[Plan], first: int) -> History:
    """Sort what will happen by day."""
    history = History(world, Shop(world), {}, {}, {}, first)
    history.balances = {owner.id: owner.balance for owner in owners(world)}
    for plan in plans:
        line = world.lines[plan.line_id]
        if plan.used:
            moment = first if plan.activation is None else plan.activation
            history.moments[line.id] = moment
            history.activations.setdefault(day_of(moment, first), []).append(line)
        for turn in plan.turns:
            history.turns.setdefault(day_of(turn.at, first), []).append((line, turn))
    return history


def day_of(moment: int, first: int) -> int:
    """The evening at which something of the day before is carried out."""
    return -(-(moment - first) // DAY)


def owners(world: World) -> list[Reseller | Account]:
    """Everybody who has a balance to keep up."""
    return [*world.resellers.values(), *(account for account in world.accounts.values() if not account.package_only)]


def act(history: History, day: int) -> None:
    """What customers and resellers did in the day that just went by."""
    world = history.world
    for line in history.activations.get(day, ()):
        activate(history, line)
    renew(history, day)
    for line, turn in history.turns.get(day, ()):
        change_status(world, line, turn)
    for owner in owners(world):
        top_up(world, owner, history.balances[owner.id])


@contextmanager
def earlier(world: World, line: Line, moment: int) -> Generator[int]:
    """Act at a moment of the day that went by, but never before the line's last use."""
    now = world.now
    used = now if line.last_usage_at is None else line.last_usage_at
    world.now = moment if line.last_usage_at is None else min(now, max(moment, used))
    try:
        yield world.now
    finally:
        world.now = now


def activate(history: History, line: Line) -> None:
    """The first package; a profile that was not in use is downloaded and enabled."""
    chance = dice(history.world.seed, "first package", line.id)
    template = history.shop.pick(chance, line)
    if template is not None:
        begin(history, chance, line, template)


def begin(history: History, chance: Random, line: Line, template: Template) -> None:
    """The life of a line with its first package."""
    world = history.world
    evening, is_new = world.now, line.sim.status == "FREE"
    with earlier(world, line, history.moments[line.id]) as moment:
        buy(world, chance, line, template)
        for status, delay in STEPS[1:] if is_new and line.sim.esim else ():
            world.now = min(moment + delay, evening)
            add_provider_status(world, line, status, PROFILE_TYPE)


def buy(world: World, chance: Random, line: Line, template: Template) -> None:
    """A package that begins with its first use, now and then one with a date, or a series."""
    if template.recurring:
        packages.assign_recurring(world, line, template, start=None, at_first_use=chance.random() < 0.5)
        return
    days = template.period_days if chance.random() < 0.2 else None
    packages.assign(world, line, template, period=None, validity_days=days)


def renew(history: History, day: int) -> None:
    """Lines whose data is gone buy again after some days, or never."""
    for line in history.world.lines.values():
        if line.packages and line.status == "ACTIVE" and not supplied(line, history.world.now):
            if line.id not in history.due:
                history.due[line.id] = next_visit(history, line, day)
            elif history.due[line.id] == day:
                del history.due[line.id]
                shop_again(history, line)


def supplied(line: Line, now: int) -> bool:
    """Whether a package has data left, or a series goes on."""
    if any(series.active and (series.occurrences is None or series.created < series.occurrences) for series in line.series):
        return True
    return any(coverage.in_date(package, now) and coverage.left(package, DATA) for package in reversed(line.packages))


def next_visit(history: History, line: Line, day: int) -> int | None:
    """The day a customer comes back, drawn once for each time the data is gone."""
    chance = dice(history.world.seed, "renewal", line.id, len(line.packages))
    return day + chance.choice((1, 1, 1, 2, 3, 5)) if chance.random() < RENEWAL[line.persona.kind] else None


def shop_again(history: History, line: Line) -> None:
    """Mostly the same package once more, else another."""
    world, chance = history.world, dice(history.world.seed, "again", line.id, len(line.packages))
    former = world.templates[line.packages[-1].template_id]
    template = former if chance.random() < 0.6 and not former.recurring else history.shop.pick(chance, line)
    if template is not None:
        with earlier(world, line, world.now - chance.randrange(DAY * 2 // 3)):
            buy(world, chance, line, template)


def change_status(world: World, line: Line, turn: Turn) -> None:
    """Suspended, given up, or active again; nothing follows the end of life."""
    with earlier(world, line, turn.at) as moment:
        line.statuses[-1].end = moment
        line.statuses.append(StatusRow(world.next_id("row"), turn.status, moment))


def top_up(world: World, owner: Reseller | Account, first_balance: int) -> None:
    """A balance that runs low is filled to what it was, to the cent and logged."""
    if owner.balance < first_balance * LOW:
        amount = (first_balance - owner.balance) // 10_000 * 10_000
        owner.balance += amount
        kind = "reseller" if isinstance(owner, Reseller) else "account"
        world.transactions.append(Transaction(world.now, kind, owner.id, amount, owner.balance, "Bank transfer"))
