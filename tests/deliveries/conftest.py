"""A post office over each database."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.databases import NO_POSTGRES, empty, migrated_postgres, migrated_sqlite
from tests.deliveries.post_office import PostOffice, open_post_office
from tests.deliveries.transaction import Opened, on_postgresql, on_sqlite


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
async def on_both(tmp_path: Path, database_url: str | None) -> AsyncGenerator[PostOffice]:
    async with open_post_office(tmp_path, database_url) as office:
        yield office


@pytest.fixture
async def office(tmp_path: Path) -> AsyncGenerator[PostOffice]:
    async with open_post_office(tmp_path) as office:
        yield office


@pytest.fixture
def opened(tmp_path: Path, database_url: str | None) -> Opened:
    """Opens a transaction over an empty database; nothing of it is kept."""
    if database_url is not None:
        return lambda: on_postgresql(database_url)
    path = migrated_sqlite(tmp_path).removeprefix("sqlite:///")
    return lambda: on_sqlite(path)
