"""The whole service on SQLite and, for what a database may decide otherwise, on PostgreSQL."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits
from tests.contract.stage import open_service_house
from tests.stage import opened
from tests.world import World, open_world

house = opened(open_service_house, faultless=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World]:
    """On SQLite; on both where the test says `on_both`."""
    url: str | None = request.getfixturevalue("postgres") if getattr(request, "param", "sqlite") == "postgresql" else None
    async with open_world(tmp_path, CATALOGUE, url=url, limits=Limits(burst_enabled=False)) as world:
        yield world
        assert world.faults == []
