"""A processor that fails in the middle of a refund or a payout: at most one effect per key, and what was taken is right in the end."""

from typing import Any

import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from operations.ledger.payment_attempts import record_payment_refused, record_payment_unknown
from operations.ledger.payment_intake import REFUND_OPERATION, payment_not_made
from storage.claims import CLAIM, claim_is
from storage.engine.sql import Command
from tests.billing_money.stage import MoneyStage, Object
from tests.stage import without_request_id

# What the processor does, whether it has its effect all the same, and how many attempts of one call meet it.
TROUBLES = [
    (kind, after, times)
    for kind in ("timeout", "closed", "error", "garbage")
    for after in ((True,) if kind == "garbage" else (False, True))
    for times in (1, 9)
]
SOON, LATE = 60, 1000


async def charged(shop: MoneyStage) -> str:
    made = await shop.world.charge(shop.account, 10_000, "EUR", outcome="available")
    await shop.world.settle_payments()
    return made


@pytest.mark.cases
@pytest.mark.parametrize("way", ["event", "sync"])
@pytest.mark.parametrize(("kind", "after", "times"), TROUBLES)
async def test_a_refund_in_trouble_is_made_once_or_not_at_all(shop: MoneyStage, kind: str, after: bool, times: int, way: str) -> None:
    made = await charged(shop)
    await shop.trouble(kind, "/v1/refunds", after=after, times=times)
    first = await shop.refund("key", charge=made, amount=1000)
    await shop.calm()
    assert first.status_code in (201, 502)
    if first.json().get("code") == "OUTCOME_UNKNOWN":
        assert await shop.reserved(made) == 1000
        again = await shop.refund("key", charge=made, amount=1000)
        assert (again.status_code, again.json()["code"], len(shop.at_processor("refunds"))) == (502, "OUTCOME_UNKNOWN", int(after))
    await settled(shop, way)
    final = await shop.refund("key", charge=made, amount=1000)
    refunds = shop.at_processor("refunds")
    assert len(refunds) == (1 if final.status_code == 201 else 0)
    if way == "sync" or after or times == 1:
        assert await shop.reserved(made) == sum(refund.amount for refund in refunds)
        assert final.status_code in (201, 400)
    if final.status_code == 201:
        assert final.json()["id"] == refunds[0].id


@pytest.mark.cases
@pytest.mark.parametrize("way", ["event", "sync"])
@pytest.mark.parametrize(("kind", "after", "times"), TROUBLES)
async def test_a_payout_in_trouble_is_made_once_or_not_at_all(shop: MoneyStage, kind: str, after: bool, times: int, way: str) -> None:
    await charged(shop)
    await shop.trouble(kind, "/v1/payouts", after=after, times=times)
    wanted: Object = {"amount": 1000, "currency": "EUR"}
    first = await shop.pay_out("key", **wanted)
    await shop.calm()
    assert first.status_code in (201, 502)
    if first.json().get("code") == "OUTCOME_UNKNOWN":
        again = await shop.pay_out("key", **wanted)
        assert (again.status_code, again.json()["code"], len(shop.at_processor("payouts"))) == (502, "OUTCOME_UNKNOWN", int(after))
    await settled(shop, way)
    final = await shop.pay_out("key", **wanted)
    payouts = shop.at_processor("payouts")
    assert len(payouts) == (1 if final.status_code == 201 else 0)
    if way == "sync" or after or times == 1:
        assert final.status_code in (201, 400)


async def settled(shop: MoneyStage, way: str) -> None:
    """What came of it becomes known: by the events, or a while later by reading what is there."""
    shop.world.clock.advance(SOON if way == "event" else LATE)
    if way == "event":
        await shop.world.settle_payments()
    else:
        await shop.sync()


async def test_a_key_whose_process_died_says_what_was_found_out_since(shop: MoneyStage) -> None:
    """The attempt was settled while its claim was still that of a call under way: the answer follows when the key is asked for."""
    made = await charged(shop)
    await shop.trouble("timeout", "/v1/refunds", after=True)
    await shop.refund("key", charge=made, amount=1000)
    await shop.calm()
    where = {"organisation": shop.who.organisation, "operation": REFUND_OPERATION, "key": "key"}
    under_way = Command(sa.update(CLAIM).where(claim_is("organisation", "operation", "key")).values(state=sa.bindparam("to")))
    await shop.world.store.write(lambda connection: connection.run(under_way, **where, to="dispatching"))
    await shop.world.settle_payments()
    await shop.world.store.write(lambda connection: connection.run(under_way, **where, to="unknown"))
    final = await shop.refund("key", charge=made, amount=1000)
    assert (final.status_code, final.json()["id"]) == (201, shop.at_processor("refunds")[0].id)


async def test_a_lost_answer_does_not_outweigh_the_event_that_came_before_it(shop: MoneyStage) -> None:
    made = await charged(shop)
    await shop.trouble("timeout", "/v1/refunds", after=True)
    await shop.refund("key", charge=made, amount=1000)
    await shop.world.settle_payments()
    attempt = shop.at_processor("refunds")[0].metadata["attempt"]
    said: dict[str, Any] = {"attempt": attempt, "request_id": "req_1", "now": shop.world.clock.now()}
    late = await shop.world.store.write(record_payment_unknown, **said)
    refused = await shop.world.store.write(record_payment_refused, **said, refusal=payment_not_made("refund"))
    assert (late.status, refused.status, late.body) == (201, 201, refused.body)
    assert await shop.reserved(made) == 1000


async def test_an_unknown_refund_keeps_what_it_took_until_it_is_known(shop: MoneyStage) -> None:
    made = await charged(shop)
    await shop.trouble("timeout", "/v1/refunds", after=True)
    answer = await shop.refund("key", charge=made, amount=9000)
    await shop.calm()
    said = without_request_id(answer)
    assert answer.status_code == 502
    assert said == snapshot(
        {
            "error": "Whether the refund was made is not known. Keep the key: it is found out by itself, and never sent twice",
            "code": "OUTCOME_UNKNOWN",
            "hint": "Repeat the call with the same key later to learn what came of it; operator_billing_list_refunds shows it too",
            "outcome_unknown": True,
        }
    )
    assert (await shop.refund(charge=made, amount=1001)).json()["code"] == "refund_too_large"
    assert (await shop.refund(charge=made, amount=1000)).status_code == 201
    await shop.world.settle_payments()
    final = await shop.refund("key", charge=made, amount=9000)
    assert (final.status_code, final.json()["amount"], final.headers["idempotent-replayed"]) == (201, 9000, "true")
    assert await shop.reserved(made) == 10_000


async def test_a_refund_that_the_processor_never_made_is_given_up_after_a_quarter_of_an_hour(shop: MoneyStage) -> None:
    made = await charged(shop)
    await shop.trouble("timeout", "/v1/refunds")
    await shop.refund("key", charge=made, amount=9000)
    await shop.calm()
    shop.world.clock.advance(899)
    await shop.sync()
    assert await shop.reserved(made) == 9000
    shop.world.clock.advance(1)
    await shop.sync()
    assert await shop.reserved(made) == 0
    final = await shop.refund("key", charge=made, amount=9000)
    said = without_request_id(final)
    assert final.status_code == 400
    assert said == snapshot(
        {
            "error": "The payment processor made no refund for this call; no money was moved",
            "code": "payments_refused",
            "hint": "Use a new key to try again",
        }
    )
    assert (await shop.refund("other", charge=made, amount=9000)).status_code == 201


async def test_a_call_that_the_processor_had_no_time_for_frees_the_key_and_the_money(shop: MoneyStage) -> None:
    made = await charged(shop)
    await shop.trouble("rate_limited", "/v1/refunds")
    answer = await shop.refund("key", charge=made, amount=1000)
    assert answer.status_code == 502
    assert (await shop.reserved(made), shop.at_processor("refunds")) == (0, [])
    await shop.calm()
    assert (await shop.refund("key", charge=made, amount=500)).status_code == 201


async def test_what_the_processor_refuses_is_the_keys_answer_and_gives_the_money_back(shop: MoneyStage) -> None:
    made = await charged(shop)
    ask = shop.world.pipeline.deps.payments
    await ask.refund(shop.account, charge=made, amount=10_000, reason=None, key="elsewhere", metadata={})
    answer = await shop.refund("key", charge=made, amount=1000)
    assert (answer.status_code, answer.json()["processor_code"]) == (400, "charge_already_refunded")
    assert (await shop.refund("key", charge=made, amount=1000)).content == answer.content
    assert await shop.reserved(made) == 0


async def test_anothers_metadata_settles_nothing(shop: MoneyStage) -> None:
    made = await charged(shop)
    await shop.trouble("timeout", "/v1/refunds")
    await shop.refund("key", charge=made, amount=9000)
    await shop.calm()
    ask = shop.world.pipeline.deps.payments
    attempt = next(call.key for call in shop.world.payments.calls if call.path == "/v1/refunds")
    assert attempt == "refund:key"
    await ask.refund(shop.account, charge=made, amount=1000, reason=None, key="own pages", metadata={"attempt": "att_1"})
    await shop.world.settle_payments()
    assert (await shop.refund("key", charge=made, amount=9000)).json()["code"] == "OUTCOME_UNKNOWN"
    assert await shop.reserved(made) == 10_000


@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "garbage"])
async def test_a_question_that_fails_before_the_refund_frees_the_key_and_the_money(shop: MoneyStage, kind: str) -> None:
    """The charge is asked for once more before its refund is sent; nothing was sent then, so nothing is unknown."""
    made = await charged(shop)
    await shop.world.ask_payments("POST", "faults", {"trouble": kind, "method": "GET", "path": "/v1/charges/*", "times": 9})
    answer = await shop.refund("key", charge=made, amount=1000)
    assert (answer.status_code, answer.json().get("outcome_unknown")) == (502, None)
    assert (await shop.reserved(made), shop.at_processor("refunds")) == (0, [])
    await shop.calm()
    assert (await shop.refund("key", charge=made, amount=500)).status_code == 201
