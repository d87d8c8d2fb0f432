"""The whole service."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.contract.stage import House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path) as house:
        yield house
        assert house.world.faults == []
