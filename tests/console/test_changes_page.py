"""The pages of changes of many lines: what will change, what did, and whether it can be taken back, read off the pages of the demo."""

import re
import time
from urllib.parse import urlencode

import httpx
import pytest

from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser, Seen
from tests.pages.document import Form

SET_PATH = re.compile(r"/console/changes/(chg_[0-9a-z]+)")


def iccids_on(seen: Seen) -> list[str]:
    """The lines of the page's table that can be chosen."""
    return [tag.attributes["value"] for tag in seen.page.tags if tag.attributes.get("name") == "pick"]


def chosen_on(seen: Seen) -> list[str]:
    return [tag.attributes["value"] for tag in seen.page.tags if tag.attributes.get("name") == "pick" and "checked" in tag.attributes]


def statuses(api: httpx.Client, iccids: list[str]) -> set[str]:
    """The status that the charging system tells of each line."""
    return {api.get(f"/v1/subscribers/{iccid}").json()["data"]["currentStatus"].upper() for iccid in iccids}


async def choose(browser: Browser, seen: Seen, iccids: list[str], to: str = "/console/changes/new", **more: str) -> Seen:
    """Presses a button below the table with these boxes set, as a browser sends them: one field for each box."""
    fields = [(name, value) for name, value in seen.page.form("/console/changes/new").fields.items() if name != "pick"]
    return await browser.get(f"{to}?{urlencode([*fields, *(('pick', iccid) for iccid in iccids), *more.items()])}")


async def planned(browser: Browser, new: Seen, action: str, **typed: str) -> Seen:
    """Chooses the action, fills its form in and sends it."""
    form = new.page.form("/console/changes/new")
    asked = await browser.get(f"/console/changes/new?{urlencode({**form.fields, 'action': action})}")
    return await browser.send(plan_form(asked), **typed)


def plan_form(seen: Seen) -> Form:
    return next(form for form in seen.page.forms if form.action.endswith("/changes/new") and form.method == "post")


async def settled(browser: Browser, seen: Seen) -> Seen:
    """The page of the set once it does not work any more, as somebody sees it who loads it again and again."""
    for _ in range(600):
        if "data-again" not in {name for tag in seen.page.tags for name in tag.attributes}:
            return seen
        time.sleep(0.1)
        seen = await browser.get(seen.path)
    raise AssertionError(seen.page.text)


@pytest.mark.long
async def test_twelve_unused_lines_of_a_filter_are_suspended_and_two_of_them_are_undone(demo: Browser, demo_server: DemoConsole) -> None:
    first = await demo.get("/console/fleet?status=ACTIVE&sort=last_used")
    wanted = iccids_on(first)[:12]
    assert len(wanted) == 12
    new = await choose(demo, first, wanted)
    assert "12 lines are chosen." in new.page.text
    plan = await planned(demo, new, "set_status", status="SUSPENDED")
    assert SET_PATH.fullmatch(plan.path), plan.page.text
    assert "12 rows would change, 0 stay as they are. Nothing is changed yet." in plan.page.text
    assert "Status Active → Suspended" in plan.page.text and "Digest of this plan:" in plan.page.text
    assert statuses(demo_server.api, wanted[:3]) == {"ACTIVE"}

    done = await settled(demo, await demo.send(plan.page.form(plan.path, do="apply")))
    assert "12 of 12 rows were changed; you can take them back below." in done.page.text
    assert statuses(demo_server.api, wanted) == {"SUSPENDED"}

    form = next(form for form in done.page.forms if "rows" in form.fields)
    back = await demo.post(form.action, {**form.fields, "do": "undo_chosen", "pick": ".".join(wanted[:2])})
    assert "Take back: Set the status" in back.page.text and "2 rows would change" in back.page.text
    undone = await settled(demo, await demo.send(back.page.form(back.path, do="apply")))
    assert "2 of 2 rows were changed" in undone.page.text
    assert (statuses(demo_server.api, wanted[:2]), statuses(demo_server.api, wanted[2:])) == ({"ACTIVE"}, {"SUSPENDED"})
    listed = (await demo.get("/console/changes")).page.text
    assert listed.index("Take back: Set the status Suspended Made 2 2 2 0") < listed.index("Set the status Suspended Made 12 12 12 0")


async def test_a_choice_survives_paging_and_filters(demo: Browser) -> None:
    first = await demo.get("/console/fleet")
    here = iccids_on(first)
    cursor = next(tag for tag in first.page.tags if tag.name == "button" and tag.attributes.get("name") == "after").attributes["value"]
    second = await choose(demo, first, here[:3], "/console/fleet", after=cursor)
    assert chosen_on(second) == [] and re.search(r"Chosen: 3 of [\d,]+", second.page.text)
    there = iccids_on(second)
    again = await choose(demo, second, there[:1], "/console/fleet")
    assert chosen_on(again) == here[:3] and re.search(r"Chosen: 4 of [\d,]+", again.page.text)
    assert there[0] in again.page.form("/console/changes/new").fields["picked"]
    filters = again.page.form("/console/fleet", sort="subscriber_id", text="")
    filtered = await demo.send(filters, "Show lines", status="SUSPENDED")
    assert re.search(r"Chosen: 4 of [\d,]+", filtered.page.text)


async def test_every_line_that_matches_a_filter_is_planned_by_the_filter(demo: Browser, demo_server: DemoConsole) -> None:
    count = demo_server.api.get("/v1/fleet/lines?status=INACTIVE&countOnly=true").json()["count"]
    seen = await demo.get("/console/fleet?status=INACTIVE")
    new = await choose(demo, seen, [], whole="yes")
    assert f"{count} now." in new.page.text or "The one line" in new.page.text
    assert "Status Inactive" in new.page.text
    plan = await planned(demo, new, "set_tags", addTags="idle, check")
    assert f"{count} row" in plan.page.text and "idle, check" in plan.page.text
    given_up = await demo.send(plan.page.form(plan.path, do="cancel"))
    assert "Stopped" in given_up.page.text and "Stopped by: you" in given_up.page.text
    demo.http.headers["Accept-Language"] = "de"
    said = (await demo.get(given_up.path)).page.text
    assert "Die Sammeländerung wurde angehalten, bevor dies gesendet war. Angehalten von: Sie" in said


async def test_a_form_that_is_sent_twice_plans_once(demo: Browser, demo_server: DemoConsole) -> None:
    seen = await demo.get("/console/fleet?status=ACTIVE")
    new = await choose(demo, seen, iccids_on(seen)[:1])
    form = new.page.form("/console/changes/new")
    asked = await demo.get(f"/console/changes/new?{urlencode({**form.fields, 'action': 'set_tags'})}")
    before = len(demo_server.api.get("/v1/changes?limit=100").json()["data"])
    plans = [await demo.send(plan_form(asked), addTags="once") for _ in range(2)]
    assert plans[0].path == plans[1].path and plans[0].way == plans[1].way
    assert len(demo_server.api.get("/v1/changes?limit=100").json()["data"]) == before + 1


async def test_what_the_operation_refuses_is_said_beside_the_field_with_what_was_typed(demo: Browser) -> None:
    seen = await demo.get("/console/fleet?status=ACTIVE")
    new = await choose(demo, seen, iccids_on(seen)[:1])
    refused = await planned(demo, new, "set_tags", addTags="Not A Tag!")
    assert refused.status == 400
    assert plan_form(refused).fields["addTags"] == "Not A Tag!"
    assert "does not have the form that this field takes" in refused.page.text
    assert "must match" not in refused.page.text
    assert "1 line is chosen." in refused.page.text


async def test_a_change_that_cannot_be_taken_back_asks_first(demo: Browser) -> None:
    seen = await demo.get("/console/fleet?package=running")
    new = await choose(demo, seen, iccids_on(seen)[:1])
    plan = await planned(demo, new, "delete_packages")
    assert "Lost for good:" in plan.page.text
    asked = await demo.send(plan.page.form(plan.path, do="apply"))
    assert "Make this change for good?" in asked.page.text and "This will delete packages" in asked.page.text
    assert asked.page.form(plan.path, do="apply").fields["confirm_token"]
    assert "Planned" in (await demo.get(plan.path)).page.text


async def test_every_action_has_a_form(demo: Browser) -> None:
    seen = await demo.get("/console/fleet?status=ACTIVE")
    new = await choose(demo, seen, iccids_on(seen)[:1])
    form = new.page.form("/console/changes/new")
    for action in form.choices["action"][1:]:
        asked = await demo.get(f"/console/changes/new?{urlencode({**form.fields, 'action': action})}")
        assert (asked.status, plan_form(asked).fields["action"]) == (200, action)


async def test_an_organisation_without_changes_is_told_where_they_begin(hers: Browser) -> None:
    page = (await hers.get("/console/changes")).page
    assert "Nothing was planned yet" in page.text and "Choose lines on the page Fleet" in page.text
    assert "No line is chosen" in (await hers.get("/console/changes/new")).page.text
    assert (await hers.get("/console/changes/chg_01k0a8w7zv6q4k3m2n1p0r9s8t")).status == 404
