"""The acts of scripted lives: what happens to a line at a moment, written down before and done by the network's own functions."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from simulators.network import packages
from simulators.network.charging import charge_usage, may_use_service
from simulators.network.entities import DATA, MOC, Line, LineStatus
from simulators.network.radio import attach_to_network
from simulators.network.seed.fleet import ISSUE_STEPS, PROFILE_TYPE, StatusChange
from simulators.network.seed.history import change_line_status
from simulators.network.world import World

CALLED_NUMBER = "4790123456"
RELEASED_SHARE = 0.9
ActKind = Literal["buy", "subscribe", "use", "drain", "call", "attach", "status", "data_off", "pause", "cut", "speed", "steer"]


class ScriptedAct(NamedTuple):
    """What happens to a line at `at` (Unix seconds)."""

    at: int
    line_id: int
    kind: ActKind
    number: int = 0
    """A network, a template or a steering list."""
    size: int = 0
    """Bytes, or seconds of a call."""
    begin: int | None = None
    """When a package or a series begins (Unix seconds), where that has a date."""
    end: int | None = None
    status: LineStatus = "ACTIVE"
    speed: str = ""
    installed: bool = True
    """Whether the profile of a new eSIM is downloaded and enabled at once."""


class ActScript(NamedTuple):
    """Lines by the names of their lives, and all that they will do, the next act last."""

    lines: dict[str, int]
    acts: list[ScriptedAct]


def perform_acts(world: World, script: ActScript) -> None:
    """Carries out what is due, each act at its own moment, and takes it off the script."""
    now = world.now
    while script.acts and script.acts[-1].at <= now:
        act = script.acts.pop()
        world.now = act.at
        ACTS[act.kind](world, world.lines[act.line_id], act)
    world.now = now


def release_scripted_lines(world: World, script: ActScript) -> None:
    """Ends the script: lines that were to be used further live from now on by chance, where they are."""
    places = {code: network.iso2 for network in world.networks.values() for code in network.codes}
    for id in {act.line_id for act in script.acts if act.kind in ("use", "call")}:
        line = world.lines[id]
        if line.sighting is not None:
            line.persona = line.persona._replace(home_iso2=places[line.sighting.mcc, line.sighting.mnc], active_share=RELEASED_SHARE)


def _buy(world: World, line: Line, act: ScriptedAct) -> None:
    is_new = line.sim.status == "FREE"
    period = None if act.begin is None or act.end is None else (act.begin, act.end)
    packages.assign_package(world, line, world.templates[act.number], period=period, validity_days=None)
    if is_new and act.installed:
        _install_profile(world, line, act)


def _subscribe(world: World, line: Line, act: ScriptedAct) -> None:
    is_new = line.sim.status == "FREE"
    packages.assign_package_series(world, line, world.templates[act.number], start=act.begin, at_first_use=False)
    if is_new and act.installed:
        _install_profile(world, line, act)


def _install_profile(world: World, line: Line, act: ScriptedAct) -> None:
    for status, delay in ISSUE_STEPS[1:] if line.sim.esim else ():
        world.now = act.at + delay
        world.add_provider_status(line, status, PROFILE_TYPE)


def _use_data(world: World, line: Line, act: ScriptedAct) -> None:
    """Data, or a session that is refused because nobody pays."""
    if may_use_service(line, DATA):
        charge_usage(world, line, DATA, act.size, act.number, act.at)


def _use_up(world: World, line: Line, act: ScriptedAct) -> None:
    """All that the first package has."""
    charge_usage(world, line, DATA, line.packages[0].units_left(DATA), act.number, act.at)


def _call(world: World, line: Line, act: ScriptedAct) -> None:
    charge_usage(world, line, MOC, act.size, act.number, act.at, CALLED_NUMBER)


def _attach(world: World, line: Line, act: ScriptedAct) -> None:
    attach_to_network(world, line, act.number, act.at)


def _change_status(world: World, line: Line, act: ScriptedAct) -> None:
    change_line_status(world, line, StatusChange(act.at, act.status))


def _switch_data_off(_world: World, line: Line, _act: ScriptedAct) -> None:
    line.allowed_data = False


def _pause_package(world: World, line: Line, _act: ScriptedAct) -> None:
    packages.set_package_active(world, line.packages[0], False)


def _cut_package(world: World, line: Line, act: ScriptedAct) -> None:
    """Another end for the package that runs."""
    running = next(package for package in line.packages if package.in_date(act.at))
    packages.set_package_expiry(world, running, act.end or act.at)


def _limit_speed(_world: World, line: Line, act: ScriptedAct) -> None:
    line.bitrate, line.throttled = act.speed, False


def _steer(_world: World, line: Line, act: ScriptedAct) -> None:
    line.steering_list_id = act.number


ACTS: Mapping[ActKind, Callable[[World, Line, ScriptedAct], None]] = {
    "buy": _buy,
    "subscribe": _subscribe,
    "use": _use_data,
    "drain": _use_up,
    "call": _call,
    "attach": _attach,
    "status": _change_status,
    "data_off": _switch_data_off,
    "pause": _pause_package,
    "cut": _cut_package,
    "speed": _limit_speed,
    "steer": _steer,
}
