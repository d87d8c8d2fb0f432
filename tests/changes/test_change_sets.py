"""A change of many lines through the door: planned, applied, sent by the worker, and undone."""

import pytest

from tests.changes.stage import ChangeStage


async def test_a_plan_changes_nothing_and_its_application_changes_every_line_of_it(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:3]
    plan = await both.plan(lines, action="set_status", status="SUSPENDED")
    assert (plan["state"], plan["counts"]["planned"], [line.status for line in lines]) == ("planned", 3, ["ACTIVE"] * 3)
    assert plan["rows"][0] == {
        "iccid": lines[0].iccid,
        "state": "planned",
        "before": {"status": "ACTIVE"},
        "after": {"status": "SUSPENDED"},
        "calls": ["modify_subscriber_status"],
        "undoable": True,
    }
    answer = await both.done(plan)
    assert (answer["state"], answer["counts"]["done"], [line.status for line in lines]) == ("applied", 3, ["SUSPENDED"] * 3)


@pytest.mark.long
async def test_an_undone_set_leaves_every_line_as_it_was(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE", "SUSPENDED")[:5]
    before = [line.status for line in lines]
    done = await both.done(await both.plan(lines, action="set_status", status="INACTIVE"))
    assert done["state"] == "applied"
    undone = await both.done(await both.undo(done["id"]))
    assert undone["state"] == "applied", undone
    assert [line.status for line in lines] == before


async def test_the_list_of_sets_holds_every_set_of_the_organisation_newest_first(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:1]
    plans = [await both.plan(lines, action="set_status", status=status) for status in ("SUSPENDED", "INACTIVE")]
    _, other = await both.fleet.beside(account=8102)
    mine, theirs = [(await http.get("/v1/changes")).json()["data"] for http in (both.http, other)]
    assert ([row["id"] for row in mine], theirs) == ([plan["id"] for plan in reversed(plans)], [])
    by = plans[0]["planned_by"]
    assert [row["planned_by"] for row in mine] == [by, by] and (by["person"][:4], by["credential"][:4]) == ("usr_", "key_")
    assert (await other.get(f"/v1/changes/{plans[0]['id']}")).status_code == 404


async def test_a_cancelled_set_sends_nothing(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE")[:2]
    plan = await both.plan(lines, action="set_status", status="SUSPENDED")
    await both.apply(plan)
    assert (await both.http.post(f"/v1/changes/{plan['id']}/cancel", json={})).status_code == 200
    await both.work()
    answer = await both.read(plan["id"])
    assert (answer["state"], answer["counts"]["not_sent"], [line.status for line in lines]) == ("cancelled", 2, ["ACTIVE"] * 2)


@pytest.mark.long
async def test_tags_are_set_by_a_plan_and_taken_back_by_its_undoing(both: ChangeStage) -> None:
    await both.fleet.sync()
    lines = both.lines("ACTIVE")[:2]
    tagged = await both.http.post("/v1/tags/old/lines", json={"iccids": [lines[0].iccid]})
    assert tagged.status_code == 200, tagged.text
    done = await both.done(await both.plan(lines, action="set_tags", addTags=["new"], removeTags=["old"]))
    assert (done["state"], done["rows"][0]["before"], done["rows"][0]["after"]) == ("applied", {"tags": ["old"]}, {"tags": ["new"]})
    assert await both.fleet.iccids(tag="new") == [line.iccid for line in lines]
    undone = await both.done(await both.undo(done["id"]))
    assert (undone["state"], await both.fleet.iccids(tag="new"), await both.fleet.iccids(tag="old")) == ("applied", [], [lines[0].iccid])
