"""The cheapest packages for a line, found a second time: from the network's own records and templates, by best-first search with flows.

The question is the one that optimize_package says it answers (docs/intelligence.md); how it is answered has nothing in common with it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import lcm
from typing import NamedTuple, Protocol

from benchmarks.intelligence_reference import WINDOW
from simulators.network.entities import DATA, DAY_SECONDS, MO_SMS, MOC, MT_SMS, MTC, Cdr, Line, PackageTemplate
from simulators.network.world import World

MONTH, MARGIN = 30, 110
KINDS = (DATA, MOC, MTC, MO_SMS, MT_SMS)
MOST_STATES = 60_000
Needs = dict[int, dict[int, int]]
"""By kind of use and network, what thirty days take."""


class RecordedUse(Protocol):
    """A network whose lines were used: the day that is not over, and the call records of the weeks before it."""

    @property
    def network(self) -> World: ...

    @property
    def today(self) -> int: ...

    def records(self, line: Line) -> list[Cdr]: ...


class Ware(NamedTuple):
    """A package for thirty days: what it costs and holds, how many of it reach over the time, and where it works."""

    template_id: int
    price: int
    turns: int
    holds: tuple[int, ...]
    networks: frozenset[int]


class Cheapest(NamedTuple):
    """The least price in micro-euros. `certain`: the search was not cut short, as the price is not what is found else but a bound."""

    price: int
    certain: bool


def needs_of(world: RecordedUse, line: Line) -> Needs:
    """All data, and of calls and messages what packages paid: four weeks as thirty days with a tenth more, each network by itself."""
    found: dict[int, Counter[int]] = {kind: Counter() for kind in KINDS}
    for cdr in world.records(line):
        if cdr.usage_type in found:
            found[cdr.usage_type][cdr.network_id] += cdr.quantity if cdr.usage_type == DATA else cdr.in_package
    return {kind: {one: more(amount) for one, amount in amounts.items() if amount} for kind, amounts in found.items()}


def more(amount: int) -> int:
    """Thirty days and a tenth, rounded up."""
    return -(-amount * MONTH * MARGIN // (WINDOW * 100))


def wares_of(world: RecordedUse, line: Line) -> list[Ware]:
    """What the catalogue has for this SIM."""
    used = {cdr.at // DAY_SECONDS - (world.today - WINDOW) for cdr in world.records(line)}
    templates = world.network.templates.values()
    mine = [one for one in templates if (one.reseller_id, one.sponsor_id, one.deleted) == (line.reseller_id, line.sim.sponsor_id, False)]
    lists = destinations_of(world, line)
    return [ware_of(world, one, used, lists) for one in mine if one.cost > 0 and one.period_days > 0]


def destinations_of(world: RecordedUse, line: Line) -> set[int]:
    """Lists of numbers of packages that were in force: records do not say whom else they called."""
    first, end = (world.today - WINDOW) * DAY_SECONDS, world.today * DAY_SECONDS
    return {
        package.destination_id
        for package in line.packages
        if package.destination_id is not None and (package.activated or end) < end and (package.expires or first) > first
    }


def ware_of(world: RecordedUse, template: PackageTemplate, used: set[int], lists: set[int]) -> Ware:
    """A template; one that lasts longer counts with its part of a month."""
    calls = template.moc_seconds if template.destination_id is None or template.destination_id in lists else 0
    held = (template.data_bytes, calls, template.mtc_seconds, template.mo_sms, template.mt_sms)
    days = max(template.period_days, MONTH)
    return Ware(
        template.id,
        -(-template.cost * MONTH // days),
        turns(used, template.period_days),
        tuple((volume or 0) * MONTH // days for volume in held),
        frozenset(world.network.zones[template.zone_id].network_ids),
    )


def coverable(needs: Needs, wares: Sequence[Ware]) -> Needs | None:
    """Without data that no package covers anywhere; nothing when calls or messages are not covered, which packages paid."""
    found: Needs = {}
    for place, kind in enumerate(KINDS):
        works = {one for ware in wares if ware.holds[place] for one in ware.networks}
        found[kind] = {one: amount for one, amount in needs[kind].items() if one in works}
        if kind != DATA and len(found[kind]) < len(needs[kind]):
            return None
    return found


def turns(used: set[int], days: int) -> int:
    """How many in a row reach over the days of use, wherever the thirty days begin in the four weeks that repeat."""
    if days >= MONTH or not used:
        return 1
    return min(sum(1 for _ in beginnings(used, days, start)) for start in range(WINDOW))


def beginnings(used: set[int], days: int, start: int) -> Iterator[int]:
    """The days on which a package begins."""
    place = start
    while place < start + MONTH:
        if place % WINDOW in used:
            yield place
            place += days
        else:
            place += 1


def cheapest(needs: Needs, wares: Sequence[Ware]) -> Cheapest:
    """Sets of packages by what they cost at least, until one covers the need, which must be coverable."""
    useful = [ware for ware in wares if any(ware.holds[place] and ware.networks & needs[kind].keys() for place, kind in enumerate(KINDS))]
    waiting: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    for _ in range(MOST_STATES):
        _, price, chosen = heappop(waiting)
        if covers(needs, [useful[one] for one in chosen]):
            return Cheapest(price, True)
        for one in range(chosen[-1] if chosen else 0, len(useful)):
            more_ = (*chosen, one)
            cost = price + useful[one].price
            heappush(waiting, (cost + at_least(needs, useful, more_), cost, more_))
    return Cheapest(waiting[0][0], False)


def at_least(needs: Needs, wares: Sequence[Ware], chosen: Sequence[int]) -> int:
    """What the data that is still missing costs at its cheapest price per byte, by packages that may still be added."""
    need = sum(needs[DATA].values())
    missing = need - sum(min(wares[one].holds[0], need) for one in chosen)
    if missing <= 0:
        return 0
    return min((-(-ware.price * missing // ware.holds[0]) for ware in wares[chosen[-1] :] if ware.holds[0]), default=1 << 60)


def covers(needs: Needs, packages: Sequence[Ware]) -> bool:
    """Whether every kind of use can be divided among the packages."""
    return all(flows(needs[kind], packages, place) for place, kind in enumerate(KINDS))


def flows(need: Mapping[int, int], packages: Sequence[Ware], kind: int) -> bool:
    """Whether all of a kind finds a package: a flow from packages to networks, pushed along one path after another."""
    whole = lcm(1, *(package.turns for package in packages))
    room = [package.holds[kind] * whole for package in packages]
    edges = [{one: amount * whole // package.turns for one, amount in need.items() if one in package.networks} for package in packages]
    taken: list[Counter[int]] = [Counter() for _ in packages]
    return all(pushed(network, amount * whole, room, edges, taken) for network, amount in need.items())


def pushed(network: int, amount: int, room: list[int], edges: list[dict[int, int]], taken: list[Counter[int]]) -> bool:
    """Find packages for a network's need; what is in their way moves to others."""
    while amount > 0:
        path = way(network, room, edges, taken)
        if path is None:
            return False
        amount -= push(path, amount, room, edges, taken)
    return True


Step = tuple[int, int, int]
"""A package takes of a network, in place of what it had of another (-1: it has room)."""


def way(network: int, room: list[int], edges: list[dict[int, int]], taken: list[Counter[int]]) -> list[Step] | None:
    """The shortest chain of moves that ends at a package with room."""
    chains: list[tuple[int, list[Step]]] = [(network, [])]
    met = {network}
    for wanted, chain in chains:
        for place, edge in enumerate(edges):
            if edge.get(wanted, 0) <= taken[place][wanted]:
                continue
            if room[place]:
                return [*chain, (place, wanted, -1)]
            for other, amount in taken[place].items():
                if amount and other not in met:
                    met.add(other)
                    chains.append((other, [*chain, (place, wanted, other)]))
    return None


def push(path: list[Step], amount: int, room: list[int], edges: list[dict[int, int]], taken: list[Counter[int]]) -> int:
    """As much as the whole chain lets through."""
    limits = [edges[place][wanted] - taken[place][wanted] for place, wanted, _ in path]
    limits += [room[place] if other < 0 else taken[place][other] for place, _, other in path]
    moved = min(amount, *limits)
    for place, wanted, other in path:
        taken[place][wanted] += moved
        if other < 0:
            room[place] -= moved
        else:
            taken[place][other] -= moved
    return moved
