"""The radio life of the fleet: runs the clock, and with it everything lines do."""

from simulators.network import charging, packages
from simulators.network.entities import Line
from simulators.network.line_behaviour import ARRIVAL, TICK, Activity
from simulators.network.radio import attach_to_network, needs_attach, seen_on_network
from simulators.network.world import Network, World


def run_world_to(world: World, moment: int) -> None:
    """Run everything after `world.now` and up to `moment`, and set the clock to it. A moment in the past changes nothing.

    Plans depend on seed, line and day alone, and activities run in order of time and line: how the way is cut makes no difference.
    """
    local = _by_country(world) if world.now < moment else {}
    while world.now < moment:
        if not world.agenda.covers(world.now):
            world.agenda.open(world.seed, world.lines, world.now)
        _run_activities(world, local, min(moment, world.agenda.end))


def _run_activities(world: World, local: dict[str, list[Network]], stop: int) -> None:
    """Each activity up to `stop` at its own moment. What a tick makes due joins the rest."""
    agenda = world.agenda
    for id in sorted(agenda.touched):
        line = world.lines[id]
        if line.packages or line.series:
            agenda.add_ticks(id, packages.package_due_moments(world, line, agenda.end))
    agenda.touched.clear()
    while (activity := agenda.next(stop)) is not None:
        world.now = activity.at
        line = world.lines[activity.line_id]
        if activity.kind != TICK:
            _perform_activity(world, local, line, activity)
            continue
        packages.tick_packages(world, line)
        agenda.add_ticks(line.id, [at for at in packages.package_due_moments(world, line, agenda.end) if at > activity.at])
        agenda.touched.discard(line.id)
    world.now = stop


def _perform_activity(world: World, local: dict[str, list[Network]], line: Line, activity: Activity) -> None:
    """Attach where the line is, then use the service as far as somebody pays for it."""
    network = _choose_network(world, line, local.get(activity.iso2, []), activity.chance)
    if network is None or line.status != "ACTIVE":
        return
    if activity.kind == ARRIVAL or not charging.may_use_service(line, activity.kind):
        if needs_attach(line, network, activity.at):
            attach_to_network(world, line, network.network_id, activity.at)
        return
    charging.charge_usage(world, line, activity.kind, activity.quantity, network.network_id, activity.at, activity.other_party)


def _choose_network(world: World, line: Line, local: list[Network], chance: float) -> Network | None:
    """The steering list decides, else the zones of its packages; one time in twelve the phone takes any network it may.

    Choice: a line stays on the network it is on as long as that is as good as another.
    """
    allowed = world.profiles[line.profile_id].network_ids
    there = [network for network in local if network.network_id in allowed]
    if not there:
        return None
    if chance < 1 / 12:
        return there[int(chance * 12 * len(there))]
    steered = _steered(world, line, there)
    if steered is not None:
        return steered
    zones = [world.zones[package.zone_id].networks for package in line.packages if package.in_date(world.now)]
    covered = [network for network in there if any(network.network_id in zone for zone in zones)] if zones else []
    covered = covered or there
    if (seen := line.sighting) is not None:
        for network in covered:
            if seen_on_network(seen, network):
                return network
    return covered[line.id % len(covered)]


def _steered(world: World, line: Line, there: list[Network]) -> Network | None:
    """The first network of the steering list (the line's own, else its account's) that can be had here."""
    list_id = line.steering_list_id or world.accounts[line.account_id].steering_list_id
    if list_id not in world.steering:
        return None
    here = {network.network_id: network for network in there}
    return next((here[network_id] for network_id in world.steering[list_id].network_ids if network_id in here), None)


def _by_country(world: World) -> dict[str, list[Network]]:
    local: dict[str, list[Network]] = {}
    for network in world.networks.values():
        local.setdefault(network.iso2, []).append(network)
    return local
