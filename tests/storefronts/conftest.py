"""The whole service on SQLite and, for what a database may decide otherwise, on PostgreSQL."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits
from tests.contract.stage import House, open_house
from tests.world import World, open_world


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path) as house:
        yield house
        assert house.world.faults == []


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World]:
    """On SQLite; on both where the test says `on_both`."""
    url: str | None = request.getfixturevalue("postgres") if getattr(request, "param", "sqlite") == "postgresql" else None
    async with open_world(tmp_path, CATALOGUE, url=url, limits=Limits(burst_enabled=False)) as world:
        yield world
        assert world.faults == []
