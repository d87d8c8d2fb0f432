"""What a planted network says of itself: looked up in its own records, never asked over the wire."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median

from simulators.network.entities import DATA, DAY_SECONDS, Cdr, Line
from simulators.network.seed.resellers import FJORD
from simulators.network.seed.scenario import DAYS_BEFORE_SILENCE, REGULAR_DAYS, SPIKE_OVER_OTHER_DAYS, SPIKE_RATIO, ScenarioWorld
from simulators.network.world import World

WINDOW = 28
COUNTED_DAYS = (7, 30, 60)
SILENT_DAYS = 5


@dataclass(frozen=True, slots=True)
class Reference:
    """The world, seen by the reseller whose token asks."""

    planted: ScenarioWorld

    @property
    def network(self) -> World:
        """The planted network itself."""
        return self.planted.world

    @property
    def now(self) -> int:
        """The moment of the start."""
        return self.planted.truth.start

    @property
    def today(self) -> int:
        """The UTC day of the start, which is not over."""
        return self.now // DAY_SECONDS

    @property
    def lines(self) -> dict[str, Line]:
        """The lines it may see, by ICCID."""
        return {line.iccid: line for line in self.planted.world.lines.values() if line.reseller_id == FJORD}

    def mine(self, iccids: Iterable[str]) -> set[str]:
        """Those of some lines that it may see."""
        return self.lines.keys() & set(iccids)

    def part_of(self, iccid: str) -> str:
        """What was planted on a line, in words for people."""
        truth = self.planted.truth
        kinds = ("churn", "spikes", "faint", "silences", "mis_steered", "wrong_package", "high_cost", "abroad")
        found = [kind for kind in kinds if iccid in getattr(truth, kind)]
        found += [kind for kind, iccids in truth.negatives.items() if iccid in iccids]
        found += [truth.troubles[iccid]] if iccid in truth.troubles else []
        return ", ".join(found) or f"nothing planted, {self.lines[iccid].persona.kind}"

    @property
    def first_day(self) -> date:
        """Of the window, which ends before today."""
        return day_of(self.today - WINDOW)

    @property
    def last_day(self) -> date:
        """The last whole day."""
        return day_of(self.today - 1)

    def records(self, line: Line, days: int = WINDOW) -> list[Cdr]:
        """The last whole days."""
        return [cdr for cdr in line.cdrs if (self.today - days) * DAY_SECONDS <= cdr.at < self.today * DAY_SECONDS]

    def costs(self) -> dict[str, int]:
        """Micro-euros that each line cost the reseller."""
        return {iccid: sum(cdr.reseller_cost for cdr in self.records(line)) for iccid, line in self.lines.items()}

    def network_costs(self, line: Line) -> dict[int, int]:
        """The same by network, which may have several codes."""
        found = Counter[int]()
        for cdr in self.records(line):
            found[cdr.network_id] += cdr.reseller_cost
        return dict(found)

    def network_of(self, mcc: int, mnc: int) -> int:
        """The number of the network that has a code."""
        networks = self.planted.world.networks.values()
        return next(one.network_id for one in networks for code in one.codes if (int(code[0]), int(code[1])) == (mcc, mnc))

    def country_costs(self) -> dict[str, int]:
        """The same by country, of all lines."""
        found = Counter[str]()
        for line in self.lines.values():
            for cdr in self.records(line):
                found[self.country(cdr)] += cdr.reseller_cost
        return dict(found)

    def country(self, cdr: Cdr) -> str:
        """Upper case."""
        return self.planted.world.networks[cdr.network_id].iso2.upper()

    def seen_in(self, line: Line) -> str | None:
        """The country of the last registration, upper case."""
        seen = line.sighting
        codes = {code: network.iso2.upper() for network in self.planted.world.networks.values() for code in network.codes}
        return None if seen is None else codes[seen.mcc, seen.mnc]

    def fleet_counts(self) -> dict[str, object]:
        """As fleet_health counts them: by the day of last use."""
        issued = [line for line in self.lines.values() if line.sim.status != "FREE"]
        week, month, silent = (self.today - days for days in COUNTED_DAYS)
        used = [(line, None if line.last_usage_at is None else line.last_usage_at // DAY_SECONDS) for line in issued]
        idle = [day for line, day in used if line.status == "ACTIVE" and day is not None and day < month]
        return {
            "in_stock": len(self.lines) - len(issued),
            "issued": len(issued),
            "by_status": dict(sorted(Counter(line.status for line in issued).items())),
            "used_7d": sum(day is not None and day >= week for _, day in used),
            "used_30d": sum(day is not None and day >= month for _, day in used),
            "never_used": sum(day is None for _, day in used),
            "idle_30d": len(idle),
            "silent_60d": sum(day < silent for day in idle),
            "suspended": sum(line.status == "SUSPENDED" for line in issued),
        }

    def account_counts(self, account_id: int) -> dict[str, int]:
        """Issued lines and free eSIMs of an account."""
        lines = [line for line in self.lines.values() if line.account_id == account_id]
        free = sum(line.sim.status == "FREE" and line.sim.esim for line in lines)
        return {"issued": sum(line.sim.status != "FREE" for line in lines), "free_esims": free}

    def countries(self) -> dict[str, tuple[int, int]]:
        """Lines and bytes of data by country, of issued lines."""
        lines, data = Counter[str](), Counter[str]()
        for line in self.lines.values():
            records = self.records(line)
            lines.update({self.country(cdr) for cdr in records})
            for cdr in records:
                data[self.country(cdr)] += cdr.quantity if cdr.usage_type == DATA else 0
        return {country: (lines[country], data[country]) for country in lines}

    def sales(self) -> dict[int, tuple[int, int, int]]:
        """Lines, packages of the window, and packages of the window before, by template."""
        lines, now, before = dict[int, set[int]](), Counter[int](), Counter[int]()
        for line in self.lines.values():
            for package in line.packages:
                day = package.assigned // DAY_SECONDS - (self.today - WINDOW)
                if package.data_limit and day >= -WINDOW:
                    lines.setdefault(package.template_id, set()).add(line.id)
                    (now if day >= 0 else before)[package.template_id] += 1
        return {number: (len(found), now[number], before[number]) for number, found in lines.items()}

    def daily(self, iccid: str, *, money: bool = False) -> dict[int, int]:
        """Bytes of data, or the cost of everything, by day of the window."""
        found = Counter[int]()
        for cdr in self.records(self.lines[iccid]):
            found[cdr.at // DAY_SECONDS] += cdr.reseller_cost if money else cdr.quantity if cdr.usage_type == DATA else 0
        return {day: figure for day, figure in found.items() if figure}

    def is_spike(self, iccid: str, day: str, *, money: bool) -> bool:
        """What an operator would call one: five times the usual day with use, and more than half as much again as any that is none."""
        figures, number = self.daily(iccid, money=money), number_of(day)
        planted = {number_of(one.isoformat()) for one in self.planted.truth.spikes.get(iccid, ())}
        others = [figure for other, figure in figures.items() if other != number and other not in planted]
        return bool(others) and figures.get(number, 0) >= max(SPIKE_RATIO * median(others), SPIKE_OVER_OTHER_DAYS * max(others))

    def spike_told(self, iccid: str, day: str) -> str:
        """A spike and the usual day, in megabytes."""
        figures = self.daily(iccid)
        return f"{figures.get(number_of(day), 0) / 1e6:.1f} MB, usual {median(figures.values()) / 1e6:.1f} on {len(figures)} days"

    def is_silence(self, iccid: str, day: str) -> bool:
        """What an operator would call one: five days without anything, after use on two days of three."""
        used, number = {cdr.at // DAY_SECONDS for cdr in self.lines[iccid].cdrs}, number_of(day)
        quiet = not used & set(range(number, min(number + SILENT_DAYS, self.today)))
        return (
            quiet and number + 2 < self.today and sum(number - back in used for back in range(1, DAYS_BEFORE_SILENCE + 1)) >= REGULAR_DAYS
        )

    def healthy(self) -> list[str]:
        """Lines whose newest use of data, of the last two days, a package paid that has more, and that nothing slows down."""
        found: list[str] = []
        for iccid, line in self.lines.items():
            data = [cdr for cdr in line.cdrs if cdr.usage_type == DATA]
            newest = data[-1] if data else None
            if newest is None or newest.at < self.now - 2 * DAY_SECONDS or newest.package_id is None or line.bitrate != "UNLIMITED":
                continue
            package = self.planted.world.packages.get(newest.package_id)
            if package is not None and package.in_date(self.now) and package.units_left(DATA) > 0 and self.still_there(line, newest):
                found.append(iccid)
        return found

    @staticmethod
    def still_there(line: Line, newest: Cdr) -> bool:
        """On the network of its newest use, and free to use it."""
        seen = line.sighting
        return seen is not None and (seen.mcc, seen.mnc) == (newest.mcc, newest.mnc) and line.status == "ACTIVE" and line.allowed_data


def number_of(day: str) -> int:
    """A UTC day since 1970."""
    return (date.fromisoformat(day) - date(1970, 1, 1)).days


def day_of(number: int) -> date:
    """A UTC day."""
    return datetime.fromtimestamp(0, UTC).date() + timedelta(days=number)
