"""Random plans: an action with its fields, lines of all kinds with values of their own, and a network that is planted for them."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from simulators.network import packages
from simulators.network.entities import Line, NetworkRefusal, PackageTemplate
from simulators.network.methods.subscribers import begin_line_status
from simulators.network.world import World

STATUSES = ("ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED")
SPEEDS = ("KB_256", "KB_1024", "KB_5120", "UNLIMITED")
STEERING_LISTS = (17, 18, 19)
DAYS = (1, 7, 30, 90)
GIGABYTE = 1 << 30
UNKNOWN_ICCIDS = tuple(f"89883030000099{number:05d}" for number in range(400))
PLANTED_SHARE = 0.6


class DrawnPlan(NamedTuple):
    """A plan to be made. `values`: lines that have one of their own, by ICCID."""

    change: dict[str, Any]
    iccids: list[str]
    values: dict[str, str]

    @property
    def arguments(self) -> dict[str, Any]:
        """The input of plan_changes."""
        if not self.values:
            return {"change": self.change, "lines": {"iccids": self.iccids}}
        rows = [f"{iccid},{self.values.get(iccid, '')}" for iccid in self.iccids]
        return {"change": self.change, "lines": {"csv": "\n".join(["iccid,value", *rows])}}


def fitting(world: World, line: Line, *, recurring: bool) -> list[PackageTemplate]:
    """The templates for the SIM of the line."""
    return [
        template
        for template in world.templates.values()
        if (template.reseller_id, template.sponsor_id) == (line.reseller_id, line.sim.sponsor_id)
        and not template.deleted
        and template.recurring == recurring
    ]


def plant_network(world: World, rng: Random) -> None:
    """Lines of all kinds, none of which does anything by itself."""
    for line in world.lines.values():
        line.persona = line.persona._replace(kind="stock", active_share=0.0, sessions=0.0)
    for line in list(world.lines.values()):
        if line.sim.status != "FREE" and rng.random() < PLANTED_SHARE:
            plant_line(world, line, rng)
    world.forget()


def plant_line(world: World, line: Line, rng: Random) -> None:
    line.steering_list_id = rng.choice((None, *STEERING_LISTS))
    line.bitrate, line.throttled = rng.choice(SPEEDS), False
    line.allowed_data, line.allowed_moc = rng.random() < 0.7, rng.random() < 0.7
    for recurring in (False, False, True):
        found = fitting(world, line, recurring=recurring)
        if found and rng.random() < 0.4:
            try:
                if recurring:
                    packages.assign_package_series(world, line, rng.choice(found), start=None, at_first_use=rng.random() < 0.3)
                else:
                    days = rng.choice((None, *DAYS))
                    packages.assign_package(world, line, rng.choice(found), period=None, validity_days=days)
            except NetworkRefusal:
                continue
    for package in line.packages:
        if rng.random() < 0.2:
            packages.set_package_active(world, package, active=False)
    if line.series and rng.random() < 0.2:
        packages.set_series_active(world, line.series[:1], active=False)
    wanted = rng.choice(("ACTIVE", "ACTIVE", *STATUSES, "END_OF_LIFE"))
    if line.status != wanted:
        begin_line_status(world, line, wanted)


class Drawer:
    """Draws plans for an organisation that has the lines of `accounts`."""

    def __init__(self, rng: Random, world: World, accounts: tuple[int, ...], everybody: tuple[int, ...]) -> None:
        """`everybody`: the accounts whose lines are named, too, whether or not they are the organisation's."""
        self._rng, self._world, self._accounts, self._everybody = rng, world, accounts, everybody

    def draw(self) -> DrawnPlan:
        name = self._rng.choice(tuple(DRAWN_CHANGES))
        return self.with_values(name, {"action": name, **DRAWN_CHANGES[name](self)})

    def with_values(self, name: str, change: dict[str, Any]) -> DrawnPlan:
        """The same change, or, sometimes, another value of it for some lines."""
        rng, iccids = self._rng, self.lines(many=self._rng.random() < 0.01)
        own = OWN_VALUES.get(name)
        if own is None or rng.random() < 0.6:
            return DrawnPlan(change, iccids, {})
        values = {iccid: own(self) for iccid in iccids if rng.random() < 0.6}
        bad = rng.random() < 0.1 and iccids
        if bad:
            values[rng.choice(iccids)] = rng.choice(("nonsense", "-4", "99999999999999999999"))
        return DrawnPlan(change, iccids, values)

    def lines(self, *, many: bool) -> list[str]:
        """ICCIDs of the organisation, of others, and of nobody. `many`: more than are read at once."""
        rng, world = self._rng, self._world
        own = [line.iccid for account in self._accounts for line in world.lines_of(account)]
        foreign = [line.iccid for account in self._everybody if account not in self._accounts for line in world.lines_of(account)]
        found = rng.sample(own, min(len(own), 1 + rng.randrange(8)))
        found += rng.sample(foreign, min(len(foreign), rng.randrange(2)))
        found += rng.sample(UNKNOWN_ICCIDS, 230 if many else rng.randrange(2))
        rng.shuffle(found)
        return found

    def template(self, *, recurring: bool) -> int:
        world, rng = self._world, self._rng
        found = [template.id for template in world.templates.values() if template.recurring == recurring and not template.deleted]
        return rng.choice(found) if rng.random() < 0.4 else self.usual_template(recurring=recurring)

    def usual_template(self, *, recurring: bool) -> int:
        return 55034 if recurring else self._rng.choice((55010, 55011, 55015))

    def held_template(self) -> dict[str, int]:
        """Sometimes only the packages of a template that some line has."""
        held = [package.template_id for line in self._world.lines.values() for package in line.packages]
        return {"packageTemplateId": self._rng.choice(held)} if held and self._rng.random() < 0.3 else {}

    def traffic(self) -> dict[str, Any]:
        rng = self._rng
        names = rng.sample(("data", "moc", "mtc", "sms"), 1 + rng.randrange(4))
        return {name: rng.random() < 0.5 for name in names}

    def steering(self) -> dict[str, Any]:
        rng = self._rng
        change: dict[str, Any] = {"noList": True} if rng.random() < 0.25 else {"listId": rng.choice(STEERING_LISTS)}
        return {**change, "push": True} if rng.random() < 0.3 else change

    def limits(self) -> dict[str, Any]:
        rng = self._rng
        names = rng.sample(("dataLimit", "mocLimit", "mtcLimit", "moSmsLimit", "mtSmsLimit"), 1 + rng.randrange(2))
        return {name: rng.choice((0, 100, GIGABYTE, 5 * GIGABYTE)) for name in names}

    def expiry(self) -> dict[str, Any]:
        rng = self._rng
        return {"validityDays": rng.choice(DAYS)} if rng.random() < 0.6 else {"expires": rng.choice(("2027-02-01", "2027-03-15T10:00:00Z"))}

    def assignment(self) -> dict[str, Any]:
        change: dict[str, Any] = {"packageTemplateId": self.template(recurring=False)}
        return {**change, "validityDays": self._rng.choice(DAYS)} if self._rng.random() < 0.4 else change


DRAWN_CHANGES: Mapping[str, Callable[[Drawer], dict[str, Any]]] = {
    "set_status": lambda draw: {"status": draw._rng.choice(STATUSES)},
    "set_steering_list": Drawer.steering,
    "set_traffic": Drawer.traffic,
    "set_bitrate": lambda draw: {"speedLimit": draw._rng.choice(SPEEDS)},
    "assign_package": Drawer.assignment,
    "assign_series": lambda draw: {"packageTemplateId": draw.template(recurring=True)},
    "stop_series": Drawer.held_template,
    "set_package_status": lambda draw: {"status": draw._rng.choice(("ACTIVE", "INACTIVE")), **draw.held_template()},
    "set_package_expiry": lambda draw: {**draw.expiry(), **draw.held_template()},
    "set_package_limits": lambda draw: {**draw.limits(), **draw.held_template()},
    "delete_packages": Drawer.held_template,
    "move_account": lambda draw: {"accountId": draw._rng.choice(draw._everybody)},
    "end_of_life": lambda draw: {"irreversible": True},
}
"""Every action but set_tags."""
OWN_VALUES: Mapping[str, Callable[[Drawer], str]] = {
    "set_status": lambda draw: draw._rng.choice(STATUSES),
    "set_steering_list": lambda draw: str(draw._rng.choice(("none", *STEERING_LISTS))),
    "set_bitrate": lambda draw: draw._rng.choice(SPEEDS),
    "assign_package": lambda draw: str(draw.template(recurring=False)),
    "assign_series": lambda draw: str(draw.template(recurring=True)),
    "set_package_status": lambda draw: draw._rng.choice(("ACTIVE", "INACTIVE")),
    "set_package_limits": lambda draw: str(draw._rng.choice((100, GIGABYTE))),
    "set_package_expiry": lambda draw: str(draw._rng.choice(DAYS)),
    "move_account": lambda draw: str(draw._rng.choice(draw._everybody)),
}
