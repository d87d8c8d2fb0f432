"""What a restricted key sees of the tools and resources, and what it gets when it calls what it does not see."""

from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from registry.restrictions import names_one_line
from tests.contract.stage import ServiceHouse, message
from tests.mcp.house import MODERN
from tests.world import Credentials

ICCID = "8988303700000100286"


async def asked(house: ServiceHouse, secret: str, method: str, **params: Any) -> dict[str, Any]:
    envelope = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN, "mcp-method": method}
    if "uri" in params:
        headers["mcp-name"] = params["uri"]
    async with house.world.client(secret) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}
        return message(await http.post("/mcp?toolsets=all", json=body, headers=headers))


async def tools(house: ServiceHouse, secret: str) -> set[str]:
    found: set[str] = set()
    cursor: dict[str, str] = {}
    while True:
        result = (await asked(house, secret, "tools/list", **cursor))["result"]
        found |= {tool["name"] for tool in result["tools"]}
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def limited(house: ServiceHouse, who: Credentials, **restrictions: Any) -> str:
    return (await house.world.key(who.person, who.organisation, restrictions=Restrictions(**restrictions)))[1]


@pytest.mark.long
async def test_a_list_shows_what_the_key_may_call_and_no_other_caller_s_list(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.ENTERPRISE)
    every = await tools(house, admin.secret)
    lines = {o.id for o in CATALOGUE.operations.values() if o.id in every and (names_one_line(o) or o.bounded)}
    network = {id for id in every if CATALOGUE.toolset_of[id] == "network"} | CATALOGUE.usual | CATALOGUE.about_oneself
    reads = {id for id in every if CATALOGUE.operations[id].read_only}
    assert len(every) > 70 and len(lines) > 30
    for _ in range(2):  # the second time from what is kept
        assert await tools(house, await limited(house, admin, toolsets=("network",))) == network
        assert await tools(house, await limited(house, admin, toolsets=("network",), read_only=True)) == network & reads
        assert await tools(house, await limited(house, admin, iccids=(ICCID,))) == lines
        by_account = await tools(house, await limited(house, admin, account_ids=(8101,)))
        assert lines < by_account and {"list_subscribers", "issue_esim_from_inventory"} <= by_account - lines
        assert not by_account & {"rollback_esim_issuance", "create_connectivity_intent", "create_api_key"}
        assert await tools(house, await limited(house, admin, calls_per_day=5)) == every
        assert await tools(house, admin.secret) == every


@pytest.mark.long
async def test_tools_for_admins_are_shown_to_admins(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    member = await house.world.caller(organisation=admin.organisation, role=Role.MEMBER)
    assert "list_audit_log" in await tools(house, admin.secret)
    assert "list_audit_log" not in await tools(house, member.secret)
    assert "list_audit_log" not in await tools(house, await limited(house, admin, no_admin=True))


async def test_a_hidden_tool_answers_as_the_pipeline_does(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.ENTERPRISE)
    secret = await limited(house, admin, toolsets=("network",))
    said = await house.mcp(CATALOGUE.operations["list_connectivity_plans"], secret, {})
    assert (said.status, said.body["code"]) == (400, "credential_restricted")
    assert "restricted to the toolsets network" in said.body["error"]


async def test_resources_are_no_way_around_restrictions(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.ENTERPRISE)
    plans = "connectivity://plans"

    async def shown(secret: str) -> tuple[bool, bool]:
        listed = await asked(house, secret, "resources/list")
        read = await asked(house, secret, "resources/read", uri=plans)
        return plans in str(listed["result"]), "error" not in read

    assert await shown(admin.secret) == (True, True)
    for restrictions in ({"toolsets": ("network",)}, {"iccids": (ICCID,)}, {"account_ids": (8101,)}):
        secret = await limited(house, admin, **restrictions)
        assert await shown(secret) == (False, False)
        refused = await asked(house, secret, "resources/read", uri=plans)
        assert refused["error"]["data"]["body"]["code"] == "credential_restricted"
