"""Agents with tools alone: what a person asks for in one sentence is done, right, in at most six calls."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from registry.clock import rfc3339_utc
from tests.changes.stage import ChangeStage
from tests.mcp.house import SETTINGS
from tests.mcp.refusals import refusal_of
from tests.world import HOST
from transports.http.asgi import Receive, Scope, Send
from transports.mcp.door import McpDoor

MOST_CALLS = 6
DAY = 86_400


@dataclass
class ToolAgent:
    """An MCP client that can do nothing but call tools, and counts its calls. The worker goes on behind it."""

    client: Client
    stage: ChangeStage
    calls: int = 0

    async def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.calls += 1
        said = await self.client.call_tool(tool, arguments)
        assert not said.is_error and said.structured_content is not None, said.content
        await self.stage.work()
        return said.structured_content

    async def carry_out(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Waits for the plan where it is still made, applies it, and waits until every row was sent."""
        if plan["state"] == "planning":
            plan = await self.use("get_change_set", id=plan["id"], waitSeconds=25)
        await self.use("apply_changes", id=plan["id"], digest=plan["digest"])
        return await self.use("get_change_set", id=plan["id"], waitSeconds=25)


@asynccontextmanager
async def agent_of(stage: ChangeStage) -> AsyncGenerator[ToolAgent]:
    door = McpDoor(stage.fleet.world.pipeline, SETTINGS, lambda call, error: stage.reports.append(f"{call.operation.id}: {error}"))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await door({**scope, "state": {}}, receive, send)

    headers = {"Authorization": f"Bearer {stage.fleet.who.secret}"}
    async with (
        door.running(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), headers=headers, base_url=f"http://{HOST}") as http,
        Client(streamable_http_client(f"http://{HOST}/mcp?toolsets=changes,operator", http_client=http)) as client,
    ):
        yield ToolAgent(client, stage)


@pytest.mark.long
async def test_every_active_line_that_was_not_used_for_a_day_is_suspended_and_no_other(stage: ChangeStage) -> None:
    await stage.fleet.sync()
    long_ago = rfc3339_utc(stage.fleet.clock.now() - DAY)
    before = {line.iccid: line.status for line in stage.lines()}
    idle = set(await stage.fleet.iccids(status="ACTIVE", usedBefore=long_ago))
    assert idle and idle < {iccid for iccid, status in before.items() if status == "ACTIVE"}
    async with agent_of(stage) as agent:
        lines = {"query": {"status": "ACTIVE", "usedBefore": long_ago}}
        plan = await agent.use("plan_changes", change={"action": "set_status", "status": "SUSPENDED"}, lines=lines)
        done = await agent.carry_out(plan)
    assert (done["state"], done["counts"]["done"], agent.calls <= MOST_CALLS) == ("applied", len(idle), True)
    assert {line.iccid: line.status for line in stage.lines()} == {
        iccid: "SUSPENDED" if iccid in idle else status for iccid, status in before.items()
    }


@pytest.mark.long
async def test_named_lines_get_the_steering_list_that_a_person_called_by_its_name(stage: ChangeStage) -> None:
    lines = stage.lines("ACTIVE")
    async with agent_of(stage) as agent:
        lists = (await agent.use("list_steering_lists"))["data"]
        [nordic] = [row for row in lists if "Nordic" in str(row)]
        number = next(value for name, value in nordic.items() if name.lower().endswith("id") and isinstance(value, int))
        plan = await agent.use(
            "plan_changes",
            change={"action": "set_steering_list", "listId": number},
            lines={"iccids": [line.iccid for line in lines]},
        )
        without = [line for line in lines if line.steering_list_id != number]
        done = await agent.carry_out(plan)
    assert (done["state"], done["counts"]["done"], agent.calls <= MOST_CALLS) == ("applied", len(without), True)
    assert {line.steering_list_id for line in lines} == {number}


@pytest.mark.long
async def test_what_was_done_this_morning_is_undone(stage: ChangeStage) -> None:
    lines = stage.lines("ACTIVE")[:4]
    await stage.done(await stage.plan(lines, action="set_status", status="SUSPENDED"))
    async with agent_of(stage) as agent:
        [latest] = (await agent.use("list_change_sets"))["data"]
        plan = await agent.use("undo_changes", id=latest["id"])
        done = await agent.carry_out(plan)
    assert (done["state"], agent.calls <= MOST_CALLS) == ("applied", True)
    assert [line.status for line in lines] == ["ACTIVE"] * 4


async def test_the_table_of_a_set_is_refused_to_a_tool_with_the_ways_to_read_it(stage: ChangeStage) -> None:
    plan = await stage.plan(stage.lines("ACTIVE")[:1], action="set_status", status="SUSPENDED")
    async with agent_of(stage) as agent:
        said = await agent.client.call_tool("get_change_set", {"id": plan["id"], "format": "csv"})
        page = await agent.use("get_change_set", id=plan["id"], format="json")
    refused = refusal_of(said)
    assert (refused["code"], page["id"], stage.reports) == ("invalid_request", plan["id"], [])
    assert refused["error"] == "The answer would be text/csv, and a tool answers JSON alone"
    assert "GET /v1/changes/{id}" in refused["hint"]
