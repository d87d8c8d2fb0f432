"""The whole service on either database, and two resellers of the pro tier."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits, Tier
from tests.databases import NO_POSTGRES, empty, migrated_postgres
from tests.world import Credentials, World, open_world


@pytest.fixture(scope="module")
def postgres_database() -> Generator[str | None]:
    with migrated_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World]:
    url: str | None = request.getfixturevalue("postgres_database") if request.param == "postgresql" else None
    if request.param == "postgresql":
        if url is None:
            pytest.skip(NO_POSTGRES)
        empty(url)
    async with open_world(tmp_path, CATALOGUE, url=url, limits=Limits(burst_enabled=False)) as world:
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
    """Another organisation's client."""
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as client:
        yield client
