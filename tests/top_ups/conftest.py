"""A counter for each test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.top_ups.counter import Counter, open_counter


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncGenerator[Counter]:
    async with open_counter(tmp_path) as counter:
        yield counter
