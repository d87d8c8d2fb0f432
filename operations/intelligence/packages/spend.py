"""What a line's packages cost it: each by the part of its days that lay in the four weeks, so that no moment of buying counts twice."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from clients.ocs.wire.package import Package, PackageList
from operations.intelligence.lines.use import micro
from operations.intelligence.packages.need import DAYS, MONTH
from operations.services.network.package_state import ends_at, starts_at
from operations.services.network.windows import Window

DAY = 86_400


class Held(NamedTuple):
    """What the line had in the four weeks."""

    price: int
    """In thirty days, micro-euros."""
    counts: tuple[tuple[int, int], ...]
    """Template ids, in order, with how many packages of each were in force."""
    destinations: frozenset[int]
    """Lists of numbers that outgoing calls in these packages went to."""


def held_in(found: PackageList, window: Window, costs: Mapping[int, int]) -> Held:
    """Packages in force in the window. One that waits for its first use costs nothing yet; `costs` are those of templates."""
    first = int(datetime(window.first.year, window.first.month, window.first.day, tzinfo=UTC).timestamp())
    price, counts, destinations = Fraction(0), dict[int, int](), set[int]()
    for package in found.get("packages", []):
        share = share_in(package, first, first + window.days * DAY)
        if share:
            template = template_of(package)
            price += share * cost_of(package, costs.get(template, 0))
            counts[template] = counts.get(template, 0) + 1
            destinations |= set(lists_of(package))
    return Held(round(price * MONTH / DAYS), tuple(sorted(counts.items())), frozenset(destinations))


def share_in(package: Package, first: int, end: int) -> Fraction:
    """The part of its life that lies between two moments."""
    starts, ends = starts_at(package), ends_at(package)
    if starts is None or ends is None or ends <= starts:
        return Fraction(0)
    begin, over = int(starts.timestamp()), int(ends.timestamp())
    return Fraction(max(0, min(over, end) - max(begin, first)), over - begin)


def cost_of(package: Package, otherwise: int) -> int:
    """Its price: its own, else its template's."""
    return micro(package.get("cost")) or otherwise


def template_of(package: Package) -> int:
    """What it was made from."""
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0)


def lists_of(package: Package) -> Iterable[int]:
    """Its list of numbers, if it has one."""
    found = package.get("destinationzoneid") or package.get("rdbDestinationZones", {}).get("destinationzoneid")
    return () if found is None else (found,)
