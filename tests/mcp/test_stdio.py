"""The same server for a local client, over pipes and in memory, without any credential."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server.lowlevel.server import Server

from registry.caller import Caller, Role, Tier
from registry.policy import scopes_of
from tests.mcp.house import ERAS, SETTINGS, House
from tests.mcp.refusals import refusal_of
from tests.mcp.test_confirm import AnsweringPerson
from transports.mcp.calls import ToolCalls
from transports.mcp.request_caller import RequestCaller, RequestedTools, select_tools
from transports.mcp.server import make_mcp_server

ROOT = Path(__file__).resolve().parent.parent.parent


def child(folder: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "tests.mcp.stdio_child", str(folder)], cwd=ROOT)


async def local(house: House, chosen: RequestedTools) -> Server[Any]:
    """The server of a local principal, as stdio makes it."""
    organisation = await house.world.organisation(Tier.ENTERPRISE)
    scopes = int(scopes_of(Tier.ENTERPRISE, Role.ADMIN))
    caller = Caller(kind="local", principal="local", organisation=organisation, tier=Tier.ENTERPRISE, role=Role.ADMIN, scopes=scopes)
    visitor = RequestCaller(caller, chosen)
    pipeline = house.world.pipeline
    return make_mcp_server(ToolCalls(pipeline, lambda _: visitor, lambda call, error: None), pipeline, SETTINGS)


@pytest.mark.long
async def test_a_local_client_is_the_principal_it_was_started_as(tmp_path: Path) -> None:
    """By the protocol of old; by the one of today tests/interop walks over the pipes."""
    async with Client(child(tmp_path), mode="legacy") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        written = await client.call_tool("create_note", {"name": "first"})
        read = await client.call_tool("get_note", {"name": "first"})
        refused = await client.call_tool("get_note", {"name": ""})
        plans = await client.read_resource("connectivity://plans")
    assert "purge_ledger" in tools
    assert written.structured_content == read.structured_content == {"name": "first", "writes": 1}
    assert refusal_of(refused)["code"] == "invalid_request"
    assert len(plans.contents) == 1


async def test_toolsets_and_read_only_choose_what_a_local_client_sees(house: House) -> None:
    async with Client(await local(house, select_tools("ledgers", True))) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["read_ledger"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_server_in_memory_serves_both_eras(house: House, era: str) -> None:
    async with Client(await local(house, select_tools("all", False)), mode=era) as client:
        answer = await client.call_tool("create_note", {"name": "memory"})
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert answer.structured_content == {"name": "memory", "writes": 1}
    assert {"write_ledger", "purge_ledger", "get_note"} <= names


async def test_both_confirm_paths_work_without_http(house: House) -> None:
    server = await local(house, select_tools("", False))
    person = AnsweringPerson("accept", {"confirm": True})
    async with Client(server, elicitation_callback=person) as client:
        assert (await client.call_tool("delete_note", {"name": "first"})).structured_content == {"name": "first", "writes": 1}
    async with Client(server, mode="legacy") as client:
        token = refusal_of(await client.call_tool("delete_note", {"name": "first"}))["confirm_token"]
        done = await client.call_tool("delete_note", {"name": "first", "confirm_token": token})
    assert done.structured_content == {"name": "first", "writes": 2}
