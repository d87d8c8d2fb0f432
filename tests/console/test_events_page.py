"""The page Events answers what has happened last, and to what."""

from collections.abc import AsyncGenerator

import pytest

from operations.event_types.esim import ESIM_ISSUED
from operations.event_types.line import LINE_ENTERED_COUNTRY
from operations.event_types.order import ORDER_PAID
from tests.console.webhook_stage import WebhookStage, webhook_stage
from tests.pages.browser import Browser, Seen
from tests.pages.site import Site


@pytest.fixture
async def stage(site: Site, hers: Browser, fjord: str) -> AsyncGenerator[WebhookStage]:
    made = webhook_stage(site, hers, fjord)
    yield made
    await made.sender.aclose()


def links(seen: Seen) -> list[str]:
    return [tag.attributes["href"] for tag in seen.page.tags if tag.name == "a"]


async def test_what_happened_last_stands_first_in_the_reader_s_language_with_the_way_to_its_object(stage: WebhookStage) -> None:
    await stage.write(ORDER_PAID)
    stage.site.clock.advance(60)
    event = await stage.write(LINE_ENTERED_COUNTRY)
    await stage.deliver()
    seen = await stage.browser.get("/console/events")
    text = seen.page.text
    assert 0 < text.index("A line has entered a country") < text.index("An order was paid")
    assert "/console/lines/8988303700000100286" in links(seen)
    assert f"/console/shops/orders/{ORDER_PAID.example['order']}" in links(seen)
    assert f"/console/webhooks/deliveries/{event}" in links(seen)
    assert "Nobody was told of this" in (await stage.browser.get(f"/console/webhooks/deliveries/{event}")).page.text
    stage.browser.http.headers["Accept-Language"] = "de"
    assert "Eine Bestellung wurde bezahlt" in (await stage.browser.get("/console/events")).page.text


async def test_a_group_shows_its_own_events_and_keeps_the_filter_while_paging_and_for_newer(stage: WebhookStage) -> None:
    await stage.write(ORDER_PAID)
    for _ in range(25):
        await stage.write(ESIM_ISSUED)
    await stage.deliver()
    seen = await stage.browser.get("/console/events?types=esim")
    assert (seen.page.text.count("An eSIM was issued"), "An order was paid" in seen.page.text) == (20, False)
    older = next(tag.attributes["href"] for tag in seen.page.tags if tag.attributes.get("rel") == "next")
    assert older.startswith("/console/events?types=esim&after=evt_")
    second = await stage.browser.get(older)
    assert second.page.text.count("An eSIM was issued") == 5
    assert links(second).count("/console/events?types=esim") == 2  # the group, and what is newer
    assert "An order was paid" in (await stage.browser.get("/console/events?types=order.paid")).page.text


async def test_nothing_yet_says_what_to_do_and_an_unknown_group_is_refused(stage: WebhookStage) -> None:
    assert "Nothing has happened yet" in (await stage.browser.get("/console/events")).page.text
    assert "No such event" in (await stage.browser.get("/console/events?types=order")).page.text
    assert (await stage.browser.get("/console/events?types=nonsense")).status == 400
