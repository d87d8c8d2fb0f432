"""Lines just beside the limits of what an operator calls a trouble: of each trouble one on either side, and some clear ones.

Their lives are written down act by act, since chance would not end beside a limit. Each act goes through the network's own functions, at
its own moment: these lines buy, attach and are charged as all others.
"""

from collections.abc import Callable, Iterable, Mapping

from simulators.network.charging import find_tariff_rule
from simulators.network.entities import DAY_SECONDS, MICRO_EURO, Line, PackageTemplate, Persona
from simulators.network.seed.fleet import USAGE_PROFILES, LinePlan
from simulators.network.seed.resellers import FJORD, SPX
from simulators.network.seed.scenario_actors import CHEAPEST_STEERING_LIST, steerable_countries
from simulators.network.seed.scripted_acts import ActKind, ActScript, ScriptedAct
from simulators.network.world import World
from simulators.seeded_random import seeded_random

BORDER_ACCOUNTS = (8101, 8102, 8103, 8104)
FEWEST_BORDER_LINES = 400
HOUR = 3_600
MEGABYTE = 1_000_000
DAILY_BYTES = 5 * MEGABYTE
HOME, HOLIDAY, OVERSEAS = "no", "es", "us"
NORDIC_GB, EUROPE_3GB, WORLD_GB, USA_3GB = "Nordic 1GB 30d", "Europe 3GB 30d", "World 1GB 30d", "USA 3GB 30d"
MONTHLY_SERIES, WEEKLY_SERIES, DAILY_SERIES = "Nordic monthly 3GB", "Europe weekly 1GB", "World day pass 200MB"


class BorderLife:
    """The acts of one line while they are written. Days count from the day of the start; a line does most things at one hour of its own."""

    def __init__(self, world: World, line: Line, start: int, partner: PackageTemplate) -> None:
        self.world, self.line, self.start, self.partner = world, line, start, partner
        self.acts: list[ScriptedAct] = []
        line.use_account, line.balance = False, 0
        line.steering_list_id, line.allowed_moc = None, True
        line.persona = Persona("commuter", HOME, (), 0.0, *USAGE_PROFILES["commuter"][1:3], 0.0, 0.0, 0.0)

    def at(self, day: int, hour: float = 10.0) -> int:
        """A moment of a day, some minutes after the hour."""
        return (self.start // DAY_SECONDS + day) * DAY_SECONDS + int(hour * HOUR) + self.line.id % 1_800

    def act(self, at: int, kind: ActKind, number: int = 0, size: int = 0, *, begin: int | None = None, end: int | None = None) -> None:
        self.acts.append(ScriptedAct(at, self.line.id, kind, number, size, begin, end))

    def template(self, name: str) -> PackageTemplate:
        """The template of the shop with this name."""
        return next(one for one in self.world.templates.values() if (one.reseller_id, one.name) == (FJORD, name) and not one.deleted)

    def network(self, iso2: str, template: PackageTemplate | None = None) -> int:
        """The cheapest network of a country that the SIM may use, and that the template's zone has."""
        return min(self.networks(template, iso2), key=lambda number: (self.rate(number) or 1 << 60, number))

    def networks(self, template: PackageTemplate | None, iso2: str = "") -> list[int]:
        """The networks that the SIM may use: of a zone, of a country, or all."""
        allowed = self.world.profiles[self.line.profile_id].network_ids
        zone = allowed if template is None else allowed.intersection(self.world.zones[template.zone_id].network_ids)
        return sorted(number for number in zone if iso2 in ("", self.world.networks[number].iso2))

    def rate(self, network_id: int) -> int:
        """What a mebibyte costs the reseller there, in micro-euro; 0 without a price."""
        tariff = self.world.resellers[FJORD].buy_tariff_id
        found = find_tariff_rule(self.world, tariff, network_id, SPX, self.start)
        return 0 if found is None else found.data_rate or 0

    def buy(self, day: int, name: str, *, until: int | None = None, hour: float = 9.0) -> None:
        """A package that begins with its first use, or one with dates from then `until` (Unix seconds)."""
        at = self.at(day, hour)
        self.act(at, "buy", self.template(name).id, begin=None if until is None else at, end=until)

    def use(self, days: Iterable[int], size: int = DAILY_BYTES, *, iso2: str = HOME, name: str = NORDIC_GB, hour: float = 10.0) -> None:
        """Data on each of these days, where the package of that name works."""
        network_id = self.network(iso2, self.template(name))
        for day in days:
            self.act(self.at(day, hour), "use", network_id, size)

    def suspend(self, at: int) -> None:
        self.acts.append(ScriptedAct(at, self.line.id, "status", status="SUSPENDED"))

    def limit(self, speed: str) -> None:
        """Since three days, by hand."""
        self.acts.append(ScriptedAct(self.at(-3, 7.0), self.line.id, "speed", speed=speed))

    def attach(self, days: Iterable[int], iso2: str = HOME) -> None:
        for day in days:
            self.act(self.at(day, 8.0), "attach", self.network(iso2))

    def live(self, *, name: str = NORDIC_GB, end: int = 28) -> None:
        """Data every day since forty days, and packages one after another."""
        for day in (-40, -10, 20):
            self.buy(day, name)
        self.use(range(-40, end), name=name)


def exhausted_inside(life: BorderLife) -> None:
    """One package was used up yesterday, and the other one ended an hour ago."""
    life.buy(-31, NORDIC_GB, until=life.start + 10 * DAY_SECONDS)
    life.buy(-8, NORDIC_GB, until=life.start - HOUR)
    life.use(range(-31, -1))
    life.act(life.at(-1, 20.0), "drain", life.network(HOME))
    life.use([-1], hour=23.4)


def exhausted_outside(life: BorderLife) -> None:
    """One package is used up, and the other one ends in an hour."""
    life.buy(-31, NORDIC_GB, until=life.start + 10 * DAY_SECONDS)
    life.buy(-8, NORDIC_GB, until=life.start + HOUR)
    life.use(range(-31, -1))
    life.act(life.at(-1, 20.0), "drain", life.network(HOME))
    life.use([-1], hour=23.4)
    life.buy(0, NORDIC_GB)
    life.use(range(1, 28))


def expired_inside(life: BorderLife) -> None:
    """The package ended an hour ago."""
    life.buy(-31, NORDIC_GB, until=life.start - HOUR)
    life.use(range(-31, 0))


def expired_outside(life: BorderLife) -> None:
    """The package ended an hour ago, and the series makes another, which begins in six hours."""
    begins = life.start + 6 * HOUR - 35 * DAY_SECONDS
    life.act(begins - HOUR, "subscribe", life.template(WEEKLY_SERIES).id, begin=begins)
    life.use(range(-34, 28))
    life.act(life.start - 3 * HOUR, "cut", end=life.start - HOUR)


def blocked_inside(life: BorderLife) -> None:
    """The package was paused three days ago, and ends in an hour."""
    life.buy(-31, NORDIC_GB, until=life.start + HOUR)
    life.act(life.at(-3, 7.0), "pause")
    life.use(range(-31, 3))


def blocked_outside(life: BorderLife) -> None:
    """One package is paused; the other one works, and ends in an hour."""
    life.buy(-31, NORDIC_GB, until=life.start + 10 * DAY_SECONDS)
    life.buy(-5, NORDIC_GB, until=life.start + HOUR)
    life.act(life.at(-3, 7.0), "pause")
    life.use(range(-31, 0))
    life.buy(0, NORDIC_GB)
    life.use(range(1, 28))


def _suspended(life: BorderLife, last_use: int) -> None:
    life.buy(-31, NORDIC_GB, until=life.start - 2 * DAY_SECONDS)
    life.use(range(-31, last_use + 1))
    life.suspend(life.at(last_use + 1, 8.0))


def suspended_inside(life: BorderLife) -> None:
    """It was used for the last time not quite two weeks ago; its package is over."""
    _suspended(life, -13)


def suspended_outside(life: BorderLife) -> None:
    """It was used for the last time more than two weeks ago; its package is over."""
    _suspended(life, -15)


def forbidden_inside(life: BorderLife) -> None:
    """Data was switched off three days ago, and the package ends in an hour."""
    life.buy(-31, NORDIC_GB, until=life.start + HOUR)
    life.use(range(-31, -3))
    life.act(life.at(-3, 7.0), "data_off")
    life.attach(range(-3, 3))


def forbidden_outside(life: BorderLife) -> None:
    """Data is switched off on a line that has no package: it only calls."""
    life.line.balance = 60 * MICRO_EURO
    life.act(life.at(-20, 7.0), "data_off")
    for day in range(-40, 28):
        life.act(life.at(day), "call", life.network(HOME), 60)


def no_coverage_inside(life: BorderLife) -> None:
    """Since yesterday where its package does not work."""
    life.buy(-31, NORDIC_GB, until=life.start + 10 * DAY_SECONDS)
    life.use(range(-31, -1))
    life.attach(range(-1, 5), OVERSEAS)
    life.use(range(-1, 5), iso2=OVERSEAS, name=USA_3GB)


def no_coverage_outside(life: BorderLife) -> None:
    """Since yesterday where one of its packages works, which ends in an hour."""
    life.buy(-31, NORDIC_GB, until=life.start + 10 * DAY_SECONDS)
    life.buy(-2, USA_3GB, until=life.start + HOUR)
    life.use(range(-31, -1))
    life.use(range(-1, 5), iso2=OVERSEAS, name=USA_3GB)


def throttled_inside(life: BorderLife) -> None:
    """The greatest limit that is called slow."""
    life.live()
    life.limit("KB_7680")


def throttled_outside(life: BorderLife) -> None:
    """The smallest limit that is not called slow."""
    life.live()
    life.limit("KB_10240")


def _steered(life: BorderLife, outside: Iterable[int]) -> None:
    """On some days on the network that the partners' package leaves out, on the others inside."""
    life.line.balance = 200 * MICRO_EURO
    iso2 = steerable_countries(life.world, life.partner)[life.line.id % 5]
    cheapest = life.world.steering[CHEAPEST_STEERING_LIST].network_ids
    beside = next(number for number in cheapest if life.world.networks[number].iso2 == iso2)
    inside = life.network(iso2, life.partner)
    life.act(life.at(-25, 9.0), "buy", life.partner.id)
    for day in range(-25, 5):
        life.act(life.at(day), "use", beside if day in outside else inside, DAILY_BYTES // 2)


def mis_steered_inside(life: BorderLife) -> None:
    """Steered beside its zone since four of seven days."""
    _steered(life, range(-4, 5))
    life.act(life.at(-4, 7.0), "steer", CHEAPEST_STEERING_LIST)


def mis_steered_outside(life: BorderLife) -> None:
    """Beside its zone on three of seven days, and inside again."""
    _steered(life, (-7, -5, -3))


def wrong_package_inside(life: BorderLife) -> None:
    """The package costs somewhat more than twice what would do."""
    life.live(name=EUROPE_3GB)


def wrong_package_outside(life: BorderLife) -> None:
    """The packages cost not quite twice what would do."""
    life.act(life.at(-40, 9.0), "subscribe", life.template(MONTHLY_SERIES).id, begin=life.at(-40, 9.0))
    life.use(range(-40, 28))


def _dear(life: BorderLife, cost: int) -> None:
    """Where data is dearest, with a package that works there, so that four weeks cost `cost` micro-euro."""
    template = life.template(WORLD_GB)
    network_id = max(life.networks(template), key=lambda number: (life.rate(number), -number))
    daily = (cost << 20) // (28 * life.rate(network_id))
    life.buy(-28, WORLD_GB)
    for day in range(-28, 2):
        life.act(life.at(day), "use", network_id, daily)


def high_cost_inside(life: BorderLife) -> None:
    """The loss is a little more than half of what its customer pays."""
    _dear(life, life.template(WORLD_GB).cost * 31 // 20)


def high_cost_outside(life: BorderLife) -> None:
    """The loss is about a third of what its customer pays."""
    _dear(life, life.template(WORLD_GB).cost * 133 // 100)


def _away(life: BorderLife, days: Iterable[int]) -> None:
    """On some days on holiday, on the others at home."""
    there = {*days}
    for day in (-40, -10, 20):
        life.buy(day, EUROPE_3GB)
    life.use((day for day in range(-40, 28) if day not in there), name=EUROPE_3GB)
    life.use(sorted(there), iso2=HOLIDAY, name=EUROPE_3GB)


def abroad_inside(life: BorderLife) -> None:
    """Since yesterday in a country where it has never been."""
    _away(life, range(-1, 5))


def abroad_outside(life: BorderLife) -> None:
    """Since yesterday in a country where it is on one day in ten."""
    _away(life, (-40, -30, -20, -10, *range(-1, 5)))


def _burst(life: BorderLife, size: int) -> None:
    for day in (-40, -10, 20):
        life.buy(day, NORDIC_GB)
    life.use(day for day in range(-40, 28) if day != -3)
    life.use([-3], size)


def spike_inside(life: BorderLife) -> None:
    """Five times a usual day, to the byte."""
    _burst(life, 5 * DAILY_BYTES)


def spike_outside(life: BorderLife) -> None:
    """4.9 times a usual day."""
    _burst(life, 49 * DAILY_BYTES // 10)


def _silent(life: BorderLife, first: int) -> None:
    """Used on nine days of ten, then silent from `first` on, and back after the start."""
    for day in (-40, -10, 20):
        life.buy(day, NORDIC_GB)
    life.use(day for day in (*range(-40, first), *range(2, 28)) if day % 10 != 7)


def silence_inside(life: BorderLife) -> None:
    """Five days."""
    _silent(life, -5)


def silence_outside(life: BorderLife) -> None:
    """Four days."""
    _silent(life, -4)


def _fading(life: BorderLife) -> None:
    """Daily, then every third day, then twice in two weeks."""
    for day in (-55, -25):
        life.buy(day, NORDIC_GB)
    life.use([*range(-55, -35), -34, -31, -28, -25, -22, -18, -13, -8])


def churn_inside(life: BorderLife) -> None:
    """The last use was eight days ago, and there is none after it."""
    _fading(life)


def churn_outside(life: BorderLife) -> None:
    """The last use was eight days ago as well, but a package was bought after it, and is used after the start."""
    _fading(life)
    life.buy(-2, NORDIC_GB)
    life.use(range(3, 28, 2))


def _running_series(life: BorderLife, name: str, begin: int, last_use: int) -> None:
    begins = life.at(begin, 9.0)
    life.act(begins, "subscribe", life.template(name).id, begin=begins)
    life.use(range(begin, last_use + 1))
    life.suspend(life.at(last_use, 20.0))


def series_inside(life: BorderLife) -> None:
    """Suspended weeks ago; the series makes its tenth and last package in some days."""
    _running_series(life, WEEKLY_SERIES, -58, -21)


def series_outside(life: BorderLife) -> None:
    """Suspended weeks ago; the series has made its last package."""
    _running_series(life, DAILY_SERIES, -17, -17)


def series_plain(life: BorderLife) -> None:
    """Suspended weeks ago; the series goes on for ever."""
    _running_series(life, MONTHLY_SERIES, -50, -30)


def _issued(life: BorderLife, at: int) -> None:
    """Every other profile is downloaded and enabled."""
    life.acts.append(ScriptedAct(at, life.line.id, "buy", life.template(EUROPE_3GB).id, installed=life.line.id % 2 == 0))


def never_attached_inside(life: BorderLife) -> None:
    """Issued three days and two hours ago."""
    _issued(life, life.start - 74 * HOUR)


def never_attached_outside(life: BorderLife) -> None:
    """Issued two hours less than three days ago."""
    _issued(life, life.start - 70 * HOUR)


def never_attached_plain(life: BorderLife) -> None:
    """Issued three weeks ago."""
    _issued(life, life.at(-20))


BORDER_LIVES: Mapping[str, Callable[[BorderLife], None]] = {
    "never_attached plain": never_attached_plain,
    "never_attached inside": never_attached_inside,
    "never_attached outside": never_attached_outside,
    "forbidden outside": forbidden_outside,
    "exhausted inside": exhausted_inside,
    "exhausted outside": exhausted_outside,
    "expired inside": expired_inside,
    "expired outside": expired_outside,
    "blocked inside": blocked_inside,
    "blocked outside": blocked_outside,
    "suspended inside": suspended_inside,
    "suspended outside": suspended_outside,
    "forbidden inside": forbidden_inside,
    "no_coverage inside": no_coverage_inside,
    "no_coverage outside": no_coverage_outside,
    "throttled inside": throttled_inside,
    "throttled outside": throttled_outside,
    "mis_steered inside": mis_steered_inside,
    "mis_steered outside": mis_steered_outside,
    "wrong_package inside": wrong_package_inside,
    "wrong_package outside": wrong_package_outside,
    "high_cost inside": high_cost_inside,
    "high_cost outside": high_cost_outside,
    "abroad inside": abroad_inside,
    "abroad outside": abroad_outside,
    "spike inside": spike_inside,
    "spike outside": spike_outside,
    "silence inside": silence_inside,
    "silence outside": silence_outside,
    "churn inside": churn_inside,
    "churn outside": churn_outside,
    "series_running_on_suspended plain": series_plain,
    "series_running_on_suspended inside": series_inside,
    "series_running_on_suspended outside": series_outside,
}
"""By trouble and side: `inside` has it just so, `outside` has it not quite, and `plain` clearly. Those that fit few lines choose first."""
NEW_SIMS = frozenset({"never_attached plain", "never_attached inside", "never_attached outside"})
OLD_SIMS = frozenset({"forbidden outside"})
"""What is never given a package must have been issued before."""


def cast_border_lines(world: World, plans: list[LinePlan], played: set[int], partner: PackageTemplate, start: int) -> ActScript:
    """One line for each life, of those that are used and that the other actors leave."""
    free = {plan.line_id for plan in plans if plan.used and not plan.turns} - played
    waiting = [line for account in BORDER_ACCOUNTS for line in world.lines_of(account) if line.id in free and line.sim.sponsor_id == SPX]
    seeded_random(world.seed, "borders").shuffle(waiting)
    lines: dict[str, int] = {}
    acts: list[ScriptedAct] = []
    for name, write in BORDER_LIVES.items():
        line = next((line for line in waiting if _fits_life(line, name)), None)
        if line is None:
            raise ValueError(f"no line is left for {name}")
        waiting.remove(line)
        lines[name] = line.id
        life = BorderLife(world, line, start, partner)
        write(life)
        acts += life.acts
    return ActScript(lines, sorted(acts, key=lambda act: (act.at, act.line_id), reverse=True))


def _fits_life(line: Line, name: str) -> bool:
    if name in NEW_SIMS:
        return line.sim.status == "FREE" and line.sim.esim
    return line.sim.status == "AFFECTED" or name not in OLD_SIMS
