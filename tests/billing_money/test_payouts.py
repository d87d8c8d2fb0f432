"""Payouts by hand, and the list of all."""

import pytest
from inline_snapshot import snapshot

from tests.billing_money.stage import MoneyStage, Object


def said(body: Object) -> Object:
    """An answer without what differs from call to call."""
    return {name: value for name, value in body.items() if name not in ("request_id", "id")}


async def funded(shop: MoneyStage, amount: int = 10_000) -> None:
    await shop.world.charge(shop.account, amount, "EUR", outcome="available")
    await shop.world.settle_payments()


@pytest.mark.rule("4.5.64")
async def test_a_payout_is_sent_and_its_end_is_told(shop: MoneyStage) -> None:
    await funded(shop)
    answer = await shop.pay_out("monday", amount=2500, currency="EUR")
    assert answer.status_code == 201
    assert said(answer.json()) == snapshot(
        {
            "object": "payout",
            "amount": 2500,
            "currency": "EUR",
            "status": "pending",
            "automatic": False,
            "arrival_date": 1800144000,
            "failure_code": None,
            "created": 1800014400,
        }
    )
    assert (await shop.listed("payouts"))["data"] == [answer.json()]
    await shop.world.ask_payments("POST", f"payouts/{answer.json()['id']}", {"account": shop.account, "status": "paid"})
    await shop.world.settle_payments()
    assert (await shop.listed("payouts"))["data"][0]["status"] == "paid"


async def test_a_key_pays_out_once(shop: MoneyStage) -> None:
    await funded(shop)
    first, again = [await shop.pay_out("monday", amount=2500, currency="EUR") for _ in range(2)]
    assert (first.content, again.headers["idempotent-replayed"]) == (again.content, "true")
    assert (await shop.pay_out("monday", amount=2501, currency="EUR")).json()["code"] == "idempotency_key_reused"
    (made,) = shop.at_processor("payouts")
    keys = [call.key for call in shop.world.payments.calls if (call.method, call.path) == ("POST", "/v1/payouts")]
    assert (made.amount, keys) == (2500, ["payout:monday"])


async def test_a_balance_that_does_not_cover_it_is_said(shop: MoneyStage) -> None:
    await funded(shop, 1000)
    answer = await shop.pay_out(amount=100_000, currency="EUR")
    assert answer.status_code == 400
    assert said(answer.json()) == snapshot(
        {
            "error": "amount: 100000 EUR in minor units is more than the account's available balance; nothing was paid out",
            "code": "payments_refused",
            "param": "amount",
            "hint": "operator_billing_balance shows nothing in test mode. Paid money becomes available some days later, "
            "that of the test card 4000 0000 0000 0077 at once. Use a new key",
            "processor_code": "balance_insufficient",
        }
    )
    assert shop.at_processor("payouts") == []


async def test_an_account_that_is_not_ready_pays_nothing_out(shop: MoneyStage) -> None:
    pending, bare = await shop.world.caller(), await shop.world.caller()
    await shop.world.connect_payments(pending, active=False)
    codes: list[str] = []
    for who in (pending, bare):
        async with shop.http(who) as http:
            answer = await http.post("/v1/operator-billing/payouts/manual", json={"amount": 1, "currency": "EUR"})
        codes.append(f"{answer.status_code} {answer.json()['code']}")
    assert codes == ["409 payments_not_active", "409 payments_not_connected"]
