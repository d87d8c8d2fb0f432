"""Tools over HTTP, with the SDK's own client in both protocol eras."""

import pytest

from tests.mcp.house import ERAS, House
from tests.world import Credentials

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_answers_with_the_body_of_the_http_door(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        listed = await client.list_tools()
        written = await client.call_tool("create_note", {"name": "first"})
        read = await client.call_tool("get_note", {"name": "first"})
    print([tool.name for tool in listed.tools])
    assert written.structured_content == {"name": "first", "writes": 1}
    assert read.structured_content == {"name": "first", "writes": 1}
