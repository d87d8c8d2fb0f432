"""A bureau over each database."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.schedules.bureau import Bureau, open_bureau
from tests.stage import opened


@pytest.fixture
async def on_both(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Bureau]:
    async with open_bureau(tmp_path, database_url) as bureau:
        yield bureau


bureau = opened(open_bureau)
