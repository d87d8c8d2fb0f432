"""The whole service on either database, and two resellers of the pro tier."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.stage import caller_client, opened_on_both
from tests.world import Credentials, World, open_world

world = opened_on_both(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))


@pytest.fixture
async def caller(world: World) -> Credentials:
    return await world.caller(Tier.PRO)


@pytest.fixture
async def http(world: World, caller: Credentials) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client(caller.secret) as client:
        yield client


other = caller_client(Tier.PRO)
