"""The speed a line has because of what it used: its template's thresholds, or the green zone."""

from clients.sandbox.ocs import coverage, green
from clients.sandbox.ocs.entities import DATA, UNLIMITED, Line, Package, Template
from clients.sandbox.ocs.state import World


def refresh(world: World, line: Line, network_id: int | None, at: int) -> None:
    """Set the speed of the data package in use. Choice: without a place, any zone counts; a throttle replaces a speed set by hand."""
    covering = _here(world, line, network_id, at)
    current = next((package for package in covering if coverage.left(package, DATA)), None)
    for package in line.packages:
        package.throttled_kbps = limit_of(world.templates.get(package.template_id), package)
    _apply(line, _speed(world, line, covering, current))


def limit_of(template: Template | None, package: Package) -> int | None:
    """The speed of the highest threshold that the use has reached; the template's thresholds of today count."""
    if template is None or not template.throttling or not package.data_limit:
        return None
    reached = [row for row in template.throttles if row and package.data_used * 100 >= package.data_limit * row.percent]
    return max(reached, key=lambda row: row.percent).kbps if reached else None


def _here(world: World, line: Line, network_id: int | None, at: int) -> list[Package]:
    if network_id is not None:
        return coverage.covering(world, line, network_id, at)
    return sorted((package for package in line.packages if coverage.in_date(package, at)), key=lambda package: package.priority)


def _speed(world: World, line: Line, covering: list[Package], current: Package | None) -> int | None:
    if current is not None:
        return current.throttled_kbps
    zone = green.open_for(world, line, covering)
    return zone.throttle_kbps if zone is not None and line.green_bytes else None


def _apply(line: Line, kbps: int | None) -> None:
    if kbps is not None:
        line.bitrate, line.throttled = f"KB_{kbps}", True
    elif line.throttled:
        line.bitrate, line.throttled = UNLIMITED, False
