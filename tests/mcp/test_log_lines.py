"""What is written of a call over MCP: its line says what was called, for whom and what came of it, whichever way it went."""

from pathlib import Path

import pytest

from registry.caller import Tier
from tests.mcp.house import open_house, request

FIRST = {"name": "first"}


@pytest.mark.parametrize("edge", [True, False])
async def test_a_line_tells_the_tool_its_organisation_and_its_refusal(tmp_path: Path, edge: bool) -> None:
    async with open_house(tmp_path, edge=edge) as house:
        pro = await house.world.caller(Tier.PRO)
        for message in (
            request("tools/call", name="create_note", arguments=FIRST | {"idempotency_key": "once"}),
            request("tools/call", name="get_note", arguments={"name": "absent"}),
            request("tools/list"),
        ):
            assert (await house.post(message, secret=pro.secret)).status_code == 200
        assert (await house.post(request("tools/list"), secret="ak_wrong")).status_code == 401
        told = [(line.surface, line.operation, line.organisation, line.key, line.code, line.status) for line in house.world.lines]
        assert told == [
            ("mcp", "create_note", pro.organisation, pro.key_id, "", 200),
            ("mcp", "get_note", pro.organisation, pro.key_id, "not_found", 200),
            ("inner", "", "", "", "", 200),
            ("inner", "", "", "", "", 401),
        ]
