"""The parts that lines of a planted world play: what an operator would like to find, what looks like it, and how many of each."""

from typing import Literal, NamedTuple

from clients.sandbox.ocs.entities import Persona

Role = Literal[
    "churn",
    "pause",
    "spike",
    "silence",
    "mis_steered",
    "partner",
    "wrong_package",
    "high_cost",
    "abroad",
    "exhausted",
    "expired",
    "blocked",
    "suspended",
    "forbidden",
    "no_coverage",
    "throttled",
    "regular_heavy",
    "weekday",
    "first_trip",
]
Cause = Literal["exhausted", "expired", "blocked", "suspended", "forbidden", "no_coverage", "throttled"]
CAUSES: tuple[Cause, ...] = ("exhausted", "expired", "blocked", "suspended", "forbidden", "no_coverage", "throttled")
PENNILESS: frozenset[Role] = frozenset({"exhausted", "expired", "blocked", "no_coverage"})
"""Nobody pays for what their packages do not: else the line would work, and there would be no trouble."""

# In the order in which they choose their lines: who fits few lines comes first. Shares of all lines of an account.
PEOPLE: dict[Role, float] = {
    "mis_steered": 0.09,
    "partner": 0.03,
    "high_cost": 0.05,
    "expired": 0.012,
    "throttled": 0.012,
    "exhausted": 0.012,
    "blocked": 0.012,
    "no_coverage": 0.012,
    "suspended": 0.012,
    "forbidden": 0.012,
    "wrong_package": 0.06,
    "churn": 0.08,
    "pause": 0.025,
    "spike": 0.06,
    "silence": 0.03,
    "abroad": 0.05,
    "regular_heavy": 0.03,
    "weekday": 0.03,
    "first_trip": 0.03,
}
MACHINES: dict[Role, float] = {"churn": 0.08, "spike": 0.06, "silence": 0.04, "pause": 0.03, "abroad": 0.07}
MACHINE_ACCOUNT = 8102


class Part(NamedTuple):
    """What one line is to do. Days are UTC days since 1970; its special time is from `begin` until before `end`."""

    role: Role
    line_id: int
    base: Persona
    template_id: int
    begin: int
    end: int
    place: str = ""
    """The country of its special time, where that is not where it lives."""
    days: tuple[int, ...] = ()
    """The days of its spikes."""


def shares(account_id: int) -> dict[Role, float]:
    """Who there is to cast in an account."""
    return MACHINES if account_id == MACHINE_ACCOUNT else PEOPLE
