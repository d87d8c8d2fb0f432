"""A post office over each database."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import migrated_sqlite
from tests.deliveries.post_office import PostOffice, open_post_office
from tests.deliveries.transaction import Opened, on_postgresql, on_sqlite
from tests.stage import opened as opened_stage


@pytest.fixture
async def on_both(tmp_path: Path, database_url: str | None) -> AsyncGenerator[PostOffice]:
    async with open_post_office(tmp_path, database_url) as office:
        yield office


office = opened_stage(open_post_office)


@pytest.fixture
def opened(tmp_path: Path, database_url: str | None) -> Opened:
    """Opens a transaction over an empty database; nothing of it is kept."""
    if database_url is not None:
        return lambda: on_postgresql(database_url)
    path = migrated_sqlite(tmp_path).removeprefix("sqlite:///")
    return lambda: on_sqlite(path)
