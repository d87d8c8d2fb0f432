"""eSIMs that the network of an earlier process assigned: a new network assigns them again, so that none is given away twice."""

from collections.abc import Iterable
from typing import NamedTuple

from simulators.network.entities import DAY_SECONDS, Line, NetworkRefusal, Package
from simulators.network.packages import activate_line, assign_package
from simulators.network.wire import parse_wire_moment
from simulators.network.world import World


class IssuedEsim(NamedTuple):
    """A line that was drawn from stock at a moment, with which package. `period` is `start/end` as the wire writes it."""

    iccid: str
    at: int
    template_id: int
    package_id: int | None
    validity_days: int | None
    period: str | None


def restore_esims(world: World, given: Iterable[IssuedEsim]) -> None:
    """Assigns the eSIMs again, oldest first. A line that this world does not have, or has in use, stays as it is."""
    lines = {line.iccid: line for line in world.lines.values()}
    for one in given:
        line = lines.get(one.iccid)
        if line is not None and line.sim.status == "FREE":
            restore_esim(world, line, one)


def restore_esim(world: World, line: Line, given: IssuedEsim) -> None:
    """Puts the former package on its line. Where this world lacks the template the SIM is in use without a package."""
    template = world.templates.get(given.template_id)
    package = None
    if template is not None:
        try:
            package = assign_package(world, line, template, period=package_period(given), validity_days=None)
        except NetworkRefusal:  # the template fits this world's line no more
            package = None
    activate_line(world, line)
    line.sim.affected_at = given.at
    if package is not None:
        package.assigned = given.at
        package.period_days = given.validity_days or package.period_days
        if given.package_id is not None:
            restore_package_id(world, package, given.package_id)


def package_period(given: IssuedEsim) -> tuple[int, int] | None:
    """When the package is valid; nothing where it waits for its first use."""
    if given.validity_days is not None:
        return given.at, given.at + given.validity_days * DAY_SECONDS
    ends = [parse_wire_moment(text) for text in (given.period or "").split("/")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]


def restore_package_id(world: World, package: Package, id: int) -> None:
    """Gives `package` the id that it had; another package that has that id in this world gets a new one."""
    other = world.packages.get(id)
    if other is not None and other is not package:
        renumber_package(world, other, world.next_id("package"))
    renumber_package(world, package, id)
    world.counters["package"] = max(world.counters["package"], id)


def renumber_package(world: World, package: Package, id: int) -> None:
    """Changes the id of a package wherever it is named."""
    old, line = package.id, world.lines[package.line_id]
    del world.packages[old]
    package.id = id
    world.packages[id] = package
    line.cdrs = [cdr._replace(package_id=id) if cdr.package_id == old else cdr for cdr in line.cdrs]
    for held in line.packages:
        held.carry_from = id if held.carry_from == old else held.carry_from
