"""The page of one line: it says why there is no data and what to press, and pressing it mends the line, once."""

import subprocess
from typing import cast

import httpx
import pytest

from tests.console.conftest import DemoConsole
from tests.harness.fork_server import reseller
from tests.harness.processes import environment
from tests.pages.browser import Browser

FOREIGN = "8988303700009999999"


def troubled(api: httpx.Client, cause: str) -> list[str]:
    """The lines that have a cause, the dearest first."""
    lines = api.get("/v1/fleet/problems", params={"cause": cause, "limit": 200}).json()["data"]["lines"]
    return [line["iccid"] for line in lines if line["problems"][0]["cause"] == cause]


def status_calls(api: httpx.Client, operation: str) -> int:
    """How often an operation was carried out by the session of the console."""
    rows = api.get("/v1/audit-log", params={"operation": operation, "limit": 100}).json()["data"]
    return len([row for row in rows if row["outcome"] == "ok" and row["surface"] == "web"])


def set_tier(demo: DemoConsole, tier: str) -> None:
    """Has the deployment's command change what the demo's organisation may do."""
    started = cast("list[str]", demo.server.process.args)
    data = started[started.index("--data") + 1]
    command = [reseller(), "org", "set-tier", demo.server.organisation, tier, "--data", data]
    subprocess.run(command, env=environment(), check=True, capture_output=True)


@pytest.mark.long
async def test_a_suspended_line_says_its_cause_and_the_button_allows_it_again_once(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "suspended")[0]
    path = f"/console/lines/{iccid}"
    seen = await demo.get(path)
    assert "No data: the status of this line is “Suspended”" in seen.page.text
    assert "Only an active line can use data." in seen.page.text
    assert "From the fleet’s record, as of" in seen.page.text
    form = next(form for form in seen.page.forms if form.fields.get("status") == "ACTIVE")
    assert [button[0] for button in form.buttons] == ["Allow the line again"]
    before = status_calls(demo_server.api, "modify_subscriber_status")

    done = await demo.send(form)
    assert done.status == 200 and done.way[-1].endswith("?done=status_active")
    assert "The line is allowed again." in done.page.text
    assert "the status of this line is" not in done.page.text
    again = await demo.send(form)
    assert "The line is allowed again." in again.page.text
    assert status_calls(demo_server.api, "modify_subscriber_status") - before == 1
    assert demo_server.api.get(f"/v1/subscribers/{iccid}").json()["data"]["currentStatus"] == "Active"

    undo = next(form for form in done.page.forms if [button[0] for button in form.buttons] == ["Undo"])
    undone = await demo.send(undo)
    assert "The line is suspended." in undone.page.text
    assert "No data: the status of this line is “Suspended”" in undone.page.text
    assert "The line is allowed again." not in (await demo.get(f"{path}?done=status_active")).page.text


@pytest.mark.long
async def test_a_line_whose_data_is_off_says_so_and_a_form_that_is_behind_keeps_what_it_does_not_change(
    demo: Browser, demo_server: DemoConsole
) -> None:
    iccid = demo_server.api.get("/v1/fleet/lines", params={"status": "ACTIVE", "limit": 1}).json()["data"][0]["iccid"]
    path = f"/console/lines/{iccid}"
    limits = (await demo.get(path)).page.form(path, "limits")
    demo_server.api.put(f"/v1/subscribers/{iccid}/traffic-restrictions", json={"sms": False}).raise_for_status()
    seen = await demo.send(limits, data=None)
    assert "What the line may do is saved." in seen.page.text
    assert "No data: data is switched off for this line" in seen.page.text
    row = demo_server.api.get(f"/v1/subscribers/{iccid}").json()["data"]
    assert (row["allowedData"], row["allowedMosms"]) == (False, False)
    seen = await demo.send(seen.page.form(path, "data"))
    assert "Data is switched on." in seen.page.text
    assert "data is switched off for this line" not in seen.page.text


async def test_a_status_that_somebody_changed_meanwhile_is_said_and_nothing_is_done(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = demo_server.api.get("/v1/fleet/lines", params={"status": "ACTIVE", "limit": 2}).json()["data"][1]["iccid"]
    path = f"/console/lines/{iccid}"
    form = (await demo.get(path)).page.form(path, "status")
    demo_server.api.put(f"/v1/subscribers/{iccid}/status", json={"status": "INACTIVE"}).raise_for_status()
    seen = await demo.send(form)
    assert (seen.status, "its status is now “Inactive”" in seen.page.text) == (412, True)
    assert demo_server.api.get(f"/v1/subscribers/{iccid}").json()["data"]["currentStatus"] == "Inactive"
    demo_server.api.put(f"/v1/subscribers/{iccid}/status", json={"status": "ACTIVE"}).raise_for_status()


@pytest.mark.long
async def test_every_part_is_asked_only_when_wanted_and_says_so(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "exhausted")[0]
    path = f"/console/lines/{iccid}"
    plain = await demo.get(path)
    assert "No data: the package is used up" in plain.page.text
    assert "Asked now" not in plain.page.text and "get_subscriber_notes" in plain.page.text
    assert "subscriber_usage" not in plain.page.text
    whole = await demo.get(f"{path}?ask=verdict.packages.use.places.sim.steering.offers")
    assert whole.status == 200
    assert whole.page.text.count("Asked now") == 7
    assert "No data: the package is used up" in whole.page.text
    assert any(tag.attributes.get("class") == "chart" for tag in whole.page.tags)
    code = demo_server.api.get(f"/v1/subscribers/{iccid}").json()["data"]["sim"]["activationCode"]
    assert code not in whole.answer.text


@pytest.mark.long
async def test_a_package_is_put_on_a_line_after_its_cost_was_shown_and_once(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "expired")[0]
    path = f"/console/lines/{iccid}"
    held = len(demo_server.api.get(f"/v1/subscribers/{iccid}/packages").json()["data"])
    form = next(form for form in (await demo.get(path)).page.forms if form.fields.get("do") == "assign")
    asked = await demo.send(form)
    assert "Its template costs €" in asked.page.text
    assert len(demo_server.api.get(f"/v1/subscribers/{iccid}/packages").json()["data"]) == held
    sure = asked.page.form(path, "assign")
    for _ in range(2):
        assert "The package is on the line." in (await demo.send(sure)).page.text
    assert len(demo_server.api.get(f"/v1/subscribers/{iccid}/packages").json()["data"]) == held + 1


@pytest.mark.long
async def test_notes_and_tags_are_added_and_what_was_typed_wrong_stands_there_again(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "exhausted")[1]
    path = f"/console/lines/{iccid}"
    page = (await demo.get(path)).page
    seen = await demo.post(path, {**page.form(path, "note").fields, "note": "Called <b>back</b>\r\nat noon"})
    assert "The note is saved." in seen.page.text and "Called <b>back</b>" in seen.page.text
    assert demo_server.api.get(f"/v1/subscribers/{iccid}/notes").json()["data"][0]["note"] == "Called <b>back</b>\nat noon"
    wrong = await demo.send(page.form(path, "tag"), tag="Not a tag")
    assert wrong.status == 400 and wrong.page.wrong("tag")
    assert wrong.page.form(path, "tag").fields["tag"] == "Not a tag"
    seen = await demo.send(wrong.page.form(path, "tag"), tag="watched")
    assert "The tag is set." in seen.page.text
    seen = await demo.send(seen.page.form(path, "untag", tag="watched"))
    assert "The tag is taken away." in seen.page.text and "No tag yet." in seen.page.text


async def test_a_message_is_sent_after_the_question(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "exhausted")[0]
    path = f"/console/lines/{iccid}"
    asked = await demo.send((await demo.get(path)).page.form(path, "sms"), message="Your data is used up.")
    assert "This will send one SMS to the line" in asked.page.text and "{'" not in asked.page.text
    assert "The message is handed to the network." in (await demo.send(asked.page.form(path, "sms"))).page.text


@pytest.mark.parametrize("number", [FOREIGN, "88", "x" * 20])
async def test_a_foreign_line_is_not_found(demo: Browser, number: str) -> None:
    seen = await demo.get(f"/console/lines/{number}")
    assert seen.status == 404
    assert "Your organisation has no such line" in seen.page.text
    assert (await demo.post(f"/console/lines/{number}", {"do": "status"})).status in (403, 404)


async def test_the_page_is_german_where_the_reader_is(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "expired")[1]
    demo.http.headers["Accept-Language"] = "de"
    seen = await demo.get(f"/console/lines/{iccid}?ask=verdict.packages")
    assert "Keine Daten: Das letzte Paket ist abgelaufen" in seen.page.text


@pytest.mark.long
async def test_a_member_of_a_free_organisation_sees_the_buttons_off_with_the_reason(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = troubled(demo_server.api, "expired")[2]
    set_tier(demo_server, "free")
    try:
        seen = await demo.get(f"/console/lines/{iccid}")
    finally:
        set_tier(demo_server, "enterprise")
    assert seen.status == 200
    buttons = [tag for tag in seen.page.tags if tag.name == "button" and "quiet" not in tag.attributes.get("class", "")]
    assert buttons and all("disabled" in tag.attributes for tag in buttons)
    assert "The tier or role that you have does not carry this" in seen.page.text
    assert "No data: the last package has expired" in seen.page.text
