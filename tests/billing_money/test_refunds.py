"""Refunds: whose charge, how much of it, in which currency, and once per key."""

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.billing_money.stage import OTHER_PAYEE, START, MoneyStage, charge_json, event_json, refund_json, with_account
from tests.stage import without_request_id


async def paid(shop: MoneyStage, amount: int = 10_000, **said: Any) -> str:
    made = await shop.world.charge(shop.account, amount, "EUR", **said)
    await shop.world.settle_payments()
    return made


@pytest.mark.rule("4.5.65")
async def test_a_refund_without_an_amount_gives_back_all_that_is_left(shop: MoneyStage) -> None:
    made = await paid(shop, fee=100)
    await shop.refund(charge=made, amount=2500)
    answer = await shop.refund(charge=made, reason="requested_by_customer")
    body = answer.json()
    assert answer.status_code == 201
    assert {**body, "id": "re_", "charge": "ch_", "payment_intent": "pi_"} == snapshot(
        {
            "id": "re_",
            "object": "refund",
            "amount": 7500,
            "currency": "EUR",
            "status": "succeeded",
            "charge": "ch_",
            "payment_intent": "pi_",
            "reason": "requested_by_customer",
            "failure_reason": None,
            "created": 1800014400,
        }
    )
    assert body["charge"] == made
    assert sorted(refund.amount for refund in shop.at_processor("refunds")) == [2500, 7500]
    await shop.world.settle_payments()
    (shown,) = (await shop.listed("charges"))["data"]
    refunds = (await shop.listed("refunds"))["data"]
    assert (shown["amount_refunded"], shown["refunded"], sorted(shown["refunds"])) == (10_000, True, sorted(row["id"] for row in refunds))
    (fee,) = (await shop.listed("fees"))["data"]
    assert fee["amount_refunded"] == 100


async def test_what_is_wrong_with_a_refund_is_said_and_nothing_is_sent(shop: MoneyStage) -> None:
    made = await paid(shop)
    await shop.refund(charge=made, amount=2000)
    wrong = [
        await shop.refund(charge=made, amount=8001),
        await shop.refund(charge=made, amount=0),
        await shop.refund(charge=made, amount=100, currency="USD"),
        await shop.refund(charge=made, amount=100, currency="eur"),
        await shop.refund(charge=made, amount=100, reason="because"),
        await shop.refund(charge="ch_1/../x", amount=100),
    ]
    await shop.refund(charge=made)
    wrong += [await shop.refund(charge=made), await shop.refund(charge=made, amount=1)]
    assert [(answer.status_code, answer.json()["param"], answer.json()["error"]) for answer in wrong] == snapshot(
        [
            (400, "amount", "amount: 8001 is more than what is left to refund, 8000 of 10000 EUR in minor units; nothing was done"),
            (400, "amount", "amount: got 0; must be >= 1"),
            (400, "currency", "currency: USD is not the charge's, which is EUR; nothing was done"),
            (400, "currency", 'currency: got "eur"; must match ^[A-Z]{3}$'),
            (400, "reason", "reason: got \"because\"; must be one of 'duplicate', 'fraudulent' or 'requested_by_customer'"),
            (400, "charge", 'charge: got "ch_1/../x"; must match ^[A-Za-z0-9_]+$'),
            (400, "charge", "charge: nothing is left to refund of its 10000 EUR in minor units; nothing was done"),
            (400, "amount", "charge: nothing is left to refund of its 10000 EUR in minor units; nothing was done"),
        ]
    )
    assert len(shop.at_processor("refunds")) == 2


async def test_a_currency_in_lower_case_is_told_how_it_is_written(shop: MoneyStage) -> None:
    answer = await shop.refund(charge=await paid(shop), amount=100, currency="eur")
    assert (answer.json()["param"], answer.json()["hint"]) == snapshot(
        ("currency", 'Write "EUR", in upper case. The charge\'s, ISO 4217 in upper case, as EUR; anything else is refused.')
    )


@pytest.mark.parametrize("status", ["pending", "failed"])
async def test_only_money_that_was_received_goes_back(stage: MoneyStage, status: str) -> None:
    await stage.tell(event_json("charge.updated", charge_json(status=status)))
    answer = await stage.refund("k", charge="ch_1", amount=100)
    assert (answer.status_code, answer.json()["code"]) == (409, "charge_not_refundable")
    await stage.tell(event_json("charge.updated", charge_json(), created=charge_json()["created"] + 3600))
    assert (await stage.refund("k", charge="ch_1", amount=20_000)).json()["code"] == "refund_too_large"  # the key was free


async def test_a_foreign_charge_is_not_found_just_as_an_unknown_one(shop: MoneyStage) -> None:
    rival = await shop.world.caller(Tier.PRO)
    account = await shop.world.connect_payments(rival)
    theirs = await shop.world.charge(account, 5000, "EUR")
    await shop.world.settle_payments()
    foreign, unknown = await shop.refund(charge=theirs, amount=1), await shop.refund(charge="ch_nobody", amount=1)
    assert (foreign.status_code, without_request_id(foreign.json())) == (404, without_request_id(unknown.json()))
    assert without_request_id(unknown.json()) == snapshot(
        {
            "error": "Your account has no charge with this id",
            "code": "not_found",
            "param": "charge",
            "hint": "operator_billing_list_charges names yours",
        }
    )
    assert (await shop.listed("charges"))["data"] == []
    assert (await shop.listed("charges", rival))["data"][0]["id"] == theirs


async def test_a_charge_that_no_event_told_of_is_asked_for(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 3000, "EUR")
    answer = await shop.refund(charge=made, amount=1000)
    assert answer.status_code == 201
    assert (await shop.listed("charges"))["data"][0]["refunds"] == [answer.json()["id"]]
    assert (await shop.refund(charge=made, amount=2001)).status_code == 400


async def test_without_an_account_there_is_nothing_to_refund(stage: MoneyStage) -> None:
    bare = await stage.world.caller(Tier.PRO)
    answer = await stage.refund(who=bare, charge="ch_1", amount=1)
    assert (answer.status_code, answer.json()["code"]) == (409, "payments_not_connected")


async def test_a_key_refunds_once_and_says_the_same_again(shop: MoneyStage) -> None:
    made = await paid(shop)
    first = await shop.refund("order-7", charge=made, amount=1000)
    again = await shop.refund("order-7", charge=made, amount=1000)
    other = await shop.refund("order-7", charge=made, amount=1001)
    assert (first.content, again.headers["idempotent-replayed"]) == (again.content, "true")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert len(shop.at_processor("refunds")) == 1
    shop.world.clock.advance(400 * 86_400)
    assert (await shop.refund("order-7", charge=made, amount=1000)).content == first.content
    # Without a key, a call that is repeated is another refund.
    for _ in range(2):
        assert (await shop.refund(charge=made, amount=1000)).status_code == 201
    assert len(shop.at_processor("refunds")) == 3


async def test_the_callers_key_is_the_processors_too(shop: MoneyStage) -> None:
    made = await paid(shop)
    longest = "k" * 255
    await shop.refund("order-7", charge=made, amount=1000)
    await shop.refund(longest, charge=made, amount=1000)
    await shop.refund(charge=made, amount=1000)
    named, hashed, own = [call.key for call in shop.world.payments.calls if call.path == "/v1/refunds"]
    assert (named, len(hashed), hashed[:7]) == ("refund:order-7", len("refund:") + 64, "refund:")
    assert own == f"refund:{shop.at_processor('refunds')[-1].metadata['attempt']}"


async def test_refunds_at_the_processors_own_pages_count(shop: MoneyStage) -> None:
    made = await paid(shop)
    assert (await shop.refund(charge=made, amount=1000)).status_code == 201
    await shop.world.pipeline.deps.payments.refund(shop.account, charge=made, amount=6000, reason=None, key="their own", metadata={})
    # Nobody has told us yet: the processor has the last word.
    early = await shop.refund(charge=made, amount=3001)
    assert (early.status_code, early.json()["code"]) == (400, "payments_refused")
    assert await shop.reserved(made) == 1000
    await shop.world.settle_payments()
    assert await shop.reserved(made) == 7000
    assert (await shop.refund(charge=made, amount=3001)).json()["code"] == "refund_too_large"
    assert (await shop.refund(charge=made, amount=3000)).status_code == 201


async def test_a_refund_that_fails_gives_back_what_it_took(shop: MoneyStage) -> None:
    made = await paid(shop, outcome="refund_fails")
    answer = await shop.refund(charge=made)
    assert (answer.status_code, answer.json()["status"], await shop.reserved(made)) == (201, "failed", 0)
    await shop.world.settle_payments()
    assert await shop.reserved(made) == 0
    assert (await shop.refund(charge=made, amount=1)).status_code == 201


async def test_a_refund_that_fails_later_may_be_made_again(shop: MoneyStage) -> None:
    made = await paid(shop)
    answer = (await shop.refund(charge=made)).json()
    await shop.world.settle_payments()
    assert await shop.reserved(made) == 10_000
    fell = {**refund_json(answer["id"], 10_000, charge=made, status="failed"), "failure_reason": "lost_or_stolen_card"}
    await shop.tell(event_json("refund.failed", fell, account=shop.account, created=START + 60))
    assert await shop.reserved(made) == 0
    (row,) = (await shop.listed("refunds"))["data"]
    assert (row["status"], row["failure_reason"]) == ("failed", "lost_or_stolen_card")
    # The processor tells of the refund alone, not of its charge once more.
    (shown,) = (await shop.listed("charges"))["data"]
    assert (shown["amount_refunded"], shown["refunded"]) == (0, False)


async def test_an_account_that_went_to_another_organisation_takes_its_charges_along(stage: MoneyStage) -> None:
    other = await with_account(stage.world, OTHER_PAYEE)
    await stage.tell(event_json("charge.succeeded", charge_json("ch_theirs"), account=OTHER_PAYEE))
    assert (await stage.listed("charges", other))["data"] != []
    await stage.tell(event_json("account.application.deauthorized", {"id": "ca_1", "object": "application"}, account=OTHER_PAYEE))
    assert (await stage.listed("charges", other))["data"] == []
    assert (await stage.refund(who=other, charge="ch_theirs", amount=1)).json()["code"] == "payments_not_connected"


async def test_a_downgrade_while_the_charge_is_looked_up_refunds_nothing(shop: MoneyStage) -> None:
    """The processor is asked for a charge that we do not know; the transaction that opens the call looks again (abuse case 45)."""
    made = await shop.world.charge(shop.account, 5000, "EUR")

    async def downgrade() -> None:
        while not any(call.path == f"/v1/charges/{made}" for call in shop.world.payments.calls):
            await asyncio.sleep(0)
        await shop.world.move_to(Tier.FREE, shop.who.organisation)

    # It is held up behind the downgrade, as a slow network would hold it up.
    await shop.world.ask_payments("POST", "faults", {"trouble": "closed", "method": "GET", "path": "/v1/charges/*"})
    answer, _ = await asyncio.gather(shop.refund(charge=made, amount=1000), downgrade())
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert shop.at_processor("refunds") == []
