"""The machine over both databases: one PostgreSQL database per run, emptied before each test, and a new SQLite file per test."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from registry.limits import Tier
from tests.databases import NO_POSTGRES, empty, migrated_postgres, migrated_sqlite
from tests.registry.bench import Bench, open_bench
from tests.world import Credentials

BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(scope="package")
def postgres_database() -> Generator[str | None]:
    with migrated_postgres() as url:
        yield url


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database at HEAD."""
    if request.param == "sqlite":
        return migrated_sqlite(tmp_path)
    url = request.getfixturevalue("postgres_database")
    if url is None:
        pytest.skip(NO_POSTGRES)
    empty(url)
    return url


@pytest.fixture
async def bench(database_url: str, tmp_path: Path) -> AsyncGenerator[Bench]:
    async with open_bench(tmp_path, database_url) as bench:
        yield bench


@pytest.fixture
async def pro(bench: Bench) -> Credentials:
    """Somebody of the pro tier, not connected."""
    return await bench.world.caller(Tier.PRO)
