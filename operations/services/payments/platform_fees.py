"""The service's share of what its tenants invoice and sell."""

from operations.deps import Deps
from storage.money.fee_rates import own_fee_bps

MOST_BPS = 5000
"""Choice: half at most; more is a slip of the hand."""


async def fee_bps_of(deps: Deps, organisation: str) -> int:
    """The organisation's own rate in basis points, or else the one of all."""
    own = await deps.store.read(own_fee_bps, organisation=organisation)
    return deps.platform_fee_bps if own is None else own
