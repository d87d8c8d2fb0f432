"""Pages on which a buyer pays once, and the codes that make it cheaper."""

from typing import Any

import pytest
import stripe

from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.checkout import complete_checkout, enter_promotion
from tests.sandbox_payments.processor import DAY, GOOD, PAGES_ADDRESS, processor_with_account, words

PLAN: Any = {
    "mode": "payment",
    "success_url": "https://shop.example/done?session={CHECKOUT_SESSION_ID}",
    "customer_email": "buyer@example.com",
    "line_items": [{"price_data": {"currency": "usd", "unit_amount": 2_000, "product_data": {"name": "1 GB"}}, "quantity": 1}],
    "payment_intent_data": {"application_fee_amount": 20, "metadata": {"order": "ord_1"}},
    "metadata": {"order": "ord_1"},
}


def test_a_session_is_paid_once_and_its_payment_carries_our_words() -> None:
    p, account, at = processor_with_account()
    session = p.v1.checkout.sessions.create(PLAN, at)
    assert (session.status, session.payment_status, session.payment_intent) == ("open", "unpaid", None)
    assert session.url == f"{PAGES_ADDRESS}/checkout/{session.id}" and session.id.startswith("cs_test_")
    with pytest.raises(ProcessorRefusal, match="declined"):
        complete_checkout(p.state, account, session.id, PaymentCard("4000000000000002"))
    complete_checkout(p.state, account, session.id, GOOD)
    done = p.v1.checkout.sessions.retrieve(session.id, None, at)
    assert (done.status, done.payment_status, done.amount_total, done.url) == ("complete", "paid", 2_000, None)
    intent = p.v1.payment_intents.retrieve(str(done.payment_intent), None, at)
    assert (intent.status, words(intent.metadata), intent.application_fee_amount) == ("succeeded", {"order": "ord_1"}, 20)
    charge = p.v1.charges.retrieve(str(intent.latest_charge), None, at)
    assert (words(charge.metadata), charge.application_fee_amount) == ({"order": "ord_1"}, 20)
    assert len(p.v1.charges.list({"payment_intent": intent.id}, at).data) == 2
    with pytest.raises(ProcessorRefusal, match="is complete"):
        complete_checkout(p.state, account, session.id, GOOD)
    with pytest.raises(stripe.InvalidRequestError, match="can be expired"):
        p.v1.checkout.sessions.expire(session.id, None, at)
    assert p.types(account)[-1] == "checkout.session.completed"


def test_a_session_ends_by_itself_or_by_hand() -> None:
    p, account, at = processor_with_account()
    for wrong in (int(p.now) + 1_799, int(p.now) + DAY + 1):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            p.v1.checkout.sessions.create({**PLAN, "expires_at": wrong}, at)
        assert refused.value.param == "expires_at"
    short = p.v1.checkout.sessions.create({**PLAN, "expires_at": int(p.now) + 1_800}, at).id
    by_hand = p.v1.checkout.sessions.create(PLAN, at).id
    assert p.v1.checkout.sessions.expire(by_hand, None, at).status == "expired"
    p.advance(1_800)
    assert p.v1.checkout.sessions.retrieve(short, None, at).status == "expired"
    assert p.types(account).count("checkout.session.expired") == 2
    with pytest.raises(ProcessorRefusal, match="is expired"):
        complete_checkout(p.state, account, short, GOOD)


def test_a_session_asks_for_what_the_processor_can_collect() -> None:
    p, _, at = processor_with_account()
    cheap = [{"price_data": {"currency": "usd", "unit_amount": 49, "product_data": {"name": "x"}}, "quantity": 1}]
    for wrong, param in (
        ({"line_items": cheap}, None),
        ({"allow_promotion_codes": True, "discounts": [{"coupon": "c"}]}, "allow_promotion_codes"),
        ({"payment_intent_data": {"application_fee_amount": 2_001}}, "payment_intent_data[application_fee_amount]"),
        ({"customer": "cus_1"}, "customer_email"),
        ({"success_url": "shop"}, "success_url"),
        ({"mode": "subscription"}, "mode"),
        (
            {"line_items": [{"price_data": {"currency": "usd", "product_data": {"name": "x"}}, "quantity": 1}]},
            "line_items[0][price_data][unit_amount]",
        ),
    ):
        asked: Any = {**PLAN, **wrong}
        with pytest.raises(stripe.InvalidRequestError) as refused:
            p.v1.checkout.sessions.create(asked, at)
        assert refused.value.param == param, wrong
    with pytest.raises(stripe.InvalidRequestError, match="on behalf of another account"):
        p.v1.checkout.sessions.create(PLAN)


def test_a_code_takes_its_part_off_as_often_as_it_may() -> None:
    p, account, at = processor_with_account()
    half = p.v1.coupons.create({"percent_off": 33.33, "duration": "once"}, at).id
    code = p.v1.promotion_codes.create({"code": "SPRING", "promotion": {"type": "coupon", "coupon": half}, "max_redemptions": 1}, at)
    with pytest.raises(stripe.InvalidRequestError, match="already exists"):
        p.v1.promotion_codes.create({"code": "spring", "promotion": {"type": "coupon", "coupon": half}}, at)
    first, second = (p.v1.checkout.sessions.create({**PLAN, "allow_promotion_codes": True}, at).id for _ in range(2))
    with pytest.raises(ProcessorRefusal, match="code is invalid"):
        enter_promotion(p.state, account, first, "WINTER")
    enter_promotion(p.state, account, first, "Spring")
    complete_checkout(p.state, account, first, GOOD)
    done = p.v1.checkout.sessions.retrieve(first, None, at)
    assert (done.amount_subtotal, done.amount_total) == (2_000, 1_333)
    assert p.v1.charges.list(None, at).data[0].amount == 1_333
    used = p.v1.promotion_codes.retrieve(code.id, None, at)
    assert (used.times_redeemed, used.active) == (1, False)
    with pytest.raises(ProcessorRefusal, match="code is invalid"):
        enter_promotion(p.state, account, second, "SPRING")


def test_a_coupon_over_all_makes_a_purchase_free() -> None:
    p, account, at = processor_with_account()
    gift = p.v1.coupons.create({"amount_off": 5_000, "currency": "usd", "duration": "once"}, at).id
    session = p.v1.checkout.sessions.create({**PLAN, "discounts": [{"coupon": gift}]}, at)
    assert session.amount_total == 0
    complete_checkout(p.state, account, session.id, None)
    done = p.v1.checkout.sessions.retrieve(session.id, None, at)
    assert (done.status, done.payment_status, done.payment_intent) == ("complete", "no_payment_required", None)


def test_a_code_ends_with_its_time() -> None:
    p, _, at = processor_with_account()
    coupon = p.v1.coupons.create({"amount_off": 100, "currency": "usd"}, at).id
    asked: Any = {"code": "TODAY", "promotion": {"type": "coupon", "coupon": coupon}, "expires_at": int(p.now) + DAY}
    p.v1.promotion_codes.create(asked, at)
    with pytest.raises(stripe.InvalidRequestError) as past:
        p.v1.promotion_codes.create({**asked, "code": "PAST", "expires_at": int(p.now)}, at)
    assert past.value.param == "expires_at"
    p.advance(DAY)
    assert p.v1.promotion_codes.list({"code": "today", "active": True}, at).data == []
    assert p.v1.promotion_codes.create({**asked, "expires_at": int(p.now) + DAY}, at).active is True
