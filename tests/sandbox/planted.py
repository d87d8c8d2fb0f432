"""A planted network that tests of planting share: made once, copied where something is done to it."""

from functools import cache

from simulators.network.entities import DAY_SECONDS
from simulators.network.seed.scenario import ScenarioTruth, ScenarioWorld, build_scenario
from simulators.network.world import World
from tests.copies import Original

MIDNIGHT = 1_799_971_200
"""2027-01-15T00:00:00 UTC."""
PLANTED_LINES = 160


@cache
def planted(seed: int = 1, lines: int = PLANTED_LINES) -> ScenarioWorld:
    return build_scenario(seed, MIDNIGHT, lines=lines)


@cache
def original(seed: int = 1, lines: int = PLANTED_LINES) -> Original[World]:
    return Original(planted(seed, lines).world)


def truth_counts(truth: ScenarioTruth) -> dict[str, int]:
    """How many lines there are of each kind."""
    kinds = ("churn", "spikes", "silences", "mis_steered", "wrong_package", "high_cost", "abroad", "troubles")
    return {kind: len(getattr(truth, kind)) for kind in kinds}


def share(count: int, lines: int = PLANTED_LINES) -> float:
    return count / lines


LAST = MIDNIGHT // DAY_SECONDS
