"""A console whose organisation has receivers of its own on this machine, and the worker that sends to them."""

from dataclasses import dataclass, replace

from clients.webhooks.sender import WebhookSender
from operations.event_types.declaration import AnyEventType, event_entry
from operations.ledger.event_placing import EventPlacing
from operations.ledger.event_rights import ChooserRights
from storage.event_log import log_event
from tests.deliveries.post_office import LOOPBACK, QUICK
from tests.pages.browser import Browser
from tests.pages.site import Site
from transports.worker.worker import Worker


@dataclass
class WebhookStage:
    """One organisation at its console."""

    site: Site
    browser: Browser
    organisation: str
    worker: Worker
    sender: WebhookSender

    async def write(self, kind: AnyEventType) -> str:
        """An event with the example's data; its id."""
        service = self.site.service
        id = service.ids.new("evt_")
        event = event_entry(kind, kind.example, organisation=self.organisation, id=id, now=self.site.clock.now(), livemode=True)
        await service.store.write(log_event, event=event)
        return id

    async def deliver(self) -> None:
        """Gives places to what waits and sends what is due."""
        await EventPlacing(self.site.service.pipeline.deps).step()
        await self.worker.step()

    async def endpoint(self, url: str, *types: str) -> str:
        """An endpoint that is made on the page, and told of these types; its id."""
        seen = await self.browser.send((await self.browser.get("/console/webhooks")).page.form("/console/webhooks"), url=url)
        assert seen.status == 200, seen.page.text
        id = next(tag.attributes["href"] for tag in seen.page.tags if "/console/webhooks/we_" in tag.attributes.get("href", ""))
        form = (await self.browser.get(id)).page.form(id, "change")
        chosen = {f"family.{name[:-2]}" if name.endswith(".*") else f"type.{name}": "1" for name in types}
        assert (await self.browser.send(form, **chosen)).status == 200
        return id.rpartition("/")[2]


def webhook_stage(site: Site, browser: Browser, organisation: str) -> WebhookStage:
    """Lets webhooks reach this machine. The worker is not started: a test says when it works."""
    service = site.service
    sender = WebhookSender(site.clock, exempt=LOOPBACK, limits=QUICK)
    worker = Worker(
        store=service.store,
        keyring=service.pipeline.deps.keyring,
        sender=sender,
        clock=site.clock,
        ids=service.ids,
        report=lambda text: None,
        rights=ChooserRights(service.pipeline.deps.internal_calls.operations_in),
        chores=[],
    )
    service.pipeline.deps = replace(service.pipeline.deps, webhook_exempt=LOOPBACK)
    return WebhookStage(site, browser, organisation, worker, sender)
