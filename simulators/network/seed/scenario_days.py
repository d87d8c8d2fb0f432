"""The days of a scenario: the usual history, and what each actor does on each day of it."""

import pickle
from typing import NamedTuple, cast

from simulators.network import packages
from simulators.network.entities import DATA, DAY_SECONDS, Line, Persona
from simulators.network.seed import history
from simulators.network.seed.fleet import StatusChange
from simulators.network.seed.history import History, change_line_status
from simulators.network.seed.scenario_actors import CHEAPEST_STEERING_LIST, ActorRole, ScenarioActor
from simulators.network.seed.scripted_acts import ActScript, perform_acts, release_scripted_lines
from simulators.network.simulation import run_world_to
from simulators.network.world import World
from simulators.seeded_random import seeded_random

AWAY_ROLES: frozenset[ActorRole] = frozenset({"abroad", "no_coverage", "first_trip", "mis_steered"})
QUIET_ROLES: frozenset[ActorRole] = frozenset({"pause", "silence"})
STOPPED_ROLES: frozenset[ActorRole] = frozenset({"blocked", "suspended", "forbidden", "no_coverage"})
ENDING_ROLES: frozenset[ActorRole] = frozenset({"churn", "exhausted", "expired", *STOPPED_ROLES})
"""Who buys nothing from its special time on."""
SPIKE_SESSIONS, SPIKE_FACTOR = 20.0, 12.0
GREEDY_SESSIONS = 6.0
GREEDY_BYTES = 130_000_000
PACKAGES_AT_ONCE = 6
FIRST_MONDAY = 4
"""The first of January 1970 was a Thursday."""


class ScenarioStage(NamedTuple):
    """A world with its history, its actors, and what is written down for other lines."""

    history: History
    actors: list[ScenarioActor]
    script: ActScript

    @property
    def world(self) -> World:
        return self.history.world

    def copy(self) -> "ScenarioStage":
        """A deep copy, which can be run ahead."""
        return cast(ScenarioStage, pickle.loads(pickle.dumps(self)))


def open_scenario(history_: History, actors: list[ScenarioActor], script: ActScript) -> ScenarioStage:
    """Begins the scenario: each actor gets its first package on the first evening.

    Lines of the `script` do what it says; all others live as usual.
    """
    world, scripted = history_.world, script.lines.values()
    played = {*scripted, *(actor.line_id for actor in actors)}
    history_.due |= dict.fromkeys(scripted)
    for actor in actors:
        line = world.lines[actor.line_id]
        history_.moments[line.id] = world.now
        history_.due[line.id] = None
        history.begin_line_life(history_, seeded_random(world.seed, "first package", line.id), line, world.templates[actor.template_id])
    history_.activations = {day: [line for line in lines if line.id not in played] for day, lines in history_.activations.items()}
    history.apply_day(history_, 0)
    return ScenarioStage(history_, actors, script)


def live_scenario(stage: ScenarioStage, until: int) -> None:
    """Lives until `until` (Unix seconds): a midnight begins the day of each actor, an evening ends a day of the history."""
    world, first = stage.world, stage.history.first
    while world.now < until:
        world.agenda.close()  # actors live otherwise from now on
        day = world.now // DAY_SECONDS
        for actor in stage.actors:
            prepare_actor_day(world, actor, world.lines[actor.line_id], day)
        midnight = (world.now // DAY_SECONDS + 1) * DAY_SECONDS
        evening = first + ((world.now - first) // DAY_SECONDS + 1) * DAY_SECONDS
        for stop in sorted({min(midnight, until), min(evening, midnight, until)}):
            run_world_to(world, stop)
            perform_acts(world, stage.script)
            if stop == evening:
                history.apply_day(stage.history, (evening - first) // DAY_SECONDS)


def release_actors(stage: ScenarioStage) -> None:
    """Ends the scenario: actors keep the persona of this day, but those that only paused return to their usual one."""
    stage.world.agenda.close()
    release_scripted_lines(stage.world, stage.script)
    day = stage.world.now // DAY_SECONDS
    for actor in stage.actors:
        line = stage.world.lines[actor.line_id]
        # For good as on this day, but who only pauses comes back.
        line.persona = actor.base if actor.role in ("pause", "weekday", "throttled") else actor_persona(actor, line, day)


def actor_persona(actor: ScenarioActor, line: Line, day: int) -> Persona:
    """The persona of a line on a UTC day (days since 1970)."""
    special = actor.begin <= day < actor.end
    if actor.role == "churn":
        return fading_persona(actor, day)
    if actor.role in QUIET_ROLES:
        return silent_persona(actor.base) if special else actor.base
    if actor.role in AWAY_ROLES:
        return actor.base._replace(home_iso2=actor.place) if special else actor.base
    if actor.role == "spike" and day in actor.days:
        size = int(actor.base.sessions * actor.base.session_bytes * SPIKE_FACTOR / SPIKE_SESSIONS)
        return actor.base._replace(active_share=1.0, sessions=SPIKE_SESSIONS, session_bytes=size)
    if actor.role == "weekday" and (day - FIRST_MONDAY) % 7 >= 5:
        return actor.base._replace(active_share=0.04)
    if actor.role == "throttled" and special and not line.throttled:
        return _greedy_persona(actor.base, GREEDY_BYTES)
    if actor.role == "exhausted" and actor.begin <= day < actor.begin + 2:
        return _greedy_persona(actor.base, max(package.data_limit or 0 for package in line.packages) // 3)
    return actor.base


def fading_persona(actor: ScenarioActor, day: int) -> Persona:
    """Use that gets rarer and smaller each week, and then ends."""
    if day < actor.begin:
        return actor.base
    if day >= actor.end:
        return silent_persona(actor.base)
    gone = (day - actor.begin) / (actor.end - actor.begin)
    return actor.base._replace(
        active_share=actor.base.active_share * (1.0 - gone) ** 1.5,
        session_bytes=int(actor.base.session_bytes * (1.0 - 0.5 * gone)),
        travel_iso2=(),
    )


def silent_persona(persona: Persona) -> Persona:
    return persona._replace(active_share=0.0, travel_iso2=())


def _greedy_persona(persona: Persona, size: int) -> Persona:
    return persona._replace(active_share=1.0, sessions=GREEDY_SESSIONS, session_bytes=size)


def prepare_actor_day(world: World, actor: ScenarioActor, line: Line, day: int) -> None:
    """Prepares a line before a day begins: its persona, its packages, and the change that starts its special time."""
    line.persona = actor_persona(actor, line, day)
    if line.status == "ACTIVE":
        supply_actor(world, actor, line, day)
    if day == actor.begin:
        _change_actor_line(world, actor, line)


def supply_actor(world: World, actor: ScenarioActor, line: Line, day: int) -> None:
    """Buy when nothing is left, before a day of much use as much as that takes, and a last one before the trouble."""
    template = world.templates[actor.template_id]
    if day == actor.begin and actor.role in STOPPED_ROLES:
        packages.assign_package(world, line, template, period=None, validity_days=None)
    if day >= actor.begin and actor.role in ENDING_ROLES:
        return
    wanted = int(line.persona.sessions * line.persona.session_bytes * 1.7) if day in actor.days else 1
    for _ in range(PACKAGES_AT_ONCE):
        if sum(package.units_left(DATA) for package in line.packages if package.in_date(world.now)) >= wanted:
            return
        packages.assign_package(world, line, template, period=None, validity_days=None)


def _change_actor_line(world: World, actor: ScenarioActor, line: Line) -> None:
    if actor.role == "mis_steered":
        line.steering_list_id = CHEAPEST_STEERING_LIST
    elif actor.role == "suspended":
        change_line_status(world, line, StatusChange(world.now, "SUSPENDED"))
    elif actor.role == "forbidden":
        line.allowed_data = False
    elif actor.role == "blocked":
        for package in line.packages:
            packages.set_package_active(world, package, False)
