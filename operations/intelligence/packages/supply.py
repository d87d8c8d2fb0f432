"""Whether a line has a package to use, and since when it has none."""

from datetime import date
from typing import NamedTuple

from clients.ocs.wire.package import Package, PackageList, RecurringSeries
from operations.services.network.package_state import ends_at, state_of

USABLE = ("assigned", "scheduled", "running")


class Supply(NamedTuple):
    """`ended`: when the last of its packages did; nothing while one is in force, and for a line that never had any."""

    in_force: bool
    ended: date | None
    series_stopped: bool


def supply_of(found: PackageList, now: float, used: date) -> Supply:
    """What there is. A package that has nothing left ended with the line's last use."""
    packages, series = found.get("packages", []), found.get("recurring", [])
    single = found.get("callUseSingleCounter", False)
    stopped = any(not goes_on(row) for row in series)
    if any(goes_on(row) for row in series) or any(usable(package, now, single) for package in packages):
        return Supply(True, None, stopped)
    return Supply(False, max((ended_on(package, now, single, used) for package in packages), default=None), stopped)


def usable(package: Package, now: float, single: bool) -> bool:
    """Choice: a package that holds data and has none left is used up, whatever calls it has left."""
    held = package.get("pckdatabyte") or 0
    return state_of(package, now, single_counter=single) in USABLE and (held <= 0 or package.get("useddatabyte", 0) < held)


def ended_on(package: Package, now: float, single: bool, used: date) -> date:
    """The day on which it was of no use any more."""
    end = ends_at(package)
    expired = end is not None and state_of(package, now, single_counter=single) == "expired"
    return end.date() if end is not None and expired else used


def goes_on(series: RecurringSeries) -> bool:
    """Whether it will make another package."""
    most = series.get("nbOccurrence")
    return series.get("active", True) and (most is None or series.get("nbCreated", 0) < most)
