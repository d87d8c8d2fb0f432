"""The whole service, somebody of the pro tier who bills, and somebody of another organisation."""

from collections.abc import AsyncGenerator

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.invoices.billing import Billing
from tests.stage import caller_client, opened
from tests.world import World, open_world

world = opened(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))


@pytest.fixture
async def bill(world: World) -> AsyncGenerator[Billing]:
    """Somebody who bills, with no account at the payment processor."""
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as http:
        yield Billing(world, caller, http)


stranger = caller_client(Tier.ENTERPRISE)
