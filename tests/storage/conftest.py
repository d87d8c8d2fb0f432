"""Both databases at HEAD, and a store over each."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from storage.engine.store import Store, open_store
from tests.databases import migrated_sqlite


@pytest.fixture
def database_url(database_url: str | None, tmp_path: Path) -> str:
    """The address of an empty database at HEAD."""
    return database_url or migrated_sqlite(tmp_path)


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    store = open_store(database_url)
    yield store
    await store.aclose()
