"""A simulated network with something to find in it: the same customers, some of whom live as an operator's trouble does.

What is planted goes through the same shops, radio life and charging as all else; nothing is written into records. The truth is returned
beside the world, which does not have it.
"""

from typing import NamedTuple

from clients.sandbox.ocs.entities import DAY
from clients.sandbox.ocs.seed import history
from clients.sandbox.ocs.seed.build import without_lines
from clients.sandbox.ocs.seed.fleet import add_fleet
from clients.sandbox.ocs.seed.plant_cast import cast
from clients.sandbox.ocs.seed.plant_stage import Stage, live, open_stage, settle
from clients.sandbox.ocs.seed.plant_truth import WINDOW, Truth, observe
from clients.sandbox.ocs.seed.plant_wares import add_partners
from clients.sandbox.ocs.state import World

FEWEST_LINES, FEWEST_DAYS = 140, 60


class Planted(NamedTuple):
    """A world, and what is true in it."""

    world: World
    truth: Truth


def plant(seed: int, start: int, *, history_days: int = 90, lines: int = 400) -> Planted:
    """A world as `build` makes it, with parts for some of its lines. The same arguments give the same world and the same truth.

    The truth is seen in a copy that is run on for four weeks, in which customers buy as before.
    """
    if lines < FEWEST_LINES or history_days < FEWEST_DAYS:
        raise ValueError(f"{lines} lines with {history_days} days of history: planting takes {FEWEST_LINES} lines and {FEWEST_DAYS} days")
    stage = staged(seed, start, start - history_days * DAY, lines)
    live(stage, start)
    later = stage.copy()
    live(later, start + WINDOW * DAY)
    truth = observe(stage, later.world)
    settle(stage)
    return Planted(stage.world, truth)


def staged(seed: int, start: int, first: int, lines: int) -> Stage:
    """The world on its first evening."""
    world = without_lines(seed, start)
    plans = add_fleet(world, lines, first, start)
    world.now = first
    told = history.prepare(world, plans, first)
    partner = add_partners(world)  # after the shop was filled: only those buy it who have a part with it
    return open_stage(told, cast(world, plans, told.shop, partner, start // DAY))
