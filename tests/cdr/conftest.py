"""The whole service on either database, and two resellers of the pro tier."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits, Tier
from tests.world import Credentials, World, open_world


@pytest.fixture
async def world(tmp_path: Path, database_url: str | None) -> AsyncGenerator[World]:
    async with open_world(tmp_path, CATALOGUE, url=database_url, limits=Limits(burst_enabled=False)) as world:
        yield world
        assert world.faults == []


@pytest.fixture
async def caller(world: World) -> Credentials:
    return await world.caller(Tier.PRO)


@pytest.fixture
async def http(world: World, caller: Credentials) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client(caller.secret) as client:
        yield client


@pytest.fixture
async def other(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as client:
        yield client
