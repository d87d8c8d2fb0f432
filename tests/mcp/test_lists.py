"""Pages, cursors and what each caller sees."""

from pathlib import Path

import pytest

from registry.limits import Tier
from tests.mcp.house import ERAS, House, open_house, request
from tests.world import Credentials

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ERAS)
async def test_pages_together_are_the_whole_list_in_catalogue_order(tmp_path: Path, era: str) -> None:
    async with open_house(tmp_path, page_size=4) as house:
        caller = await house.world.caller(Tier.PRO)
        async with house.connect(caller, era) as client:
            names: list[str] = []
            sizes: list[int] = []
            cursor: str | None = None
            while True:
                page = await client.list_tools(cursor=cursor)
                names += [tool.name for tool in page.tools]
                sizes.append(len(page.tools))
                cursor = page.next_cursor
                if cursor is None:
                    break
        async with house.connect(caller, era) as again:
            assert [tool.name for tool in (await again.list_tools()).tools] == names[:4]
    assert sizes == [4, 4, 4, 3]
    assert names[:5] == ["get_note", "list_notes", "list_short_notes", "create_note", "copy_note"]
    assert len(set(names)) == 15


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
async def test_an_empty_cursor_is_no_cursor(tmp_path: Path, method: str) -> None:
    async with open_house(tmp_path) as house:
        caller = await house.world.caller()
        first, again = [await house.post(asked, secret=caller.secret) for asked in (request(method), request(method, cursor=""))]
    assert first.status_code == again.status_code == 200 and first.json()["result"] == again.json()["result"]


@pytest.mark.parametrize("cursor", ["nowhere", "list_notes", "get_note", "purge_ledger", "4"])
async def test_a_cursor_that_begins_no_page_is_refused(tmp_path: Path, cursor: str) -> None:
    async with open_house(tmp_path, page_size=4) as house:
        caller = await house.world.caller(Tier.PRO)
        answer = await house.post(request("tools/list", cursor=cursor), secret=caller.secret)
    assert answer.status_code == 400
    assert answer.json()["error"] == {"code": -32602, "message": "cursor: not one of this list; begin again without a cursor"}


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
