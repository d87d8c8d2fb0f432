"""The machine over both databases."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from registry.limits import Tier
from tests.databases import migrated_sqlite
from tests.registry.bench import Bench, open_bench
from tests.world import Credentials


@pytest.fixture
def database_url(database_url: str | None, tmp_path: Path) -> str:
    """The address of an empty database at HEAD."""
    return database_url or migrated_sqlite(tmp_path)


@pytest.fixture
async def bench(database_url: str, tmp_path: Path) -> AsyncGenerator[Bench]:
    async with open_bench(tmp_path, database_url) as bench:
        yield bench


@pytest.fixture
async def pro(bench: Bench) -> Credentials:
    """Somebody of the pro tier, not connected."""
    return await bench.world.caller(Tier.PRO)
