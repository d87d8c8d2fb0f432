"""The page Events answers what has happened last, and to what."""

from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import anyio
import pytest

from operations.event_types.esim import ESIM_ISSUED
from operations.event_types.line import LINE_ENTERED_COUNTRY
from operations.event_types.order import ORDER_PAID
from registry.caller import Role
from tests.console.webhook_stage import WebhookStage, webhook_stage
from tests.pages.browser import Browser, Seen
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from transports.web.pages.request import PAGE_STREAMS_OF_ONE


@pytest.fixture
async def stage(site: Site, hers: Browser, fjord: str) -> AsyncGenerator[WebhookStage]:
    made = webhook_stage(site, hers, fjord)
    yield made
    await made.sender.aclose()


def links(seen: Seen) -> list[str]:
    return [tag.attributes["href"] for tag in seen.page.tags if tag.name == "a"]


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
async def test_nothing_yet_says_what_to_do_and_an_unknown_group_is_refused(stage: WebhookStage) -> None:
    assert "Nothing has happened yet" in (await stage.browser.get("/console/events")).page.text
    assert "No such event" in (await stage.browser.get("/console/events?types=order")).page.text
    assert (await stage.browser.get("/console/events?types=nonsense")).status == 400


class Listener:
    """A browser that listens to the stream. `first` is done once, when the first piece has come."""

    def __init__(self, stage: WebhookStage, first: Callable[[], Awaitable[None]]) -> None:
        self.site, self.first = stage.site, first
        self.cookies = "; ".join(f"{one.name}={one.value}" for one in stage.browser.http.cookies.jar)
        self.status, self.headers, self.pieces = 0, dict[str, str](), list[bytes]()

    async def listen(self, query: bytes = b"") -> str:
        """All that was sent until the server ended it."""
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/console/events/stream",
            "raw_path": b"/console/events/stream",
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1:8000"), (b"cookie", self.cookies.encode()), (b"accept", b"text/event-stream")],
            "client": ("203.0.113.7", 50000),
            "server": ("127.0.0.1", 8000),
        }
        asked = False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal asked
            if asked:
                await anyio.sleep_forever()
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        with anyio.fail_after(20):
            await self.site.app(scope, receive, self.send)
        return b"".join(self.pieces).decode()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.pieces.append(message.get("body", b""))
        if self.status == 200 and len(self.pieces) == 1:
            await self.first()


@pytest.mark.long
async def test_the_stream_tells_what_happens_and_ends_for_somebody_who_has_signed_out(stage: WebhookStage) -> None:
    later = list[str]()

    async def something_happens_twice() -> None:
        await stage.write(ORDER_PAID)
        await stage.deliver()

    async def they_sign_out() -> None:
        form = (await stage.browser.get("/console/events")).page.form("/auth/sign-out")
        await stage.browser.send(form)
        stage.site.clock.advance(30)
        later.append(await stage.write(ESIM_ISSUED))
        await stage.deliver()

    class Leaving(Listener):
        async def send(self, message: MutableMapping[str, Any]) -> None:
            await super().send(message)
            if len(self.pieces) == 2:
                await they_sign_out()

    leaving = Leaving(stage, something_happens_twice)
    told = await leaving.listen()
    assert (leaving.status, leaving.headers["content-type"], leaving.headers["cache-control"]) == (200, "text/event-stream", "no-store")
    assert '"type":"order.paid"' in told
    assert later[0] not in told and told.endswith('event: end\ndata: {"reason":"credential_ended"}\n\n')
    assert (await stage.browser.get("/console/events/stream")).path.startswith("/auth/sign-in")


async def test_the_stream_ends_for_somebody_whose_role_was_lowered(stage: WebhookStage) -> None:
    async def lowered() -> None:
        person = await stage.site.person(ADA_ADDRESS)
        await stage.site.join(person, stage.organisation, Role.MEMBER)
        stage.site.clock.advance(30)
        await stage.write(ORDER_PAID)
        await stage.deliver()

    told = await Listener(stage, lowered).listen()
    assert "order.paid" not in told and "credential_ended" in told


@pytest.mark.long
async def test_one_stream_too_many_is_told_to_come_again_and_a_place_that_is_left_is_free(stage: WebhookStage) -> None:
    statuses = list[int]()

    async def five_minutes_pass() -> None:
        stage.site.clock.advance(300)
        await stage.write(ORDER_PAID)
        await stage.deliver()

    async def open_another(left: int) -> None:
        listener = Listener(stage, partial(open_another, left - 1))
        await listener.listen()
        statuses.append(listener.status)
        if not left:
            assert listener.headers["retry-after"] == "30"
            await five_minutes_pass()

    await open_another(PAGE_STREAMS_OF_ONE)
    assert statuses == [503] + [200] * PAGE_STREAMS_OF_ONE
    again = Listener(stage, five_minutes_pass)
    assert ("event: end" in await again.listen(), again.status) == (True, 200)
