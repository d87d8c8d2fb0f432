"""How the lines of each account live."""

from typing import Literal, NamedTuple

from clients.sandbox.ocs.dice import Random
from clients.sandbox.ocs.entities import Persona
from clients.sandbox.ocs.seed.regions import countries
from clients.sandbox.ocs.seed.resellers import DEMO_ACCOUNT

Kind = Literal["traveller", "commuter", "heavy", "tracker", "dormant", "stock"]


class Habit(NamedTuple):
    """A kind of life, per day; `bytes` is one session's."""

    active_share: float
    sessions: float
    bytes: int
    travel_share: float
    calls: float
    messages: float


HABITS: dict[Kind, Habit] = {
    "traveller": Habit(0.45, 2.2, 22_000_000, 0.35, 0.15, 0.2),
    "commuter": Habit(0.7, 2.0, 18_000_000, 0.06, 0.3, 0.3),
    "heavy": Habit(0.85, 3.0, 75_000_000, 0.15, 0.4, 0.4),
    "tracker": Habit(0.5, 2.0, 160_000, 0.12, 0.0, 0.02),
    "dormant": Habit(0.03, 1.0, 4_000_000, 0.05, 0.02, 0.02),
    "stock": Habit(0.0, 0.0, 0, 0.0, 0.0, 0.0),
}
FLAVOURS: dict[int, dict[Kind, float]] = {
    DEMO_ACCOUNT: {"traveller": 50, "commuter": 25, "heavy": 10, "dormant": 15},
    8102: {"tracker": 95, "dormant": 5},
    8103: {"traveller": 60, "commuter": 20, "heavy": 20},
    8104: {"traveller": 70, "dormant": 30},
    8201: {"traveller": 45, "commuter": 45, "dormant": 10},
    8202: {"traveller": 60, "heavy": 10, "dormant": 30},
}
FJORD_HOMES = {"no": 46, "se": 14, "dk": 10, "fi": 8, "de": 8, "gb": 6, "pl": 4, "fr": 2, "es": 2}
ALPINE_HOMES = {"ch": 50, "at": 20, "de": 15, "it": 8, "fr": 7}
NEAR = countries("es it fr de gb gr pt nl at hr dk se pl ch tr ie be cz fi is")
FAR = countries("us th jp ae sg ca br au za mx id hk kr eg in ke nz vn do ma")


def weighted(chance: Random, weights: dict[str, float]) -> str:
    """One of the words."""
    return chance.choices(list(weights), list(weights.values()))[0]


def persona(chance: Random, account_id: int) -> Persona:
    """The life of one line."""
    flavour = FLAVOURS[account_id]
    kind = chance.choices(list(flavour), list(flavour.values()))[0]
    home = weighted(chance, dict(FJORD_HOMES if account_id < 8200 else ALPINE_HOMES))
    habit = HABITS[kind]
    volume = int(habit.bytes * chance.uniform(0.6, 1.7))
    return Persona(kind, home, trips(chance, kind, home), habit.active_share, habit.sessions, volume, *habit[3:])


def trips(chance: Random, kind: Kind, home: str) -> tuple[str, ...]:
    """Where a line goes: machines stay near, travellers go far now and then."""
    near = chance.sample([iso2 for iso2 in NEAR if iso2 != home], 3 if kind == "tracker" else chance.randint(1, 3))
    far = chance.sample(FAR, chance.randint(1, 2)) if kind in ("traveller", "heavy") and chance.random() < 0.3 else []
    return (*near, *far)


def stock(home: str) -> Persona:
    """A SIM in a drawer."""
    return Persona("stock", home, (), *HABITS["stock"])
