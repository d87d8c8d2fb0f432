"""What packages bring in: each one's price by the part of its life that lay in some days.

A price is what the customer pays the operator; it is copied from the template when the package is assigned.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from clients.ocs.packages import Package, PackageList
from operations.intelligence.lines.usage import CALENDAR_DAYS
from operations.intelligence.offers.offers import MONTH_DAYS
from operations.times import DayWindow
from operations.upstream.lines import package_end, package_start
from operations.upstream.usage import micro_euros

PACKAGE_DAY_SECONDS = 86_400


class PackageSpend(NamedTuple):
    """What the line had in the four weeks."""

    price: int
    """In thirty days, micro-euros."""
    counts: tuple[tuple[int, int], ...]
    """Template ids, in order, with how many packages of each were in force."""
    destinations: frozenset[int]
    """Lists of numbers that outgoing calls in these packages went to."""
    zones: tuple[int, ...]
    """Of these packages, and of those that wait for their first use, as far as they hold data."""


class PackagePart(NamedTuple):
    """A package, the share of its life that lay in some days, and its whole price in micro-euros."""

    package: Package
    share: Fraction
    price: int


def package_spend(found: PackageList, window: DayWindow, costs: Mapping[int, int]) -> PackageSpend:
    """The packages in force in `window`. One that waits for its first use costs nothing yet. `costs`: by template, micro-euros."""
    price, counts, destinations, zones = Fraction(0), dict[int, int](), set[int](), waiting_zones(found)
    for package, share, whole in package_parts(found, window, costs):
        template = package_template(package)
        price += share * whole
        counts[template] = counts.get(template, 0) + 1
        destination = package.get("destinationzoneid") or package.get("rdbDestinationZones", {}).get("destinationzoneid")
        destinations |= set() if destination is None else {destination}
        if package.get("pckdatabyte", 0) > 0:
            zones.add(package_zone(package))
    monthly = round(price * MONTH_DAYS / CALENDAR_DAYS)
    return PackageSpend(monthly, tuple(sorted(counts.items())), frozenset(destinations), tuple(sorted(zones)))


def waiting_zones(found: PackageList) -> set[int]:
    """The zones of the packages that wait for their first use and hold data: a line that is steered past them never begins them."""
    waiting = [package for package in found.get("packages", []) if package_start(package) is None and package.get("active") is not False]
    return {package_zone(package) for package in waiting if package.get("pckdatabyte", 0) > 0}


def package_income(found: PackageList, window: DayWindow, costs: Mapping[int, int]) -> int:
    """What the packages in force in `window` brought in there, micro-euros; the part of each package is whole.

    `costs`: of one package by template, micro-euros, for packages whose own price is not told.
    """
    return sum(round(share * price) for _, share, price in package_parts(found, window, costs))


def package_parts(found: PackageList, window: DayWindow, costs: Mapping[int, int]) -> Iterator[PackagePart]:
    """The packages of which a part of their life lay in `window`."""
    first = int(datetime(window.first.year, window.first.month, window.first.day, tzinfo=UTC).timestamp())
    for package in found.get("packages", []):
        share = package_share_in(package, first, first + window.days * PACKAGE_DAY_SECONDS)
        if share:
            yield PackagePart(package, share, micro_euros(package.get("cost")) or costs.get(package_template(package), 0))


def package_template(package: Package) -> int:
    """The number of its template; 0 where the package does not tell it."""
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0)


def package_zone(package: Package) -> int:
    """The number of the zone where it works; 0 where the package does not tell it."""
    return package.get("locationzoneid") or package.get("rdbLocationZones", {}).get("locationzoneid", 0)


def package_share_in(package: Package, first: int, end: int) -> Fraction:
    """The share of the package's life that lies between two moments, Unix seconds."""
    starts, ends = package_start(package), package_end(package)
    if starts is None or ends is None or ends <= starts:
        return Fraction(0)
    begin, over = int(starts.timestamp()), int(ends.timestamp())
    return Fraction(max(0, min(over, end) - max(begin, first)), over - begin)
