"""The machine over both databases."""

from pathlib import Path

import pytest

from registry.caller import Tier
from tests.databases import migrated_sqlite
from tests.registry.bench import Bench, open_bench
from tests.stage import opened_on_both
from tests.world import Credentials


@pytest.fixture
def database_url(database_url: str | None, tmp_path: Path) -> str:
    """The address of an empty database at HEAD."""
    return database_url or migrated_sqlite(tmp_path)


bench = opened_on_both(open_bench)


@pytest.fixture
async def pro(bench: Bench) -> Credentials:
    """Somebody of the pro tier, not connected."""
    return await bench.world.caller(Tier.PRO)
