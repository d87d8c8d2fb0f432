"""What the SIM provider says of a line's profile (ES2+)."""

from clients.sandbox.ocs import pushes
from clients.sandbox.ocs.entities import Line, ProviderRow
from clients.sandbox.ocs.state import World


def add_provider_status(world: World, line: Line, status: str, profile_type: str) -> None:
    """Append a status, end the row before, and tell the reseller."""
    rows = line.sim.provider
    if rows:
        rows[-1].end = world.now
    rows.append(ProviderRow(status, world.now, profile_type))
    pushes.esim_status(world, line, status)
