"""Choosing toolsets by query and header, and that the choice holds for calls too."""

from typing import Any

import pytest

from registry.caller import Tier
from tests.mcp.house import ERAS, House, request
from tests.mcp.refusals import refusal_of
from tests.world import Credentials

LEDGERS = {"read_ledger", "write_ledger"}


async def shown(house: House, who: Credentials, era: str = "auto", *, query: str = "", headers: dict[str, str] | None = None) -> set[str]:
    async with house.connect(who, era, query=query, headers=headers) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("era", ERAS)
async def test_a_selection_replaces_the_default(house: House, pro: Credentials, era: str) -> None:
    assert await shown(house, pro, era, query="?toolsets=ledgers") == LEDGERS
    assert await shown(house, pro, era, headers={"X-MCP-Toolsets": "ledgers"}) == LEDGERS
    assert await shown(house, pro, era, query="?toolsets=core") == {"get_note", "read_ledger"}
    assert await shown(house, pro, era, query="?toolsets=all") > LEDGERS


async def test_query_and_header_together_show_what_stands_in_both(house: House, pro: Credentials) -> None:
    assert await shown(house, pro, query="?toolsets=core", headers={"X-MCP-Toolsets": "ledgers"}) == {"read_ledger"}
    assert await shown(house, pro, query="?toolsets=ledgers,core", headers={"X-MCP-Toolsets": "all"}) == LEDGERS | {"get_note"}


async def test_read_only_beats_every_choice_wherever_it_is_said(house: House, pro: Credentials) -> None:
    assert await shown(house, pro, query="?toolsets=ledgers&read_only=true") == {"read_ledger"}
    assert await shown(house, pro, query="?toolsets=ledgers", headers={"X-MCP-Readonly": "true"}) == {"read_ledger"}
    assert await shown(house, pro, query="?toolsets=ledgers&read_only=false", headers={"X-MCP-Readonly": "1"}) == {"read_ledger"}
    assert await shown(house, pro, query="?toolsets=ledgers&read_only=false") == LEDGERS


async def test_a_preset_is_still_filtered_by_scope(house: House, pro: Credentials) -> None:
    admin = await house.world.caller(Tier.ENTERPRISE)
    assert await shown(house, pro, query="?toolsets=operator") == set()
    assert await shown(house, admin, query="?toolsets=operator") == {"purge_ledger"}


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_an_unknown_toolset_is_refused_with_those_that_are_known(house: House, pro: Credentials, method: str) -> None:
    params: dict[str, Any] = {"name": "get_note", "arguments": {}} if method == "tools/call" else {}
    answer = await house.post(request(method, **params), secret=pro.secret, path="/mcp?toolsets=ledger")
    assert answer.status_code == 400
    assert answer.json()["error"] == {
        "code": -32602,
        "message": "toolsets: got ledger; known are connectivity, ledgers, core, operator, all",
        "data": {"known": ["connectivity", "ledgers", "core", "operator", "all"]},
    }


@pytest.mark.parametrize("query", ["toolset=all", "readonly=true", "read_only=maybe"])
async def test_a_misspelt_choice_never_means_everything(house: House, pro: Credentials, query: str) -> None:
    answer = await house.post(request("tools/list"), secret=pro.secret, path=f"/mcp?{query}")
    assert answer.status_code == 400
    assert query.split("=", maxsplit=1)[0] in answer.json()["error"]


async def test_a_tool_outside_the_selection_is_an_unknown_tool(house: House, pro: Credentials) -> None:
    call = request("tools/call", name="write_ledger", arguments={"name": "x"})
    hidden = await house.post(call, secret=pro.secret)
    chosen = await house.post(call, secret=pro.secret, path="/mcp?toolsets=ledgers")
    reading = await house.post(call, secret=pro.secret, path="/mcp?toolsets=ledgers&read_only=true")
    nowhere = await house.post(request("tools/call", name="no_such_tool", arguments={}), secret=pro.secret)
    assert [answer.status_code for answer in (hidden, chosen, reading, nowhere)] == [400, 200, 400, 400]
    assert {answer.json()["error"]["code"] for answer in (hidden, reading, nowhere)} == {-32602}
    assert hidden.json()["error"]["data"] == {"toolset": "ledgers"}


async def test_a_tool_hidden_by_scope_meets_the_pipeline_when_it_is_called(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        assert "purge_ledger" not in {tool.name for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("purge_ledger", {"name": "x"})
    assert refusal_of(refused)["code"] == "upgrade_required"
