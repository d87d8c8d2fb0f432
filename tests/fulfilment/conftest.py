"""A floor for each test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.fulfilment.floor import Floor, open_floor
from tests.stage import opened

floor = opened(open_floor)


@pytest.fixture
async def on_both(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Floor]:
    """A floor over each kind of database."""
    async with open_floor(tmp_path, database_url) as floor:
        yield floor
