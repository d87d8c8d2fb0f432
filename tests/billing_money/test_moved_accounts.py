"""An account that goes from one organisation to another takes along what was under way in it, and all that is known of it."""

import pytest

from clients.payments.records import Dispute, EvidenceTexts, Refund
from operations.ledger.payment_intake import sync_payments
from registry.caller import Tier
from storage.connect_accounts import attach_connect_account, detach_connect_account
from tests.billing_money.stage import MoneyStage
from tests.billing_money.test_disputes import answer, disputed
from tests.world import Credentials


async def move(shop: MoneyStage, heir: Credentials) -> None:
    """Its owner lets the service out, and a while later lets another organisation in."""
    store, clock = shop.world.store, shop.world.clock
    clock.advance(5)
    await store.write(detach_connect_account, account=shop.account, as_of=clock.now(), now=clock.now())
    clock.advance(5)
    named = {"organisation": heir.organisation, "account": shop.account, "kind": "express", "status": "active"}
    assert await store.write(attach_connect_account, **named, as_of=clock.now(), now=clock.now())


async def test_what_nobody_knew_of_a_former_owners_refund_is_settled_for_the_next_one(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    await shop.world.settle_payments()
    await shop.trouble("timeout", "/v1/refunds")
    assert (await shop.refund("key", charge=made, amount=9000)).json()["code"] == "OUTCOME_UNKNOWN"
    await shop.calm()
    former, heir = shop.who, await shop.world.caller(Tier.ENTERPRISE)
    await move(shop, heir)
    shop.world.clock.advance(1000)
    await sync_payments(shop.world.pipeline.deps, organisation=heir.organisation, account=shop.account)
    assert await shop.reserved(made) == 0
    assert (await shop.refund(who=heir, charge=made, amount=9000)).status_code == 201
    await move(shop, former)
    assert (await shop.refund("key", charge=made, amount=9000)).json()["code"] == "payments_refused"


async def test_a_refund_during_which_the_account_moved_is_its_new_owners(shop: MoneyStage, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    await shop.world.settle_payments()
    heir = await shop.world.caller(Tier.ENTERPRISE)
    ask = shop.world.pipeline.deps.payments
    asked = ask.refund

    async def slow(*args: str, **wanted: object) -> Refund:
        refund = await asked(*args, **wanted)
        await move(shop, heir)
        return refund

    monkeypatch.setattr(ask, "refund", slow)
    sent = await shop.refund(charge=made, amount=1000)
    assert sent.status_code == 201
    assert [row["id"] for row in (await shop.listed("refunds", heir))["data"]] == [sent.json()["id"]]
    assert (await shop.listed("refunds"))["data"] == []


async def test_evidence_during_which_the_account_moved_is_its_new_owners(shop: MoneyStage, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, heir = await disputed(shop), await shop.world.caller(Tier.ENTERPRISE)
    ask = shop.world.pipeline.deps.payments
    asked = ask.answer_dispute

    async def slow(account: str, dispute: str, evidence: EvidenceTexts, *, submit: bool, key: str) -> Dispute:
        await move(shop, heir)
        return await asked(account, dispute, evidence, submit=submit, key=key)

    shop.world.clock.advance(1)
    monkeypatch.setattr(ask, "answer_dispute", slow)
    assert (await answer(shop, opened, uncategorized_text="used")).status_code == 200
    assert [row["status"] for row in (await shop.listed("disputes", heir))["data"]] == ["under_review"]
