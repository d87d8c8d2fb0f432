"""Fair use: the speed a line has because of what it used, by its template's thresholds or in the green zone."""

from simulators.network.entities import DATA, MEBIBYTE, UNLIMITED_BITRATE, GreenZone, Line, Package, PackageTemplate
from simulators.network.world import World


def refresh_throttle(world: World, line: Line, network_id: int | None, at: int) -> None:
    """Set the speed of the data package in use. Choice: without a place, any zone counts; a throttle replaces a speed set by hand."""
    covering = _packages_here(world, line, network_id, at)
    current = next((package for package in covering if package.units_left(DATA)), None)
    for package in line.packages:
        package.throttled_kbps = throttle_limit(world.templates.get(package.template_id), package)
    _apply_throttle(line, _throttle_speed(world, line, covering, current))


def throttle_limit(template: PackageTemplate | None, package: Package) -> int | None:
    """The speed of the highest threshold that the use has reached; the template's thresholds of today count."""
    if template is None or not template.throttling or not package.data_limit:
        return None
    reached = [row for row in template.throttles if row and package.data_used * 100 >= package.data_limit * row.percent]
    return max(reached, key=lambda row: row.percent).kbps if reached else None


def _packages_here(world: World, line: Line, network_id: int | None, at: int) -> list[Package]:
    if network_id is not None:
        return covering_packages(world, line, network_id, at)
    return sorted((package for package in line.packages if package.in_date(at)), key=lambda package: package.priority)


def _throttle_speed(world: World, line: Line, covering: list[Package], current: Package | None) -> int | None:
    if current is not None:
        return current.throttled_kbps
    zone = open_green_zone(world, line, covering)
    return zone.throttle_kbps if zone is not None and line.green_bytes else None


def _apply_throttle(line: Line, kbps: int | None) -> None:
    if kbps is not None:
        line.bitrate, line.throttled = f"KB_{kbps}", True
    elif line.throttled:
        line.bitrate, line.throttled = UNLIMITED_BITRATE, False


def effective_green_zone(world: World, line: Line) -> GreenZone | None:
    """The account's zone; the reseller's when the account has none or a volume of 0."""
    own = world.accounts[line.account_id].green_zone
    zone = own if own is not None and own.max_mb > 0 else world.resellers[line.reseller_id].green_zone
    return zone if zone is not None and zone.max_mb > 0 else None


def open_green_zone(world: World, line: Line, covering: list[Package]) -> GreenZone | None:
    """The zone, when every package that covers the place has its data used up and some volume is left."""
    limits = [package for package in covering if package.data_limit is not None]
    if not limits or any((package.data_limit or 0) > package.data_used for package in limits):
        return None
    zone = effective_green_zone(world, line)
    return zone if zone is not None and zone.max_mb * MEBIBYTE > line.green_bytes else None


def use_green_zone(line: Line, zone: GreenZone, quantity: int, at: int) -> int:
    """Count as much as the zone still gives, and say how much that was."""
    taken = min(quantity, zone.max_mb * MEBIBYTE - line.green_bytes)
    line.green_bytes += taken
    line.green_started = at if line.green_started is None else line.green_started
    line.green_updated = at
    return taken


def covering_packages(world: World, line: Line, network_id: int, at: int) -> list[Package]:
    """Packages in date whose zone has the network, the lowest priority number first; exhausted ones too."""
    zones = world.zones
    found = [package for package in line.packages if package.in_date(at) and network_id in zones[package.zone_id].networks]
    if len(found) > 1:
        found.sort(key=lambda package: (package.priority, package.id))
    return found
