"""Where a package of a line stands; the charging system says it only by dates, counters and a flag."""

from datetime import UTC, datetime
from typing import Literal

from clients.ocs.wire.package import Package
from clients.ocs.wire.values import parse_wire_time
from registry.errors import OcsError

PackageState = Literal["upcoming", "assigned", "scheduled", "running", "exhausted", "expired", "blocked"]
"""`upcoming`: a series that has made no package yet. `assigned`: waits for its first use."""

PACKAGE_COUNTERS = (
    ("pckdatabyte", ("useddatabyte",)),
    ("pckmocsecond", ("usedmocsecond", "usedmocvoipsecond")),
    ("pckmtcsecond", ("usedmtcsecond",)),
    ("pckmosmsnumber", ("usedmosmsnumber",)),
    ("pckmtsmsnumber", ("usedmtsmsnumber",)),
)


def package_state(package: Package, now: float, *, single_counter: bool = False) -> PackageState:
    """The state now. With a single counter received calls count as calls made.

    Choice: blocked hides every other state, and expired hides exhausted.
    """
    if package.get("active") is False:
        return "blocked"
    moment = datetime.fromtimestamp(now, UTC)
    start, end = package_start(package), package_end(package)
    if end is not None and end <= moment:
        return "expired"
    if start is None and end is None:
        return "assigned"
    if start is not None and start > moment:
        return "scheduled"
    return "exhausted" if is_package_exhausted(package, single_counter=single_counter) else "running"


def package_start(package: Package) -> datetime | None:
    """When it was activated, or will be; nothing while it waits for its first use."""
    return _package_time(package.get("tsactivationutc"))


def package_end(package: Package) -> datetime | None:
    """When it expires; nothing while it waits for its first use."""
    return _package_time(package.get("tsexpirationutc"))


def is_package_exhausted(package: Package, *, single_counter: bool) -> bool:
    """Choice: nothing is left of any kind of use the package holds; a limit of 0 or none holds nothing."""
    members: dict[str, object] = {**package}
    left: list[int] = []
    for limit, used in PACKAGE_COUNTERS:
        held = _counter_value(members.get(limit))
        if held > 0 and not (single_counter and limit == "pckmtcsecond"):
            left.append(held - sum(_counter_value(members.get(name)) for name in used))
    return bool(left) and max(left) <= 0


def package_days(package: Package) -> int | None:
    """How many days it runs from its activation; nothing when the charging system does not say, or says more than a century."""
    days = _counter_value(package.get("perioddays"))
    return days if 0 < days <= 36_525 else None


def _counter_value(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _package_time(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_wire_time(str(value))
    except ValueError:
        raise OcsError("The charging system gave a package a date that cannot be read", before_execution=True) from None
