"""A receiver with a library that others publish, Standard Webhooks' or Svix's: it verifies what an endpoint has chosen, and test sends."""

from typing import Protocol

import orjson
import pytest
import standardwebhooks
import svix.webhooks
import time_machine

from operations.event_types.line import LINE_STATUS_CHANGED
from operations.event_types.order import ORDER_PAID
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import read
from tests.events.log_office import LogOffice


class Verifier(Protocol):
    """Made of a secret; it raises for what is not genuine."""

    def __init__(self, whsecret: str) -> None: ...

    def verify(self, data: bytes, headers: dict[str, str]) -> object: ...


Library = tuple[type[Verifier], type[Exception]]
LIBRARIES: dict[str, Library] = {
    "standardwebhooks": (standardwebhooks.Webhook, standardwebhooks.WebhookVerificationError),
    "svix": (svix.webhooks.Webhook, svix.webhooks.WebhookVerificationError),
}


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_library_takes_orders_lines_and_tests_and_nothing_that_was_changed(office: LogOffice, library: str) -> None:
    async with receiver(status_answer("204 No Content")) as there:
        endpoint, secret = await office.office.endpoint(there.url())
        assert (await office.choose(endpoint, types=["order.*", "line.*"])).status_code == 200
        made = [await office.write(ORDER_PAID), await office.write(LINE_STATUS_CHANGED)]
        await office.deliver()
        tried = await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/test", json={"type": "order.ready"})
        assert tried.status_code == 200, tried.text
        await office.deliver()
        posts = [read(raw) for raw in there.requests]
    with time_machine.travel(office.world.clock.now(), tick=False):
        told = {post.headers["webhook-id"]: taken(LIBRARIES[library], secret, post.body, post.headers) for post in posts}
        for post in posts:
            refuse_what_is_not_genuine(LIBRARIES[library], secret, post.body, post.headers)
    test = str(tried.json()["event"])
    assert {id: event["type"] for id, event in told.items()} == {made[0]: "order.paid", made[1]: "line.status_changed", test: "order.ready"}
    assert [id for id, event in told.items() if "test" in event] == [test]


def taken(library: Library, secret: str, body: bytes, headers: dict[str, str]) -> dict[str, object]:
    """The event of a delivery that the library calls genuine."""
    library[0](secret).verify(body, headers)
    return orjson.loads(body)


def refuse_what_is_not_genuine(library: Library, secret: str, body: bytes, headers: dict[str, str]) -> None:
    verifier, refusal = library
    other = "whsec_" + "A" * 43 + "="
    changed = body.replace(b"connectivity.event", b"connectivity.evil")
    copied = {**headers, "webhook-id": "evt_of_another"}
    old = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 3600)}
    for key, false, stated in ((other, body, headers), (secret, changed, headers), (secret, body, copied), (secret, body, old)):
        with pytest.raises(refusal):
            verifier(key).verify(false, stated)
