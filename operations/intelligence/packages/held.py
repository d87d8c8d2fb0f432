"""The packages of a line as far as they hold data: which can be used now, how much is left, and where they work."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clients.ocs.wire.package import Package, PackageList
from operations.services.network.package_state import PackageState, ends_at, starts_at, state_of

USABLE = frozenset({"running", "assigned"})


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
        """Whether data would be taken from it where it covers."""
        return self.state in USABLE

    @property
    def left(self) -> int:
        """Bytes that remain."""
        return max(0, self.limit - self.used)


def data_packages(found: PackageList, now: float) -> list[DataPackage]:
    """Packages that hold data, by id; others cannot be a reason for data or for none."""
    single = found.get("callUseSingleCounter", False)
    held = [data_package(row, now, single) for row in found.get("packages", []) if row.get("pckdatabyte", 0) > 0]
    return sorted(held)


def data_package(row: Package, now: float, single: bool) -> DataPackage:
    """A package with its data counter."""
    limit, used = row.get("pckdatabyte", 0), row.get("useddatabyte", 0)
    state = state_of(row, now, single_counter=single)
    if used >= limit and state in USABLE:
        state = "exhausted"
    starts, ends = starts_at(row), ends_at(row)
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


def usable(packages: Iterable[DataPackage]) -> list[DataPackage]:
    """Those that data can be taken from now."""
    return [package for package in packages if package.usable]


def in_date(packages: Sequence[DataPackage], now: float) -> list[DataPackage]:
    """Those that have not expired, blocked ones among them."""
    return [package for package in packages if package.state != "expired" and (package.ends is None or package.ends > now)]
