"""Deliveries into the operator's own network, for organisations that the operator named."""

import socket

from clients.webhooks.addresses import parse_private_receivers
from clients.webhooks.sender import WebhookSender
from storage.organisations import set_private_access
from storage.sealing import webhook_secret_field
from storage.webhook_endpoints import insert_endpoint
from tests.deliveries.post_office import PostOffice


async def test_only_deliveries_of_a_named_organisation_look_for_a_receiver_inside_and_no_longer_when_it_is_taken_back(
    office: PostOffice,
) -> None:
    asked: list[str] = []

    async def lookup(name: str) -> list[str]:
        asked.append(name)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    inside = WebhookSender(office.clock, lookup=lookup, private=parse_private_receivers(["hooks.corp.internal"]))
    keyring, field = office.world.pipeline.deps.keyring, webhook_secret_field("we_inside")
    sealed = keyring.seal("whsec_AAAA", org_id=office.caller.organisation, field=field)
    await office.store.write(
        insert_endpoint,
        id="we_inside",
        organisation=office.caller.organisation,
        url="https://hooks.corp.internal/hook",
        secret=sealed,
        now=office.clock.now(),
    )
    worker = office.worker(sender=inside)
    outcomes: list[object] = []
    for opened in (False, True, False):
        await office.store.write(set_private_access, organisation=office.caller.organisation, opened=opened)
        event = await office.emit(f"opened {opened} {len(outcomes)}")
        assert await worker.step() >= 1
        [(_, attempts)] = await office.states(event)
        outcomes.append(attempts)
    await inside.aclose()
    assert outcomes == [["blocked"], ["dns"], ["blocked"]]
    assert asked == ["hooks.corp.internal"]
