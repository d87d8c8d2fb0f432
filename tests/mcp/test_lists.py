"""Pages, cursors and what each caller sees."""

from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE as OPERATIONS
from registry.caller import Tier
from tests.mcp.house import ERAS, House, open_house, request
from tests.world import Credentials
from transports.mcp.tools import is_tool


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_every_tool_is_on_the_first_page_in_catalogue_order(tmp_path: Path, era: str) -> None:
    async with open_house(tmp_path, catalogue=OPERATIONS) as house:
        caller = await house.world.caller(Tier.ENTERPRISE)
        async with house.connect(caller, era, query="?toolsets=all") as client:
            page = await client.list_tools()
    assert page.next_cursor is None
    assert [tool.name for tool in page.tools] == [each.id for each in OPERATIONS.operations.values() if is_tool(each)]
    assert len(page.tools) > 150


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
async def test_an_empty_cursor_is_no_cursor(house: House, pro: Credentials, method: str) -> None:
    first, again = [await house.post(asked, secret=pro.secret) for asked in (request(method), request(method, cursor=""))]
    assert first.status_code == again.status_code == 200 and first.json()["result"] == again.json()["result"]


@pytest.mark.cases
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
@pytest.mark.parametrize("cursor", ["nowhere", "list_notes", "4"])
async def test_a_cursor_is_refused_because_no_list_has_a_second_page(house: House, pro: Credentials, method: str, cursor: str) -> None:
    answer = await house.post(request(method, cursor=cursor), secret=pro.secret)
    assert answer.status_code == 400
    assert answer.json()["error"] == {"code": -32602, "message": "cursor: this list has one page; ask for it without a cursor"}


async def test_a_list_shows_what_the_caller_may_call(house: House, pro: Credentials) -> None:
    admin, free = await house.world.caller(Tier.ENTERPRISE), await house.world.caller(Tier.FREE)
    seen: dict[str, set[str]] = {}
    for name, who in (("free", free), ("pro", pro), ("admin", admin)):
        async with house.connect(who) as client:
            seen[name] = {tool.name for tool in (await client.list_tools()).tools}
    assert seen["pro"] - seen["free"] == {"put_note", "delete_note", "order_upstream"}
    assert seen["admin"] - seen["pro"] == {"purge_ledger"}


async def test_a_change_of_tier_shows_in_the_next_list(house: House, pro: Credentials) -> None:
    async with house.connect(pro, "legacy") as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        await house.world.move_to(Tier.FREE, pro.organisation)
        after = {tool.name for tool in (await client.list_tools()).tools}
    assert before - after == {"put_note", "delete_note", "order_upstream"}


async def test_lists_may_be_kept_by_the_client_for_a_minute_and_by_nobody_else(house: House, pro: Credentials) -> None:
    answer = await house.post(request("tools/list"), secret=pro.secret)
    result = answer.json()["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")


async def test_the_instructions_say_in_three_sentences_how_to_choose(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client:
        instructions = client.instructions
    assert instructions is not None
    assert instructions.count(". ") == 2
    assert "connectivity, ledgers, core, operator, all" in instructions
