"""The whole service, a caller of the free tier, one of the pro tier, and the bridge."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from registry.limits import Tier
from tests.contract.stage import INTERNAL, House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path) as house:
        yield house
        assert house.world.faults == []


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
