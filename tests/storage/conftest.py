"""Both databases at HEAD: one PostgreSQL database per module, emptied before each test, and a new SQLite file per test."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from storage.store import Store, open_store
from tests.databases import NO_POSTGRES, empty, migrated_postgres, migrated_sqlite

BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(scope="module")
def postgres_database() -> Generator[str | None]:
    with migrated_postgres() as url:
        yield url


@pytest.fixture
def postgres(postgres_database: str | None) -> str:
    if postgres_database is None:
        pytest.skip(NO_POSTGRES)
    empty(postgres_database)
    return postgres_database


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database at HEAD."""
    if request.param == "sqlite":
        return migrated_sqlite(tmp_path)
    return request.getfixturevalue("postgres")


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    store = open_store(database_url)
    yield store
    await store.aclose()
