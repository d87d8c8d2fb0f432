"""The whole service, a caller of the free tier, one of the pro tier, and the bridge."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from tests.network_facts import INTERNAL
from tests.stage import caller_client, credential_client, opened
from tests.world import Credentials, World, open_world

world = opened(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False), secrets=SharedSecrets(internal=INTERNAL))


@pytest.fixture
async def caller(world: World) -> Credentials:
    return await world.caller(Tier.FREE)


@pytest.fixture
async def http(world: World, caller: Credentials) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client(caller.secret) as client:
        yield client


pro = caller_client(Tier.PRO)
bridge = credential_client(INTERNAL)
