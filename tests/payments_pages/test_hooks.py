"""Webhooks: signed as the official library checks it, told until they are taken, and in the disorder that is ordered."""

import json

import pytest
import stripe

from clients.payments.port import BadProcessorEvent
from tests.payments_pages.shop import PagesShop, path_of


async def charge(shop: PagesShop, amount: int = 5000) -> str:
    paid = {"account": shop.account, "amount": amount, "currency": "usd", "fee": 50, "metadata": {"order": "1"}}
    return str((await shop.ask("POST", "charges", paid))["id"])


async def test_the_official_library_believes_every_event_and_ours_reads_it(shop: PagesShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", shop.clock.now)  # the library's clock
    made = await charge(shop)
    path = path_of((await shop.invoice()).pay_url)
    await shop.browser.send((await shop.browser.get(path)).page.form(path))
    await shop.told()
    events = [stripe.Webhook.construct_event(body, signature, shop.sandbox.webhook_secret) for body, signature in shop.post.taken]
    ours = [await shop.processor.read_event(body, signature, shop.clock.now()) for body, signature in shop.post.taken]
    assert [event.id for event in events] == [event.id for event in ours]
    assert {
        event.type: getattr(event, "account", None) for event in events if event.type in ("charge.succeeded", "application_fee.created")
    } == {
        "charge.succeeded": shop.account,
        "application_fee.created": None,
    }
    assert made in [getattr(event.record, "id", "") for event in ours]


async def test_another_secret_or_another_byte_is_not_believed(shop: PagesShop) -> None:
    await charge(shop)
    await shop.told()
    body, signature = shop.post.taken[0]
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(body, signature, "whsec_other")
    with pytest.raises(BadProcessorEvent):
        await shop.processor.read_event(body + b" ", signature, shop.clock.now())


async def test_an_event_that_is_not_taken_comes_again_later_and_later(shop: PagesShop) -> None:
    await charge(shop)
    [first, *others] = await shop.told()
    shop.post.taken.clear()
    await charge(shop)
    shop.post.answers += [500, 0, 302]
    assert await shop.told() == [first, *others]
    assert await shop.told() == []
    shop.clock.advance(2)
    shop.post.answers += [404, 0, 503]
    assert await shop.told() == [first, *others[:2]]
    shop.clock.advance(9)
    assert await shop.told() == []
    shop.clock.advance(1)
    assert await shop.told() == [first, *others[:2]]
    same = {body for body, _ in shop.post.taken if json.loads(body)["type"] == first}
    assert (len(same), len({signature.split(",")[0] for _, signature in shop.post.taken})) == (1, 3)
    assert (await shop.ask("GET", "hooks"))["waiting"] == []


async def test_an_event_that_nobody_takes_is_given_up_after_three_days(shop: PagesShop) -> None:
    made = await charge(shop)
    shop.post.answers += [0] * 1000
    for _ in range(60):
        await shop.told()
        shop.clock.advance(10_800)
    about = [int(signature[2:12]) for body, signature in shop.post.taken if made.encode() in body and b'"charge.succeeded"' in body]
    assert 20 < len(about) < 40
    assert 2.5 * 86_400 < about[-1] - about[0] <= 3 * 86_400


async def test_events_may_be_held_shuffled_doubled_and_told_again(shop: PagesShop) -> None:
    await shop.ask("POST", "hooks", {"hold": True})
    for _ in range(4):
        await charge(shop)
    assert await shop.told() == []
    await shop.ask("POST", "hooks", {"hold": False, "shuffle": True, "double": True})
    told = await shop.told()
    ids = [json.loads(body)["id"] for body, _ in shop.post.taken]
    assert (len(ids), len(set(ids))) == (32, 16)
    assert ids != sorted(ids, key=[*dict.fromkeys(ids)].index) and told != sorted(told)
    await shop.ask("POST", "hooks", {"shuffle": False, "double": False, "redeliver": ids[0]})
    await shop.told()
    assert [json.loads(body)["id"] for body, _ in shop.post.taken[32:]] == [ids[0]]


async def test_nobody_is_told_where_no_address_is_given(shop: PagesShop) -> None:
    shop.sandbox.webhook_url = ""
    await charge(shop)
    assert await shop.told() == []
    assert (await shop.ask("GET", "state"))["hooks_waiting"] == 4
