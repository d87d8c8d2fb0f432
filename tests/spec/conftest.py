"""The whole service, a caller of the free tier, one of the pro tier, and the bridge."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from registry.limits import Tier
from tests.contract.stage import INTERNAL, House, open_house
from tests.stage import opened

house = opened(open_house, faultless=True)


@pytest.fixture
async def free(house: House) -> AsyncGenerator[httpx.AsyncClient]:
    async with house.world.client((await house.world.caller(Tier.FREE)).secret) as client:
        yield client


@pytest.fixture
async def pro(house: House) -> AsyncGenerator[httpx.AsyncClient]:
    async with house.world.client((await house.world.caller(Tier.PRO)).secret) as client:
        yield client


@pytest.fixture
async def bridge(house: House) -> AsyncGenerator[httpx.AsyncClient]:
    async with house.world.client(INTERNAL) as client:
        yield client
