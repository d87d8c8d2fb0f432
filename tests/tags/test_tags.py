"""Tags of lines: set, found, counted and removed; and that they end when their lines leave."""

from typing import Any

import anyio
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions
from simulators.network.entities import Line
from simulators.network.methods.subscribers import begin_line_status
from storage.line_tags import MOST_TAGS_OF_LINE
from storage.upstream_connections import set_connection
from tests.contract.stage import ServiceHouse
from tests.fleet.stage import ReadModelStage
from tests.network_facts import ACCOUNT, SIBLING
from tests.tags.tagging import STRANGE_ICCID, change_tag, counts, list_again, move_line, refusals, tag, tags_shown, untag


@pytest.mark.long
async def test_tagged_lines_are_found_counted_and_shown_with_their_tags(both: ReadModelStage) -> None:
    first, second, third = (both.line(number) for number in range(3))
    assert await tag(both, "trucks", [first, second]) == {"tag": "trucks", "tagged": 2, "already": 0, "refused": []}
    assert await tag(both, "trucks", [second, third]) == {"tag": "trucks", "tagged": 1, "already": 1, "refused": []}
    await tag(both, "norway.2", [first])
    assert await counts(both) == {"norway.2": 1, "trucks": 3}
    assert await tags_shown(both, tag="trucks") == {
        first.iccid: ["norway.2", "trucks"],
        second.iccid: ["trucks"],
        third.iccid: ["trucks"],
    }
    for sort in ("-last_used", "iccid", "-package_ends"):
        assert {*await both.iccids(tag="trucks", sort=sort)} == {first.iccid, second.iccid, third.iccid}
    assert await both.count(tag="trucks", status="ACTIVE") == 3
    assert await both.count(tag="never-given") == 0
    assert await untag(both, "trucks", [first, both.line(4)]) == {"tag": "trucks", "untagged": 1, "already": 1, "refused": []}
    assert {*await both.iccids(tag="trucks")} == {second.iccid, third.iccid}
    assert await untag(both, "trucks", tagged="trucks") == {"tag": "trucks", "untagged": 2, "already": 0, "refused": []}
    assert await counts(both) == {"norway.2": 1}


async def test_lines_are_tagged_by_their_facts_and_by_another_tag(both: ReadModelStage) -> None:
    active = {*await both.iccids(status="ACTIVE", limit=200)}
    assert (await tag(both, "live", query={"status": "ACTIVE", "accountId": ACCOUNT}))["tagged"] == len(active)
    assert {*await both.iccids(tag="live", limit=200)} == active
    assert (await tag(both, "copy", tagged="live"))["tagged"] == len(active)
    assert (await untag(both, "copy", query={"tag": "live", "status": "ACTIVE"}))["untagged"] == len(active)
    assert (await tag(both, "copy", tagged="never-given"))["tagged"] == 0
    said = await tag(both, "live", query={"accountId": SIBLING}, answers=404)
    assert said["code"] == "not_found"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "got none of them; say which lines by exactly one of iccids, query and tagged"),
        ({"tagged": "a", "query": {"tag": "b"}}, "got query and tagged; say which lines by exactly one of iccids, query and tagged"),
        ({"query": {}}, "got no filter, which would mean every line"),
        ({"iccids": []}, "iccids"),
        ({"iccids": [STRANGE_ICCID] * 1001}, "iccids"),
        ({"tagged": "Upper Case"}, "tagged"),
    ],
)
async def test_lines_are_said_in_exactly_one_way(stage: ReadModelStage, given: dict[str, Any], told: str) -> None:
    said = await change_tag(stage, "/v1/tags/a/lines", given, answers=400)
    assert told in said["error"]
    assert await counts(stage) == {}


@pytest.mark.long
async def test_a_foreign_line_is_not_tagged_and_says_nothing(both: ReadModelStage) -> None:
    _, other = await both.beside(account=SIBLING)
    mine, foreign = both.line(), both.line(account=SIBLING)
    await both.count(http=other)
    said = await tag(both, "mixed", iccids=[mine.iccid, foreign.iccid, STRANGE_ICCID])
    assert (said["tagged"], refusals(said)) == (1, {"not_yours": 2})
    assert await counts(both, other) == {}
    await tag(both, "mixed", [foreign], http=other)
    assert (await counts(both, other), await counts(both)) == ({"mixed": 1}, {"mixed": 1})
    assert await both.iccids(http=other, tag="mixed") == [foreign.iccid]
    said = await untag(both, "mixed", iccids=[foreign.iccid])
    assert (said["untagged"], refusals(said)) == (0, {"not_yours": 1})
    assert await counts(both, other) == {"mixed": 1}


@pytest.mark.long
async def test_a_line_that_no_list_has_shown_yet_is_asked_for(stage: ReadModelStage) -> None:
    await stage.count()
    late = stage.line(account=SIBLING)
    move_line(stage, late, ACCOUNT)
    unknown = [f"89883037000009{number:05d}" for number in range(25)]
    said = await tag(stage, "late", iccids=[late.iccid, *unknown])
    assert (said["tagged"], refusals(said)) == (1, {"not_yours": 19, "not_listed_yet": 6})
    assert (await counts(stage), await stage.iccids(tag="late")) == ({"late": 1}, [])
    await list_again(stage)
    assert await stage.iccids(tag="late") == [late.iccid]


@pytest.mark.long
async def test_a_line_has_at_most_twenty_tags_also_under_parallel_calls(both: ReadModelStage) -> None:
    full, other = both.line(0), both.line(1)
    for number in range(MOST_TAGS_OF_LINE - 3):
        await tag(both, f"t{number}", [full])
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(tag, both, f"more{number}", [full, other])
    (held,) = (await tags_shown(both, text=full.iccid)).values()
    assert len(held) == MOST_TAGS_OF_LINE
    said = await tag(both, "another", [full, other])
    assert (said["tagged"], refusals(said)) == (1, {"too_many_tags": 1})
    assert (await tag(both, held[0], [full]))["already"] == 1
    await untag(both, held[0], [full])
    assert (await tag(both, "another", [full]))["tagged"] == 1


def leave(stage: ReadModelStage, line: Line) -> None:
    move_line(stage, line, 8103)


def come_to_stock(stage: ReadModelStage, line: Line) -> None:
    del stage
    line.sim.status = "FREE"


def end_for_good(stage: ReadModelStage, line: Line) -> None:
    begin_line_status(stage.network, line, "END_OF_LIFE")


@pytest.mark.long
@pytest.mark.parametrize("what", [leave, come_to_stock, end_for_good])
async def test_tags_end_when_the_line_leaves_goes_to_stock_or_ends(both: ReadModelStage, what: Any) -> None:
    line, stays = both.line(0), both.line(1)
    line.sim.status = stays.sim.status = "AFFECTED"
    await both.count()
    await tag(both, "trucks", [line, stays])
    await tag(both, "second", [line])
    what(both, line)
    await list_again(both)
    assert await counts(both) == {"trucks": 1}
    assert await both.iccids(tag="trucks") == [stays.iccid]
    if what is leave:
        move_line(both, line, ACCOUNT)
        await list_again(both)
        assert (await tags_shown(both, text=line.iccid)) == {line.iccid: []}


async def test_a_call_that_ends_a_line_ends_its_tags_and_an_ended_line_gets_none(stage: ReadModelStage) -> None:
    line = stage.line()
    await tag(stage, "trucks", [line])
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/status", status="END_OF_LIFE", irreversible=True)
    assert await counts(stage) == {}
    await list_again(stage)
    said = await tag(stage, "trucks", [line])
    assert (said["tagged"], refusals(said)) == (0, {"ended": 1})


@pytest.mark.long
async def test_tags_of_a_line_that_left_while_nobody_was_connected_end_with_the_next_listing(both: ReadModelStage) -> None:
    line, stays = both.line(0), both.line(1)
    await tag(both, "trucks", [line, stays])
    write, organisation = both.world.store.write, both.who.organisation
    await write(set_connection, organisation=organisation, mode=None, account_id=None, own_token=None)
    assert (await both.http.get("/v1/tags")).json()["code"] == "org_not_connected"
    assert (await tag(both, "trucks", [line], answers=409))["code"] == "org_not_connected"
    move_line(both, line, SIBLING)
    await write(set_connection, organisation=organisation, mode="managed", account_id=ACCOUNT, own_token=None)
    await both.pass_time(100)
    await both.count()
    await list_again(both)
    assert await counts(both) == {"trucks": 1}
    assert await both.iccids(tag="trucks") == [stays.iccid]


async def test_tags_are_set_and_listed_through_mcp(house: ServiceHouse) -> None:
    stage = await house.stage()
    iccid = stage.own.iccid

    async def tool(name: str, given: dict[str, Any], status: int = 200) -> Any:
        said = await house.mcp(CATALOGUE.operations[name], stage.who.secret, given)
        assert said.status == status, said.body
        return said.body

    assert await tool("tag_lines", {"tag": "trucks", "iccids": [iccid]}) == {"tag": "trucks", "tagged": 1, "already": 0, "refused": []}
    assert (await tool("list_tags", {}))["data"] == [{"tag": "trucks", "lines": 1, "guarded": False}]
    assert (await tool("query_fleet", {"tag": "trucks", "fields": ["tags"]}))["data"] == [{"iccid": iccid, "tags": ["trucks"]}]
    _, held = await house.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(tags=("trucks",)))
    refused = await house.mcp(CATALOGUE.operations["untag_lines"], held, {"tag": "trucks", "iccids": [iccid]})
    assert (refused.status, refused.body["code"]) == (400, "credential_restricted")
    assert (await tool("untag_lines", {"tag": "trucks", "query": {"tag": "trucks"}}))["untagged"] == 1
    refused = await house.mcp(CATALOGUE.operations["get_subscriber"], held, {"iccid": iccid})
    assert (refused.status, refused.body["code"]) == (400, "credential_restricted")
    assert "exactly one of iccids, query and tagged" in (await tool("tag_lines", {"tag": "trucks"}, 400))["error"]


async def test_a_repeated_call_with_its_key_changes_nothing_more(stage: ReadModelStage) -> None:
    line = stage.line()
    headers = {"Idempotency-Key": "once"}
    path, given = "/v1/tags/trucks/lines", {"iccids": [line.iccid]}
    first = await stage.http.post(path, json=given, headers=headers)
    await untag(stage, "trucks", [line])
    again = await stage.http.post(path, json=given, headers=headers)
    assert again.json() == first.json() == {"tag": "trucks", "tagged": 1, "already": 0, "refused": []}
    assert await counts(stage) == {}
