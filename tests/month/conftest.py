"""A month that has not begun."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.month.fleet import Month, open_month


@pytest.fixture
async def month(tmp_path: Path) -> AsyncGenerator[Month]:
    async with open_month(tmp_path, lines=40) as month:
        yield month
