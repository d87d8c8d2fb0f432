"""A change of many lines through the door: planned, applied, sent by the worker, and undone."""

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


async def test_an_undone_set_leaves_every_line_as_it_was(both: ChangeStage) -> None:
    lines = both.lines("ACTIVE", "SUSPENDED")[:5]
    before = [line.status for line in lines]
    done = await both.done(await both.plan(lines, action="set_status", status="INACTIVE"))
    assert done["state"] == "applied"
    undone = await both.done(await both.undo(done["id"]))
    assert undone["state"] == "applied", undone
    assert [line.status for line in lines] == before
