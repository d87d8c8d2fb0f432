"""A bureau over each database."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.databases import NO_POSTGRES, empty, migrated_postgres
from tests.schedules.bureau import Bureau, open_bureau


@pytest.fixture(scope="module")
def postgres_database() -> Generator[str | None]:
    with migrated_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Nothing for a new SQLite file, or the address of an empty PostgreSQL database."""
    if request.param == "sqlite":
        return None
    url: str | None = request.getfixturevalue("postgres_database")
    if url is None:
        pytest.skip(NO_POSTGRES)
    empty(url)
    return url


@pytest.fixture
async def on_both(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Bureau]:
    async with open_bureau(tmp_path, database_url) as bureau:
        yield bureau


@pytest.fixture
async def bureau(tmp_path: Path) -> AsyncGenerator[Bureau]:
    async with open_bureau(tmp_path) as bureau:
        yield bureau
