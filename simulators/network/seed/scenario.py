"""A scenario: a simulated network in which some lines show what an operator looks for, and the truth about it.

Actors buy, attach and are charged as all other lines; nothing is written into records. The truth is read from what happened, and is
returned beside the world, which does not hold it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from statistics import median
from typing import NamedTuple

from simulators.network.entities import DATA, DAY_SECONDS, MT_SMS, Cdr, Line, Package
from simulators.network.seed import history
from simulators.network.seed.build import world_without_lines
from simulators.network.seed.fleet import add_fleet
from simulators.network.seed.scenario_actors import (
    TROUBLE_CAUSES,
    ActorRole,
    ScenarioActor,
    TroubleCause,
    add_partner_template,
    cast_actors,
)
from simulators.network.seed.scenario_borders import FEWEST_BORDER_LINES, cast_border_lines
from simulators.network.seed.scenario_days import ScenarioStage, live_scenario, open_scenario, release_actors
from simulators.network.seed.scripted_acts import ActScript
from simulators.network.world import World

FEWEST_LINES, FEWEST_DAYS = 140, 60
OBSERVED_DAYS = 28
"""Days before the start in which things are looked for, and after it in which use is missed."""
SPIKE_RATIO = 5.0
"""Times the usual day of use, and at least one and a half times any other day: what an operator would call a spike."""
SPIKE_OVER_OTHER_DAYS = 1.5
REGULAR_DAYS, DAYS_BEFORE_SILENCE = 9, 14
NEGATIVE_ROLES: tuple[ActorRole, ...] = ("pause", "partner", "regular_heavy", "weekday", "first_trip")


@dataclass(frozen=True, slots=True)
class ScenarioTruth:
    """Lines by their ICCID. Days are UTC days, countries ISO codes in lower case."""

    seed: int
    start: int
    churn: tuple[str, ...]
    """Faded on purpose, and without any use in the 28 days after the start."""
    gone: tuple[str, ...]
    """Every active line that was used in the 28 days before the start and is not in the 28 after it; those above are among them.

    Messages that come in are not use: they are free and come whoever has left. Lines with a trouble of the scenario are in neither list:
    they are silenced, which is no leaving.
    """
    staying: tuple[str, ...]
    """Every active line that was used before and is used after it."""
    spikes: Mapping[str, tuple[date, ...]]
    silences: Mapping[str, tuple[date, ...]]
    faint: Mapping[str, tuple[date, ...]]
    """Days that were meant as spikes, and did not become what an operator would call one."""
    mis_steered: Mapping[str, tuple[str, ...]]
    """And the countries in which it happened."""
    strays: Mapping[str, tuple[str, ...]]
    """Other lines that used data outside of a package that would have covered it, now and then."""
    wrong_package: Mapping[str, int]
    """And the template they hold."""
    high_cost: tuple[str, ...]
    abroad: Mapping[str, tuple[str, str]]
    """Where the line is expected, and where it is."""
    troubles: Mapping[str, TroubleCause]
    negatives: Mapping[str, tuple[str, ...]]
    """Lines that look like something and are not, by what they look like."""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class ScenarioWorld(NamedTuple):
    world: World
    truth: ScenarioTruth


def build_scenario(seed: int, start: int, *, history_days: int = 90, lines: int = 400) -> ScenarioWorld:
    """A world as `build_world` makes it, with some of its lines as actors. The same arguments give the same world and the same truth.

    The truth is seen in a copy that is run on for four weeks, in which customers buy as before. Raises ValueError for too few lines.
    """
    pair = build_scenario_pair(seed, start, history_days=history_days, lines=lines)
    return ScenarioWorld(pair.world, pair.truth)


class ScenarioPair(NamedTuple):
    """A world at its start, the copy of it that was run on for four weeks, and the truth."""

    world: World
    later: World
    truth: ScenarioTruth
    borders: dict[str, str]
    """The ICCIDs of the lines beside the limits, which are in no list of the truth, by trouble and side."""

    def as_json(self) -> dict[str, object]:
        return {**self.truth.as_json(), "borders": self.borders}


def build_scenario_pair(seed: int, start: int, *, history_days: int = 90, lines: int = 400, borders: bool = False) -> ScenarioPair:
    """What `build_scenario` makes. With `borders` further lines live just beside the limits of troubles."""
    fewest = FEWEST_BORDER_LINES if borders else FEWEST_LINES
    if lines < fewest or history_days < FEWEST_DAYS:
        raise ValueError(f"{lines} lines with {history_days} days of history: planting takes {fewest} lines and {FEWEST_DAYS} days")
    stage = stage_scenario(seed, start, start - history_days * DAY_SECONDS, lines, borders=borders)
    live_scenario(stage, start)
    later = stage.copy()
    live_scenario(later, start + OBSERVED_DAYS * DAY_SECONDS)
    truth = observe_scenario(stage, later.world)
    release_actors(stage)
    beside = {name: stage.world.lines[number].iccid for name, number in stage.script.lines.items()}
    return ScenarioPair(stage.world, later.world, truth, beside)


def stage_scenario(seed: int, start: int, first: int, lines: int, *, borders: bool = False) -> ScenarioStage:
    """The world on its first evening, with all actors chosen, and those whose lives are written down."""
    world = world_without_lines(seed, start)
    plans = add_fleet(world, lines, first, start)
    world.now = first
    past = history.prepare_history(world, plans, first)
    partner = add_partner_template(world)  # after the shop was filled: only the actors that are given it buy it
    actors = cast_actors(world, plans, past.shop, partner, start // DAY_SECONDS)
    played = {actor.line_id for actor in actors}
    script = cast_border_lines(world, plans, played, partner, start) if borders else ActScript({}, [])
    return open_scenario(past, actors, script)


def observe_scenario(stage: ScenarioStage, later: World) -> ScenarioTruth:
    """Look at the world at its start, and at the same world four weeks later."""
    silenced = {actor.line_id for actor in stage.actors if actor.role in TROUBLE_CAUSES}
    eye = WorldObserver(stage.world, later, silenced | {*stage.script.lines.values()})
    by_role: dict[ActorRole, list[ScenarioActor]] = {}
    for actor in stage.actors:
        by_role.setdefault(actor.role, []).append(actor)

    def lines(role: ActorRole) -> Iterable[tuple[Line, ScenarioActor]]:
        return ((stage.world.lines[actor.line_id], actor) for actor in by_role.get(role, ()))

    gone = eye.gone()
    found_spikes = {line.iccid: (eye.spikes(line, actor), actor.days) for line, actor in lines("spike")}
    strays = {line.iccid: places for line in stage.world.lines.values() if (places := eye.strayed(line))}
    steered = {line.iccid: strays[line.iccid] for line, actor in lines("mis_steered") if eye.mostly_outside(line, actor)}
    return ScenarioTruth(
        seed=stage.world.seed,
        start=stage.world.now,
        churn=tuple(line.iccid for line, _ in lines("churn") if line.iccid in gone),
        gone=tuple(sorted(gone)),
        staying=eye.staying(),
        spikes={iccid: days for iccid, (days, _) in found_spikes.items() if days},
        silences={line.iccid: days for role in ("silence", "pause") for line, actor in lines(role) if (days := eye.silence(line, actor))},
        faint={iccid: rest for iccid, (days, meant) in found_spikes.items() if (rest := tuple(sorted({*map(utc_day, meant)} - {*days})))},
        mis_steered=steered,
        strays={iccid: places for iccid, places in strays.items() if iccid not in steered},
        wrong_package={line.iccid: actor.template_id for line, actor in lines("wrong_package") if eye.holds(line, actor.template_id)},
        high_cost=tuple(line.iccid for line, _ in lines("high_cost") if eye.is_dear(line)),
        abroad={line.iccid: (actor.base.home_iso2, actor.place) for line, actor in lines("abroad") if eye.seen_in(line, actor.place)},
        troubles={line.iccid: cause for cause in TROUBLE_CAUSES for line, actor in lines(cause) if eye.troubled(line, actor, cause)},
        negatives={role: tuple(line.iccid for line, _ in lines(role)) for role in NEGATIVE_ROLES},
    )


def utc_day(number: int) -> date:
    """The date of a day that is counted from 1970 in UTC."""
    return datetime.fromtimestamp(number * DAY_SECONDS, UTC).date()


class WorldObserver:
    """Compares a world with the same world four weeks later."""

    def __init__(self, world: World, later: World, silenced: set[int]) -> None:
        self.world, self.later, self.silenced = world, later, silenced
        self.last = world.now // DAY_SECONDS
        self.since = (self.last - OBSERVED_DAYS) * DAY_SECONDS
        costs = [self.cost(line) for line in world.lines.values()]
        self.usual_cost = sum(costs) / max(1, sum(cost > 0 for cost in costs))

    def recent(self, line: Line) -> list[Cdr]:
        """The call records of the last 28 days, without incoming messages."""
        return [cdr for cdr in line.cdrs if cdr.at >= self.since and cdr.usage_type != MT_SMS]

    def data(self, line: Line) -> dict[int, int]:
        """The bytes of data that a line used in the last 28 days, by day since 1970."""
        found: dict[int, int] = {}
        for cdr in self.recent(line):
            if cdr.usage_type == DATA:
                found[cdr.at // DAY_SECONDS] = found.get(cdr.at // DAY_SECONDS, 0) + cdr.quantity
        return found

    def used(self) -> list[tuple[str, bool]]:
        """Active lines with use before the start, and whether there is use after it."""
        now = self.world.now
        lines = (line for line in self.world.lines.values() if line.id not in self.silenced)
        living = [line for line in lines if line.status == "ACTIVE" and self.recent(line)]
        after = {line.id: self.later.lines[line.id].cdrs[len(line.cdrs) :] for line in living}
        return [(line.iccid, any(cdr.at >= now and cdr.usage_type != MT_SMS for cdr in after[line.id])) for line in living]

    def gone(self) -> set[str]:
        """The ICCIDs of the lines of `used` that have no use after the start."""
        return {iccid for iccid, goes_on in self.used() if not goes_on}

    def staying(self) -> tuple[str, ...]:
        """The ICCIDs of the lines of `used` that have use after the start, sorted."""
        return tuple(sorted(iccid for iccid, goes_on in self.used() if goes_on))

    def spikes(self, line: Line, actor: ScenarioActor) -> tuple[date, ...]:
        """The days of `actor` on which use stands out as a spike."""
        data = self.data(line)
        others = [bytes_ for day, bytes_ in data.items() if day not in actor.days] or [0]
        least = max(SPIKE_RATIO * median(others), SPIKE_OVER_OTHER_DAYS * max(others), 1)
        return tuple(sorted(utc_day(day) for day in actor.days if data.get(day, 0) >= least))

    def silence(self, line: Line, actor: ScenarioActor) -> tuple[date, ...]:
        """The whole silent days of a line that was used nearly every day before."""
        used = {cdr.at // DAY_SECONDS for cdr in line.cdrs if cdr.at >= self.since - DAYS_BEFORE_SILENCE * DAY_SECONDS}
        before = sum(day in used for day in range(actor.begin - DAYS_BEFORE_SILENCE, actor.begin))
        days = range(actor.begin, min(actor.end, self.last))
        return tuple(utc_day(day) for day in days) if before >= REGULAR_DAYS and not used & {*days} else ()

    def outside(self, line: Line) -> list[Cdr]:
        """Data that a balance paid although a package would have, on another network of the country."""
        records = [cdr for cdr in self.recent(line) if cdr.usage_type == DATA and cdr.package_id is None]
        return [cdr for cdr in records if any(self.would_pay(package, cdr) for package in line.packages)]

    def would_pay(self, package: Package, cdr: Cdr) -> bool:
        """Whether `package` would have paid for `cdr` on another network of the country; it still has data today."""
        country = self.world.networks[cdr.network_id].iso2
        zone = self.world.zones[package.zone_id].network_ids
        covers = cdr.network_id not in zone and any(self.world.networks[one].iso2 == country for one in zone)
        return covers and package.assigned <= cdr.at and package.in_date(cdr.at) and package.units_left(DATA) > 0

    def strayed(self, line: Line) -> tuple[str, ...]:
        """The countries of the data that `outside` finds."""
        return tuple(sorted({self.world.networks[cdr.network_id].iso2 for cdr in self.outside(line)}))

    def mostly_outside(self, line: Line, actor: ScenarioActor) -> bool:
        """Whether half of the line's data or more, since its steering list changed, was used outside of its packages."""
        since = actor.begin * DAY_SECONDS
        whole = sum(cdr.quantity for cdr in line.cdrs if cdr.usage_type == DATA and cdr.at >= since)
        return 0 < whole <= 2 * sum(cdr.quantity for cdr in self.outside(line) if cdr.at >= since)

    def holds(self, line: Line, template_id: int) -> bool:
        """Whether a package of `template_id` is in date and used."""
        return any(package.template_id == template_id and package.data_used for package in self.current(line))

    def cost(self, line: Line) -> int:
        """What the line cost the reseller in the last 28 days, in micro-euro."""
        return sum(cdr.reseller_cost for cdr in self.recent(line))

    def is_dear(self, line: Line) -> bool:
        """Whether the line cost at least three times the average of lines that are used."""
        return self.cost(line) >= 3 * self.usual_cost

    def seen_in(self, line: Line, iso2: str) -> bool:
        """Whether the line was last seen in a country."""
        seen = line.sighting
        return seen is not None and any((seen.mcc, seen.mnc) in one.codes for one in self.world.networks.values() if one.iso2 == iso2)

    def current(self, line: Line) -> list[Package]:
        return [package for package in line.packages if package.in_date(self.world.now)]

    def troubled(self, line: Line, actor: ScenarioActor, cause: TroubleCause) -> bool:
        """Whether the line has the trouble `cause`, and no other."""
        current = self.current(line)
        stocked = [package for package in current if package.units_left(DATA)]
        if cause in ("suspended", "forbidden"):
            return bool(stocked) and (line.status == "SUSPENDED" if cause == "suspended" else not line.allowed_data)
        if cause == "throttled":
            return line.throttled and any(package.throttled_kbps for package in stocked)
        if cause == "exhausted":
            return bool(current) and not stocked
        if cause == "expired":
            return not current and bool(line.packages) and line.status == "ACTIVE"
        if cause == "blocked":
            return not current and any(not package.active and package.units_left(DATA) for package in line.packages)
        return bool(stocked) and self.seen_in(line, actor.place) and not any(self.works_in(package, actor.place) for package in stocked)

    def works_in(self, package: Package, iso2: str) -> bool:
        """Whether the package's zone has a network in a country."""
        return any(self.world.networks[one].iso2 == iso2 for one in self.world.zones[package.zone_id].network_ids)
