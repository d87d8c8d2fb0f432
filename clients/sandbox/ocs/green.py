"""The green zone: what a line may still use, slowly, when its data is gone."""

from clients.sandbox.ocs.entities import MEBIBYTE, GreenZone, Line, Package
from clients.sandbox.ocs.state import World


def effective(world: World, line: Line) -> GreenZone | None:
    """The account's zone; the reseller's when the account has none or a volume of 0."""
    own = world.accounts[line.account_id].green_zone
    zone = own if own is not None and own.max_mb > 0 else world.resellers[line.reseller_id].green_zone
    return zone if zone is not None and zone.max_mb > 0 else None


def open_for(world: World, line: Line, covering: list[Package]) -> GreenZone | None:
    """The zone, when every package that covers the place has its data used up and some volume is left."""
    limits = [package for package in covering if package.data_limit is not None]
    if not limits or any((package.data_limit or 0) > package.data_used for package in limits):
        return None
    zone = effective(world, line)
    return zone if zone is not None and zone.max_mb * MEBIBYTE > line.green_bytes else None


def take(line: Line, zone: GreenZone, quantity: int, at: int) -> int:
    """Count as much as the zone still gives, and say how much that was."""
    taken = min(quantity, zone.max_mb * MEBIBYTE - line.green_bytes)
    line.green_bytes += taken
    line.green_started = at if line.green_started is None else line.green_started
    line.green_updated = at
    return taken
