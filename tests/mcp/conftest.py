"""The house of the MCP tests, and a caller of the pro tier."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from registry.limits import Tier
from tests.mcp.house import House, open_house
from tests.world import Credentials


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path) as house:
        yield house


@pytest.fixture
async def pro(house: House) -> Credentials:
    return await house.world.caller(Tier.PRO)
