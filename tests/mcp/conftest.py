"""The house of the MCP tests, and a caller of the pro tier."""

import pytest

from registry.caller import Tier
from tests.mcp.house import House, open_house
from tests.stage import opened
from tests.world import Credentials

house = opened(open_house)


@pytest.fixture
async def pro(house: House) -> Credentials:
    return await house.world.caller(Tier.PRO)
