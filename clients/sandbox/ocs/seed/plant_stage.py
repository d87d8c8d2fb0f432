"""A planted world while it is lived through: the usual history, with a morning for every line that has a part."""

import pickle
from typing import NamedTuple, cast

from clients.sandbox.ocs import life
from clients.sandbox.ocs.dice import dice
from clients.sandbox.ocs.entities import DAY
from clients.sandbox.ocs.seed import history
from clients.sandbox.ocs.seed.history import History
from clients.sandbox.ocs.seed.plant_days import morning, settled
from clients.sandbox.ocs.seed.plant_parts import Part
from clients.sandbox.ocs.state import World


class Stage(NamedTuple):
    """The world with its customers, and the parts."""

    history: History
    parts: list[Part]

    @property
    def world(self) -> World:
        """The world as it is now."""
        return self.history.world

    def copy(self) -> "Stage":
        """The same once more, to try what comes."""
        return cast(Stage, pickle.loads(pickle.dumps(self)))


def open_stage(history_: History, parts: list[Part]) -> Stage:
    """The first evening: everybody who has a part gets the first package of it; the others do as ever."""
    world, played = history_.world, {part.line_id for part in parts}
    for part in parts:
        line = world.lines[part.line_id]
        history_.moments[line.id] = world.now
        history_.due[line.id] = None
        history.begin(history_, dice(world.seed, "first package", line.id), line, world.templates[part.template_id])
    history_.activations = {day: [line for line in lines if line.id not in played] for day, lines in history_.activations.items()}
    history.act(history_, 0)
    return Stage(history_, parts)


def live(stage: Stage, until: int) -> None:
    """Live on, cut at midnights for the mornings and at the evenings of the history."""
    world, first = stage.world, stage.history.first
    while world.now < until:
        rise(stage, world.now // DAY)
        midnight = (world.now // DAY + 1) * DAY
        evening = first + ((world.now - first) // DAY + 1) * DAY
        for stop in sorted({min(midnight, until), min(evening, midnight, until)}):
            life.run_to(world, stop)
            if stop == evening:
                history.act(stage.history, (evening - first) // DAY)


def rise(stage: Stage, day: int) -> None:
    """The morning of everybody with a part."""
    stage.world.agenda.close()  # they live otherwise from now on
    for part in stage.parts:
        morning(stage.world, part, stage.world.lines[part.line_id], day)


def settle(stage: Stage) -> None:
    """From here on the world lives by itself."""
    stage.world.agenda.close()
    day = stage.world.now // DAY
    for part in stage.parts:
        line = stage.world.lines[part.line_id]
        line.persona = settled(part, line, day)
