"""The whole service, a caller of the free tier, one of the pro tier, and the bridge."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from registry.caller import Tier
from tests.contract.stage import ServiceHouse, open_service_house
from tests.network_facts import INTERNAL
from tests.stage import opened

house = opened(open_service_house, faultless=True)


@pytest.fixture
async def free(house: ServiceHouse) -> AsyncGenerator[httpx.AsyncClient]:
    async with house.world.client((await house.world.caller(Tier.FREE)).secret) as client:
        yield client


@pytest.fixture
async def pro(house: ServiceHouse) -> AsyncGenerator[httpx.AsyncClient]:
    async with house.world.client((await house.world.caller(Tier.PRO)).secret) as client:
        yield client


@pytest.fixture
async def bridge(house: ServiceHouse) -> AsyncGenerator[httpx.AsyncClient]:
    async with house.world.client(INTERNAL) as client:
        yield client
