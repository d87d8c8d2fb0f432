"""Every object the processor answers with is one of the official library's, attribute by attribute."""

import json
from typing import Any

import pytest
import stripe

from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.checkout import complete_checkout, enter_promotion
from simulators.processor.demo_account import make_demo_account
from simulators.processor.invoices import pay_invoice_by_card
from simulators.processor.onboarding import release_account
from tests.sandbox_payments.models import complaints
from tests.sandbox_payments.processor import AT_ONCE, DAY, GOOD, SIMULATED_KEY, ClockedProcessor, processor_with_account


def last(p: ClockedProcessor) -> dict[str, Any]:
    assert p.last is not None and p.last.status == 200
    return json.loads(p.last.body)


def check(p: ClockedProcessor, answer: stripe.StripeObject) -> None:
    """What was just answered, as it was on the wire and as the library made it."""
    body = last(p)
    assert complaints(body) == []
    assert answer.to_dict()["object"] == body["object"]
    assert type(answer) is not stripe.StripeObject


def test_the_checker_finds_what_misses_what_is_too_much_and_what_has_another_type() -> None:
    p, account, _ = processor_with_account()
    body = json.loads(p.call("GET", f"/v1/charges/{p.charge(account)}", headers=head(account)).body)
    assert complaints(body) == []
    for name, value in (("amount", "5"), ("paid", None), ("status", "settled"), ("invented", 1), ("metadata", {"a": 1}), ("refunded", 1)):
        assert len(complaints({**body, name: value})) == 1, name
    for name in ("amount", "billing_details", "metadata", "object"):
        assert complaints({key: value for key, value in body.items() if key != name}) != []
    assert complaints({**body, "billing_details": {"email": 1}}) == ["charge.billing_details.email: 1 is no str"]
    assert complaints({**body, "outcome": {**body["outcome"], "seller_message": []}}) != []


def head(account: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SIMULATED_KEY}", "stripe-account": account}


def test_accounts_links_balances_and_schedules_are_the_librarys() -> None:
    p = ClockedProcessor()
    links: Any = {
        "account": p.account(),
        "type": "account_onboarding",
        "return_url": "https://a.example",
        "refresh_url": "https://a.example",
    }
    fresh = p.v1.accounts.create({"controller": express(), "metadata": {"organisation": "org_1"}})
    check(p, fresh)
    assert fresh.type == "express"
    account = links["account"]
    at: Any = {"stripe_account": account}
    check(p, p.v1.accounts.retrieve(account))
    check(p, p.v1.accounts.update(account, {"settings": {"payouts": {"schedule": {"interval": "weekly", "weekly_anchor": "friday"}}}}))
    check(p, p.v1.account_links.create(links))
    check(p, p.v1.accounts.login_links.create(account))
    p.charge(account)
    check(p, p.v1.balance.retrieve(None, at))
    check(p, p.v1.balance_settings.retrieve(None, at))
    days: Any = {"payments": {"payouts": {"schedule": {"interval": "monthly", "monthly_payout_days": [1, 15]}}}}
    check(p, p.v1.balance_settings.update(days, at))
    check(p, p.v1.balance.retrieve())


def express() -> Any:
    return {"fees": {"payer": "application"}, "losses": {"payments": "application"}, "stripe_dashboard": {"type": "express"}}


def test_money_that_comes_in_and_goes_out_is_the_librarys() -> None:
    p, account, at = processor_with_account()
    charge = p.charge(account, fee=50)
    with pytest.raises(ProcessorRefusal):
        p.charge(account, card=PaymentCard("4000000000000002"))
    check(p, p.v1.charges.list(None, at))
    one = p.v1.charges.retrieve(charge, None, at)
    check(p, one)
    assert isinstance(one.payment_intent, str) and isinstance(one.balance_transaction, str)
    check(p, p.v1.payment_intents.retrieve(one.payment_intent, None, at))
    check(p, p.v1.payment_intents.list(None, at))
    check(p, p.v1.balance_transactions.retrieve(one.balance_transaction, None, at))
    check(p, p.v1.refunds.create({"charge": charge, "amount": 700, "refund_application_fee": True}, at))
    check(p, p.v1.refunds.list({"charge": charge}, at))
    check(p, p.v1.payouts.create({"amount": 100, "currency": "usd"}, at))
    check(p, p.v1.payouts.list(None, at))
    fees = p.v1.application_fees.list()
    check(p, fees)
    check(p, p.v1.application_fees.retrieve(fees.data[0].id))
    check(p, p.v1.application_fees.refunds.list(fees.data[0].id))
    check(p, p.v1.balance_transactions.list(None, at))
    p.charge(account, card=PaymentCard("4000000000005126"))
    check(p, p.v1.refunds.create({"charge": p.v1.charges.list(None, at).data[0].id}, at))
    check(p, p.v1.refunds.list(None, at))


def test_disputes_reviews_and_value_lists_are_the_librarys() -> None:
    p, account, at = processor_with_account()
    for number in ("4000000000000259", "4000000000001976", "4000000000009235"):
        p.charge(account, card=PaymentCard(number))
    disputes = p.v1.disputes.list(None, at)
    check(p, disputes)
    assert [one.status for one in disputes.data] == ["warning_needs_response", "needs_response"]
    told: Any = {"evidence": {"customer_name": "Ada", "uncategorized_text": "winning_evidence"}, "submit": True}
    check(p, p.v1.disputes.update(disputes.data[1].id, told, at))
    check(p, p.v1.disputes.retrieve(disputes.data[1].id, None, at))
    assert len(last(p)["balance_transactions"]) == 2
    reviews = p.v1.reviews.list(None, at)
    check(p, reviews)
    check(p, p.v1.reviews.approve(reviews.data[0].id, None, at))
    check(p, p.v1.reviews.retrieve(reviews.data[0].id, None, at))
    made = p.v1.radar.value_lists.create({"alias": "blocked", "name": "Blocked", "item_type": "email"}, at)
    check(p, made)
    check(p, p.v1.radar.value_list_items.create({"value_list": made.id, "value": "a@b.example"}, at))
    check(p, p.v1.radar.value_list_items.list({"value_list": made.id}, at))
    check(p, p.v1.radar.value_lists.list(None, at))
    check(p, p.v1.radar.value_lists.retrieve(made.id, None, at))


def test_invoices_are_the_librarys_in_each_of_their_states() -> None:
    p, account, at = processor_with_account()
    draft = p.invoice(account, 1_200, number="INV-1", fee=12)
    check(p, draft)
    check(p, p.v1.customers.retrieve(draft.customer, None, at))
    check(p, p.v1.invoices.line_items.list(draft.id, None, at))
    check(p, p.v1.invoice_items.list(None, at))
    sent = p.v1.invoices.send_invoice(draft.id, None, at)
    check(p, sent)
    pay_invoice_by_card(p.state, account, draft.id, GOOD)
    check(p, p.v1.invoices.retrieve(draft.id, {"expand": ["payments"]}, at))
    assert len(last(p)["payments"]["data"]) == 1
    check(p, p.v1.invoices.void_invoice(p.v1.invoices.finalize_invoice(p.invoice(account, 300).id, None, at).id, None, at))
    check(p, p.v1.invoices.finalize_invoice(p.invoice(account).id, None, at))
    check(p, p.v1.invoices.delete(p.invoice(account, 5).id, None, at))
    check(p, p.v1.invoices.list(None, at))
    check(p, p.v1.invoice_payments.list(None, at))


def test_checkouts_coupons_and_promotion_codes_are_the_librarys() -> None:
    p, account, at = processor_with_account()
    coupon = p.v1.coupons.create({"percent_off": 12.5, "duration": "once"}, at)
    check(p, coupon)
    check(p, p.v1.promotion_codes.create({"code": "SPRING", "promotion": {"type": "coupon", "coupon": coupon.id}}, at))
    check(p, p.v1.promotion_codes.list({"code": "spring"}, at))
    session = p.v1.checkout.sessions.create({**CHECKOUT, "allow_promotion_codes": True, "expand": ["line_items"]}, at)
    check(p, session)
    enter_promotion(p.state, account, session.id, "spring")
    complete_checkout(p.state, account, session.id, AT_ONCE)
    check(p, p.v1.checkout.sessions.retrieve(session.id, {"expand": ["line_items"]}, at))
    assert last(p)["amount_total"] == 1_750 and last(p)["customer_details"]["email"] == "ada@example.com"
    check(p, p.v1.checkout.sessions.line_items.list(session.id, None, at))
    check(p, p.v1.checkout.sessions.expire(p.v1.checkout.sessions.create(CHECKOUT, at).id, None, at))
    check(p, p.v1.checkout.sessions.list(None, at))


CHECKOUT: Any = {
    "mode": "payment",
    "success_url": "https://shop.example/done?session={CHECKOUT_SESSION_ID}",
    "cancel_url": "https://shop.example/",
    "line_items": [{"price_data": {"currency": "usd", "unit_amount": 1_000, "product_data": {"name": "1 GB"}}, "quantity": 2}],
    "payment_intent_data": {"application_fee_amount": 20, "metadata": {"order": "ord_1"}},
}


@pytest.mark.long
def test_every_event_of_weeks_of_work_is_the_librarys_and_so_is_what_it_is_about() -> None:
    p = ClockedProcessor()
    account = make_demo_account(p.state, told=True).id
    paid = p.invoice(account, 900, fee=9)
    p.v1.invoices.send_invoice(paid.id, None, {"stripe_account": account})
    pay_invoice_by_card(p.state, account, paid.id, GOOD)
    p.v1.payouts.create({"amount": 100, "currency": "usd"}, {"stripe_account": account})
    p.advance(40 * 3_600)
    p.v1.accounts.update(account, {"metadata": {"a": "b"}})
    release_account(p.state, account)
    events = [json.loads(json.dumps(event)) for event in p.state.events.values()]
    assert len({event["type"] for event in events}) >= 24
    assert [one for event in events for one in complaints(event)] == []
    assert [one for event in events for one in complaints(event["data"]["object"])] == []
    listed = p.v1.events.list({"limit": 100, "type": "application_fee.*"})
    check(p, listed)
    assert {event.type for event in listed.data} == {"application_fee.created", "application_fee.refunded"}
    check(p, p.v1.events.retrieve(listed.data[0].id))


def test_a_key_of_live_mode_makes_everything_say_so() -> None:
    p = ClockedProcessor(key="sk_live_simulated_processor")
    account = p.account()
    assert p.v1.balance.retrieve(None, {"stripe_account": account}).livemode is True
    assert p.v1.checkout.sessions.create(CHECKOUT, {"stripe_account": account}).id.startswith("cs_live_")
    assert {event["livemode"] for event in p.state.events.values()} == {True}
    p.advance(DAY)
