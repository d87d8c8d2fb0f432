"""The packages of a line: what data they have left and where they work, since when there is none, and what they cost."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import NamedTuple

from clients.ocs.wire.package import Package, PackageList, RecurringSeries
from operations.intelligence.lines.usage import CALENDAR_DAYS, micro_euros
from operations.intelligence.offers.offers import MONTH_DAYS
from operations.times import DayWindow
from operations.upstream.lines import PackageState, package_end, package_start, package_state
from registry.clock import DAY_SECONDS

USABLE_STATES = frozenset({"running", "assigned"})


class DataPackage(NamedTuple):
    """A package that holds data; bytes, Unix seconds. `state` looks at the data alone: one that has messages left is exhausted."""

    id: int
    template_id: int
    zone_id: int
    state: PackageState
    limit: int
    used: int
    starts: float | None
    ends: float | None

    @property
    def usable(self) -> bool:
        """Whether data can be taken from it where it works."""
        return self.state in USABLE_STATES

    @property
    def left(self) -> int:
        """Bytes that remain."""
        return max(0, self.limit - self.used)


def data_packages(found: PackageList, now: float) -> list[DataPackage]:
    """The packages that hold data, by id; others cannot explain why there is data or none."""
    single = found.get("callUseSingleCounter", False)
    held = [data_package(row, now, single) for row in found.get("packages", []) if row.get("pckdatabyte", 0) > 0]
    return sorted(held)


def data_package(row: Package, now: float, single: bool) -> DataPackage:
    """A package with its data counter."""
    limit, used = row.get("pckdatabyte", 0), row.get("useddatabyte", 0)
    state = package_state(row, now, single_counter=single)
    if used >= limit and state in USABLE_STATES:
        state = "exhausted"
    starts, ends = package_start(row), package_end(row)
    template = row.get("templateId") or row.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0)
    zone = row.get("locationzoneid") or row.get("rdbLocationZones", {}).get("locationzoneid", 0)
    return DataPackage(
        row.get("subscriberprepaidpackageid", 0),
        template,
        zone,
        state,
        limit,
        used,
        None if starts is None else starts.timestamp(),
        None if ends is None else ends.timestamp(),
    )


def usable_packages(packages: Iterable[DataPackage]) -> list[DataPackage]:
    """The packages from which data can be taken now."""
    return [package for package in packages if package.usable]


def packages_in_date(packages: Sequence[DataPackage], now: float) -> list[DataPackage]:
    """The packages that have not expired, blocked ones included."""
    return [package for package in packages if package.state != "expired" and (package.ends is None or package.ends > now)]


SUPPLYING_STATES = ("assigned", "scheduled", "running")


class PackageSupply(NamedTuple):
    """`ended`: when the last of its packages did; nothing while one is in force, and for a line that never had any."""

    in_force: bool
    ended: date | None
    series_stopped: bool


def package_supply(found: PackageList, now: float, used: date) -> PackageSupply:
    """The supply of packages. A package without anything left ended with the line's last use, `used`."""
    packages, series = found.get("packages", []), found.get("recurring", [])
    single = found.get("callUseSingleCounter", False)
    stopped = any(not series_continues(row) for row in series)
    if any(series_continues(row) for row in series) or any(is_package_supplying(package, now, single) for package in packages):
        return PackageSupply(True, None, stopped)
    return PackageSupply(False, max((package_end_day(package, now, single, used) for package in packages), default=None), stopped)


def is_package_supplying(package: Package, now: float, single: bool) -> bool:
    """Choice: a package of data without data left is used up, even if it has calls left."""
    held = package.get("pckdatabyte") or 0
    return package_state(package, now, single_counter=single) in SUPPLYING_STATES and (held <= 0 or package.get("useddatabyte", 0) < held)


def package_end_day(package: Package, now: float, single: bool, used: date) -> date:
    """The day from which the package was of no use."""
    end = package_end(package)
    expired = end is not None and package_state(package, now, single_counter=single) == "expired"
    return end.date() if end is not None and expired else used


def series_continues(series: RecurringSeries) -> bool:
    """Whether the series will make another package."""
    most = series.get("nbOccurrence")
    return series.get("active", True) and (most is None or series.get("nbCreated", 0) < most)


class PackageSpend(NamedTuple):
    """What the line had in the four weeks."""

    price: int
    """In thirty days, micro-euros."""
    counts: tuple[tuple[int, int], ...]
    """Template ids, in order, with how many packages of each were in force."""
    destinations: frozenset[int]
    """Lists of numbers that outgoing calls in these packages went to."""


def package_spend(found: PackageList, window: DayWindow, costs: Mapping[int, int]) -> PackageSpend:
    """The cost of packages in force in `window`. One that waits for its first use costs nothing yet. `costs`: by template, micro-euros."""
    first = int(datetime(window.first.year, window.first.month, window.first.day, tzinfo=UTC).timestamp())
    price, counts, destinations = Fraction(0), dict[int, int](), set[int]()
    for package in found.get("packages", []):
        share = package_share_in(package, first, first + window.days * DAY_SECONDS)
        if share:
            template = package_template(package)
            price += share * package_cost(package, costs.get(template, 0))
            counts[template] = counts.get(template, 0) + 1
            destinations |= set(package_destinations(package))
    return PackageSpend(round(price * MONTH_DAYS / CALENDAR_DAYS), tuple(sorted(counts.items())), frozenset(destinations))


def package_share_in(package: Package, first: int, end: int) -> Fraction:
    """The share of the package's life that lies between two moments, Unix seconds."""
    starts, ends = package_start(package), package_end(package)
    if starts is None or ends is None or ends <= starts:
        return Fraction(0)
    begin, over = int(starts.timestamp()), int(ends.timestamp())
    return Fraction(max(0, min(over, end) - max(begin, first)), over - begin)


def package_cost(package: Package, otherwise: int) -> int:
    """The package's own cost, else that of its template."""
    return micro_euros(package.get("cost")) or otherwise


def package_template(package: Package) -> int:
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0)


def package_destinations(package: Package) -> Iterable[int]:
    found = package.get("destinationzoneid") or package.get("rdbDestinationZones", {}).get("destinationzoneid")
    return () if found is None else (found,)
