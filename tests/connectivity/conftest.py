"""The whole service, a caller of the free tier, one of the pro tier, and the bridge."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits, Tier
from registry.ports import SharedSecrets
from tests.network_facts import INTERNAL
from tests.world import Credentials, World, open_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    limits = Limits(burst_enabled=False)
    async with open_world(tmp_path, CATALOGUE, limits=limits, secrets=SharedSecrets(internal=INTERNAL)) as world:
        yield world
        assert world.faults == []


@pytest.fixture
async def caller(world: World) -> Credentials:
    return await world.caller(Tier.FREE)


@pytest.fixture
async def http(world: World, caller: Credentials) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client(caller.secret) as client:
        yield client


@pytest.fixture
async def pro(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as client:
        yield client


@pytest.fixture
async def bridge(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client(INTERNAL) as client:
        yield client
