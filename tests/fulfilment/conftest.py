"""A floor for each test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import migrated_postgres
from tests.fulfilment.floor import Floor, open_floor


@pytest.fixture
async def floor(tmp_path: Path) -> AsyncGenerator[Floor]:
    async with open_floor(tmp_path) as floor:
        yield floor


@pytest.fixture(params=["sqlite", "postgresql"])
async def on_both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Floor]:
    """A floor over each kind of database."""
    if request.param == "sqlite":
        async with open_floor(tmp_path) as floor:
            yield floor
        return
    with migrated_postgres() as url:
        if url is None:
            pytest.skip("no PostgreSQL")
        async with open_floor(tmp_path, url) as floor:
            yield floor
