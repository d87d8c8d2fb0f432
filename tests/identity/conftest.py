"""The house of the identity tests."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.identity.house import House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path) as house:
        yield house
