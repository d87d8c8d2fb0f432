"""Both databases, and both ways in which a clock can be wrong."""

from collections.abc import Generator

import pytest

from tests.databases import NO_POSTGRES, empty, migrated_postgres
from tests.endurance.two_clocks import APART


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


@pytest.fixture(params=[APART, -APART], ids=["ahead", "behind"])
def ahead(request: pytest.FixtureRequest) -> float:
    """How far the other replica's clock is ahead."""
    return float(request.param)
