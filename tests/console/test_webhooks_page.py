"""The pages Webhooks answer who is told of what, what did not arrive, and how it is sent again."""

from collections.abc import AsyncGenerator
from html import unescape

import pytest

from operations.event_types.esim import ESIM_FIRST_ATTACH, ESIM_ISSUED
from operations.event_types.order import ORDER_PAID
from operations.event_types.organisation import ORGANISATION_KEY_CREATED
from registry.caller import Role
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.console.webhook_stage import WebhookStage, webhook_stage
from tests.deliveries.post_office import read
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site

GOOD, BROKEN = status_answer("204 No Content"), status_answer("500 Internal Server Error")


@pytest.fixture
async def stage(site: Site, hers: Browser, fjord: str) -> AsyncGenerator[WebhookStage]:
    made = webhook_stage(site, hers, fjord)
    yield made
    await made.sender.aclose()


@pytest.mark.long
async def test_what_failed_stands_on_the_page_and_a_replay_delivers_it_once_the_receiver_is_mended(stage: WebhookStage) -> None:
    async with receiver(BROKEN) as hook:
        endpoint = await stage.endpoint(hook.url(), "esim.issued", "esim.first_attach")
        event = await stage.write(ESIM_ISSUED)
        for _ in range(36):
            await stage.deliver()
            stage.site.clock.advance(3 * 3600)
        seen = await stage.site.sign_in(stage.browser, ADA_ADDRESS, "/console/webhooks")  # days have passed
        assert "1 delivery did not arrive." in seen.page.text
        assert "Is told: An eSIM was issued; An eSIM was seen in a network for the first time" in seen.page.text
        seen = await stage.browser.get(f"/console/webhooks/deliveries/{event}")
        assert ("Failed" in seen.page.text, seen.page.text.count("Refused with 500")) == (True, 10)
        hook.answer = GOOD
        page = await stage.browser.get(f"/console/webhooks/deliveries?endpoint={endpoint}&state=failed")
        seen = await stage.browser.send(page.page.form(page.path, "replay"))
        assert seen.path == f"/console/webhooks/deliveries?endpoint={endpoint}&state=failed&sent=1"
        assert "1 delivery is on its way again." in seen.page.text
        await stage.deliver()
        assert "Nothing has failed to arrive." in (await stage.browser.get("/console/webhooks")).page.text
        assert "Delivered" in (await stage.browser.get(f"/console/webhooks/deliveries/{event}")).page.text


@pytest.mark.long
async def test_the_request_on_the_page_is_the_one_that_arrived_but_for_its_signatures(stage: WebhookStage) -> None:
    async with receiver(GOOD) as hook:
        await stage.endpoint(hook.url(), "order.paid")
        event = await stage.write(ORDER_PAID)
        await stage.deliver()
        [arrived] = [read(raw) for raw in hook.requests]
        seen = await stage.browser.get(f"/console/webhooks/deliveries/{event}")
        assert arrived.body.decode() in unescape(seen.answer.text)
        for name in ("host", "content-type", "content-length", "user-agent", "webhook-id", "webhook-timestamp"):
            assert f"{name} {arrived.headers[name]}" in seen.page.text, name
        assert "An order was paid" in seen.page.text and "Taken" in seen.page.text
        for name in ("webhook-signature", "connectivity-signature"):
            assert arrived.headers[name].rpartition(",v1" if "t=" in arrived.headers[name] else "v1,")[2] not in seen.answer.text


@pytest.mark.long
async def test_an_event_is_sent_again_to_all_or_to_one(stage: WebhookStage) -> None:
    async with receiver(GOOD) as first, receiver(GOOD) as second:
        for hook in (first, second):
            await stage.endpoint(hook.url(), "order.*")
        event = await stage.write(ORDER_PAID)
        await stage.deliver()
        path = f"/console/webhooks/deliveries/{event}"
        seen = await stage.browser.send((await stage.browser.get(path)).page.form(path, "retry"))
        assert (seen.path, "on its way again" in seen.page.text) == (f"{path}?sent=1", True)
        await stage.deliver()
        assert (len(first.requests), len(second.requests)) == (2, 2)
        one = [form for form in seen.page.forms if form.fields.get("do") == "again"]
        await stage.browser.send(one[0])
        await stage.deliver()
        assert sorted((len(first.requests), len(second.requests))) == [2, 3]
        seen = await stage.browser.post(path, {**one[0].fields, "delivery": "dlv_none", "once": ""})
        assert (seen.status, "has no delivery" in seen.page.text) == (404, True)


@pytest.mark.long
async def test_a_secret_is_shown_on_one_answer_and_on_no_page(stage: WebhookStage) -> None:
    first = (await stage.browser.get("/console/webhooks")).page.form("/console/webhooks")
    first.fields["url"] = "https://127.0.0.1/a"
    seen = await stage.browser.send(first)
    secret = next(word for word in seen.page.text.split() if word.startswith("whsec_"))
    assert (seen.status, seen.way, seen.answer.headers["cache-control"]) == (200, [], "no-store")
    assert "shown this once and never again" in seen.page.text
    path = next(tag.attributes["href"] for tag in seen.page.tags if "/console/webhooks/we_" in tag.attributes.get("href", ""))
    asked = await stage.browser.send((await stage.browser.get(path)).page.form(path, "rotate"))
    assert (asked.status, "whsec_" in asked.answer.text) == (200, False)
    question = asked.page.form(path, "rotate")
    rotated = await stage.browser.send(question)
    new = next(word for word in rotated.page.text.split() if word.startswith("whsec_"))
    assert (new != secret, rotated.answer.headers["cache-control"]) == (True, "no-store")
    for page in ("/console/webhooks", path, "/console/webhooks/deliveries"):
        assert "whsec_" not in (await stage.browser.get(page)).answer.text
    again = await stage.browser.send(question)
    assert (again.path, "whsec_" in again.answer.text) == (path, False)
    assert "whsec_" not in (await stage.browser.send(first)).answer.text


@pytest.mark.long
async def test_a_new_endpoint_with_a_bad_address_is_refused_beside_the_field_and_keeps_what_was_typed(stage: WebhookStage) -> None:
    form = (await stage.browser.get("/console/webhooks")).page.form("/console/webhooks")
    seen = await stage.browser.send(form, url="https://10.0.0.1/hook")
    assert (seen.status, seen.page.wrong("url") is not None) == (400, True)
    assert seen.page.form("/console/webhooks").fields["url"] == "https://10.0.0.1/hook"
    assert "Nobody is told of what happens yet." in seen.page.text


@pytest.mark.long
async def test_a_change_sends_what_differs_and_does_not_undo_what_somebody_else_has_changed(stage: WebhookStage) -> None:
    endpoint = await stage.endpoint("https://127.0.0.1/hook", "order.*", "line.moved")
    path = f"/console/webhooks/{endpoint}"
    seen = await stage.browser.get(path)
    assert "Is told: All of Orders; A line was moved to another account." in seen.page.text
    stale, form = seen.page.form(path, "change"), seen.page.form(path, "change")
    assert (form.fields["family.order"], form.fields["type.line.moved"], form.fields["more"]) == ("1", "1", "")
    seen = await stage.browser.send(form, description="The desk", more="organisation.balance_*", **{"type.line.moved": None})
    assert (seen.status, "The desk" in seen.page.text) == (200, True)
    form = seen.page.form(path, "change")
    assert (form.fields["more"], "type.line.moved" in form.fields) == ("organisation.balance_*", False)
    seen = await stage.browser.send(stale, description="Another desk")
    assert (seen.status, "You have changed this yourself at" in seen.page.text) == (412, True)
    assert seen.page.form(path, "change").fields["description"] == "Another desk"
    seen = await stage.browser.send(form, more="organisation.nothing_*")
    assert (seen.status, "organisation.nothing_*" in seen.page.form(path, "change").fields["more"]) == (400, True)
    cleared: dict[str, str | None] = {"more": "", "family.order": None}
    seen = await stage.browser.send(form, **cleared)
    assert "Is told: An eSIM was issued; An eSIM was seen" in seen.page.text


@pytest.mark.long
async def test_every_box_may_be_ticked(stage: WebhookStage) -> None:
    endpoint = await stage.endpoint("https://127.0.0.1/hook")
    path = f"/console/webhooks/{endpoint}"
    form = (await stage.browser.get(path)).page.form(path, "change")
    seen = await stage.browser.send(form, **dict.fromkeys(form.boxes, "1"))
    assert (seen.status, seen.path) == (200, path)


@pytest.mark.long
async def test_a_test_event_is_sent_and_its_page_tells_the_answer(stage: WebhookStage) -> None:
    async with receiver(status_answer("401 Unauthorized")) as hook:
        endpoint = await stage.endpoint(hook.url())
        path = f"/console/webhooks/{endpoint}"
        seen = await stage.browser.send((await stage.browser.get(path)).page.form(path, "test"), type="order.paid")
        assert seen.path.startswith("/console/webhooks/deliveries/evt_")
        await stage.deliver()
        seen = await stage.browser.get(seen.path)
        assert "Refused with 401" in seen.page.text and "Test event" in seen.page.text


@pytest.mark.long
async def test_a_disabled_endpoint_has_its_buttons_off_with_the_reason_and_enable_turns_them_on(stage: WebhookStage) -> None:
    async with receiver(status_answer("410 Gone")) as hook:
        endpoint = await stage.endpoint(hook.url(), "esim.issued")
        await stage.write(ESIM_ISSUED)
        await stage.deliver()
        path = f"/console/webhooks/{endpoint}"
        seen = await stage.browser.get(path)
        off = [tag for tag in seen.page.tags if tag.name == "button" and "disabled" in tag.attributes]
        assert (len(off), seen.page.text.count("The endpoint is disabled; enable it first")) == (2, 2)
        refused = await stage.browser.send(seen.page.form(path, "replay"))
        assert (refused.status, "is disabled" in refused.page.text) == (409, True)
        seen = await stage.browser.send(seen.page.form(path, "enable"))
        assert (seen.path, [tag for tag in seen.page.tags if tag.name == "button" and "disabled" in tag.attributes]) == (path, [])


@pytest.mark.long
async def test_an_endpoint_is_deleted_after_the_question_and_no_earlier(stage: WebhookStage) -> None:
    endpoint = await stage.endpoint("https://127.0.0.1/hook")
    path = f"/console/webhooks/{endpoint}"
    asked = await stage.browser.send((await stage.browser.get(path)).page.form(path, "delete"))
    assert "Delete this endpoint?" in asked.page.text
    assert (await stage.browser.get(path)).status == 200
    seen = await stage.browser.send(asked.page.form(path, "delete"))
    assert (seen.path, "There is no endpoint yet" in seen.page.text) == ("/console/webhooks", True)
    assert (await stage.browser.get(path)).status == 404


@pytest.mark.long
async def test_filters_stay_in_the_address_while_paging(stage: WebhookStage) -> None:
    async with receiver(GOOD) as hook:
        endpoint = await stage.endpoint(hook.url(), "esim.*")
        for _ in range(30):
            await stage.write(ESIM_FIRST_ATTACH)
        await stage.write(ESIM_ISSUED)
        await stage.deliver()
        form = (await stage.browser.get("/console/webhooks/deliveries")).page.form("/console/webhooks/deliveries")
        seen = await stage.browser.send(form, endpoint=endpoint, type="esim.first_attach", since="2020-01-01")
        rows = seen.page.text.count("An eSIM was seen in a network for the first time")
        following = next(tag.attributes["href"] for tag in seen.page.tags if tag.attributes.get("rel") == "next")
        assert f"endpoint={endpoint}&type=esim.first_attach&since=2020-01-01&after=dlv_" in following
        second = await stage.browser.get(following)
        assert rows - second.page.text.count("An eSIM was seen in a network for the first time") == 20
        kept = second.page.form("/console/webhooks/deliveries").fields
        assert (kept["endpoint"], kept["type"], kept["since"]) == (endpoint, "esim.first_attach", "2020-01-01")
        wrong = await stage.browser.get("/console/webhooks/deliveries?since=tomorrow")
        assert (wrong.status, wrong.page.wrong("since")) == (400, "This is no day.")


@pytest.mark.long
async def test_a_member_is_offered_no_types_that_admins_alone_read_and_sees_no_deliveries_of_them(stage: WebhookStage, fjord: str) -> None:
    async with receiver(GOOD) as hook:
        endpoint = await stage.endpoint(hook.url(), "organisation.*", "esim.*")
        hidden = await stage.write(ORGANISATION_KEY_CREATED)
        await stage.deliver()
        await stage.site.join(await stage.site.person("mia@fjord.example"), fjord, Role.MEMBER)
        async with stage.site.browser("203.0.113.8") as mias:
            await stage.site.sign_in(mias, "mia@fjord.example", "/console")
            path = f"/console/webhooks/{endpoint}"
            boxes = (await mias.get(path)).page.form(path, "change").boxes
            assert ("type.organisation.key_created" in boxes, "type.esim.issued" in boxes) == (False, True)
            assert "An API key was created" not in (await mias.get("/console/webhooks/deliveries")).page.text
            assert (await mias.get(f"/console/webhooks/deliveries/{hidden}")).status == 404
