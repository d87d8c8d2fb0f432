"""What others do to the lines of the simulated network, so that nobody tells us: half of it through its control API."""

from collections.abc import Awaitable, Callable
from random import Random

import orjson

from simulators.network import charging, packages
from simulators.network.entities import DATA, MICRO_EURO, MOC, UNLIMITED_BITRATE, ImsiRow, Line, NetworkRefusal, PackageTemplate
from simulators.network.methods.subscribers import assign_phone_number, begin_line_status
from simulators.network.radio import attach_to_network
from simulators.network.seed.fleet import LinePlan, make_line
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World

CHANGED_STATUSES = ("ACTIVE", "ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED")
DAY = 86_400


class ForeignChanges:
    """Somebody else at the same network."""

    def __init__(self, network: SimulatedNetwork, rng: Random, accounts: tuple[int, ...]) -> None:
        """`accounts`: whose lines are changed; they move among these."""
        self._network, self._rng, self._accounts = network, rng, accounts
        self.told: list[str] = []
        self.untold: set[int] = set()
        """Lines whose packages were changed in a way that no list tells: they are read again within a week."""

    @property
    def world(self) -> World:
        world = self._network.world
        assert world is not None
        return world

    def any_line(self, *, alive: bool = True) -> Line | None:
        found = [line for line in self.world.lines.values() if line.account_id in self._accounts]
        found = [line for line in found if not alive or line.status != "END_OF_LIFE"]
        return self._rng.choice(found) if found else None

    def fitting(self, line: Line, *, recurring: bool) -> PackageTemplate | None:
        """A template for the SIM of the line."""
        found = [
            template
            for template in self.world.templates.values()
            if (template.reseller_id, template.sponsor_id) == (line.reseller_id, line.sim.sponsor_id)
            and not template.deleted
            and template.recurring == recurring
        ]
        return self._rng.choice(found) if found else None

    async def change(self) -> None:
        """One change, of some kind. What the network refuses does not happen."""
        name, make = self._rng.choice(CHANGES)
        line = self.any_line()
        if line is None:
            return
        try:
            made = make(self, line)
            if made is not None:
                await made
        except NetworkRefusal as refused:
            self.told.append(f"{name} {line.id}: refused, {refused.message}")
            return
        self.told.append(f"{name} {line.id}")
        if make in UNTOLD:
            self.untold.add(line.id)

    def network_id(self, line: Line) -> int:
        world = self.world
        allowed = world.profiles[line.profile_id].network_ids
        seen = line.sighting
        here = [each.network_id for each in world.networks.values() if seen is not None and (seen.mcc, seen.mnc) in each.codes]
        return here[0] if here and self._rng.random() < 0.7 else self._rng.choice(sorted(allowed))

    async def control(self, path: str, **body: object) -> None:
        """What cannot be done there is left undone."""
        await self._network.handle("POST", f"/control/{path}", body=orjson.dumps(body))


def use_data(others: ForeignChanges, line: Line) -> Awaitable[None] | None:
    network, quantity = others.network_id(line), others._rng.randrange(1, 200_000_000)
    if others._rng.random() < 0.5:
        return others.control("usage", iccid=line.iccid, networkId=network, usageType=DATA, quantity=quantity)
    charging.use_service(others.world, line, DATA, quantity, network_id=network)
    return None


def call_somebody(others: ForeignChanges, line: Line) -> None:
    charging.use_service(
        others.world, line, MOC, others._rng.randrange(1, 600), network_id=others.network_id(line), other_party="4790000001"
    )


def attach(others: ForeignChanges, line: Line) -> Awaitable[None] | None:
    network = others.network_id(line)
    if others._rng.random() < 0.5:
        return others.control("attach", iccid=line.iccid, networkId=network)
    attach_to_network(others.world, line, network, others.world.now)
    return None


def change_status(others: ForeignChanges, line: Line) -> None:
    begin_line_status(others.world, line, "END_OF_LIFE" if others._rng.random() < 0.05 else others._rng.choice(CHANGED_STATUSES))


def change_settings(others: ForeignChanges, line: Line) -> None:
    rng = others._rng
    line.allowed_data, line.allowed_moc = rng.random() < 0.8, rng.random() < 0.8
    line.steering_list_id = rng.choice((None, 17, 18, 19))
    line.bitrate, line.throttled = rng.choice((UNLIMITED_BITRATE, "KB_256", "KB_1024")), False
    line.balance += rng.randrange(5) * MICRO_EURO


def change_contact(others: ForeignChanges, line: Line) -> None:
    line.name, line.email = f"Foreign {others._rng.randrange(1000)}", others._rng.choice((None, "foreign@post.example"))


def change_number(others: ForeignChanges, line: Line) -> None:
    assign_phone_number(others.world, line, f"4799{others._rng.randrange(10**6):06d}", real=True)


def change_card(others: ForeignChanges, line: Line) -> None:
    world, old = others.world, line.imsis[-1]
    old.end, number = world.now, world.next_id("row")
    line.imsis.append(ImsiRow(number, old.imsi, f"{old.iccid[:12]}{number:07d}", world.now))


def give_package(others: ForeignChanges, line: Line) -> None:
    template = others.fitting(line, recurring=False)
    if template is not None:
        days = others._rng.choice((None, 1, 7, 30))
        packages.assign_package(others.world, line, template, period=None, validity_days=days)


def give_series(others: ForeignChanges, line: Line) -> None:
    template = others.fitting(line, recurring=True)
    if template is not None:
        packages.assign_package_series(others.world, line, template, start=None, at_first_use=others._rng.random() < 0.3)


def change_package(others: ForeignChanges, line: Line) -> None:
    rng, world = others._rng, others.world
    if not line.packages:
        return
    package = rng.choice(line.packages)
    what = rng.randrange(4)
    if what == 0:
        packages.set_package_limits(world, package, (rng.randrange(1 << 31), None, None, None, None), "foreign")
    elif what == 1:
        packages.set_package_expiry(world, package, world.now + rng.randrange(1, 20) * DAY)
    elif what == 2:
        packages.set_package_active(world, package, not package.active)
    else:
        packages.remove_package(world, package)


def change_series(others: ForeignChanges, line: Line) -> None:
    if line.series:
        series = others._rng.choice(line.series)
        packages.set_series_active(others.world, [series], not series.active)


def move_line(others: ForeignChanges, line: Line) -> None:
    line.account_id = others._rng.choice(others._accounts)
    others.world.lookup.moved()


def deliver_line(others: ForeignChanges, line: Line) -> None:
    world = others.world
    made = make_line(world, world.accounts[line.account_id], LinePlan(used=False), world.now - DAY, world.now)
    world.lines[made.id] = made


def remove_line(others: ForeignChanges, line: Line) -> None:
    del others.world.lines[line.id]


def free_card(others: ForeignChanges, line: Line) -> None:
    line.sim.status, line.sim.affected_at = "FREE", None


CHANGES: tuple[tuple[str, Callable[[ForeignChanges, Line], Awaitable[None] | None]], ...] = (
    *[("use", use_data)] * 6,
    ("call", call_somebody),
    *[("attach", attach)] * 2,
    *[("status", change_status)] * 2,
    ("settings", change_settings),
    ("contact", change_contact),
    ("number", change_number),
    ("card", change_card),
    *[("package", give_package)] * 2,
    ("series", give_series),
    *[("package change", change_package)] * 3,
    ("series change", change_series),
    *[("move", move_line)] * 2,
    ("new line", deliver_line),
    ("removed", remove_line),
    ("freed", free_card),
)

UNTOLD = (give_package, give_series, change_package, change_series)
