"""A refund or a payout is made once under its key, whatever was swept since."""

import pytest

from tests.billing_money.stage import MoneyStage, open_money_stage
from tests.stage import opened_on_both
from transports.settings import SHORTEST_HISTORY
from transports.worker.retention import retention_chore

DAY = 86_400.0


shop = opened_on_both(open_money_stage, connected=True)


async def sweep(shop: MoneyStage) -> None:
    shop.world.clock.advance(31 * DAY)
    for _ in range(2):  # the first run only closes the database to older programs
        await retention_chore(shop.world.store, shop.world.clock, print, SHORTEST_HISTORY).run()


@pytest.mark.long
async def test_the_key_of_a_refund_and_of_a_payout_moves_money_once_and_says_so_after_a_sweep(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR", outcome="available")
    await shop.world.settle_payments()
    assert (await shop.refund("r", charge=made, amount=2500)).status_code == 201
    assert (await shop.pay_out("p", amount=1000, currency="EUR")).status_code == 201
    for _ in range(2):
        await sweep(shop)
        again = [await shop.refund("r", charge=made, amount=2500), await shop.pay_out("p", amount=1000, currency="EUR")]
        assert [(answer.status_code, answer.json()["code"]) for answer in again] == [(409, "idempotency_key_expired")] * 2
        other = await shop.refund("r", charge=made, amount=100)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert [refund.amount for refund in shop.at_processor("refunds")] == [2500]
    assert len(shop.at_processor("payouts")) == 1


@pytest.mark.long
async def test_a_refund_of_unknown_outcome_keeps_its_answer_through_every_sweep(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR", outcome="available")
    await shop.world.settle_payments()
    await shop.trouble("timeout", "/v1/refunds", after=True)
    lost = await shop.refund("r", charge=made, amount=2500)
    assert (lost.status_code, lost.json()["code"]) == (502, "OUTCOME_UNKNOWN")
    await sweep(shop)
    again = await shop.refund("r", charge=made, amount=2500)
    assert again.json().get("code") != "idempotency_key_expired"
    assert len(shop.at_processor("refunds")) <= 1
