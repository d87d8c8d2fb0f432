"""Charges, what comes back of them, and what goes to the bank."""

import pytest
import stripe

from simulators.processor.call import ProcessorRefusal
from simulators.processor.cards import SimulatedCard as PaymentCard
from simulators.processor.disputes import close_dispute, open_dispute
from simulators.processor.payouts import fail_payout
from tests.sandbox_payments.processor import DAY, GOOD, ClockedProcessor, processor_with_account, words


def sums(p: ClockedProcessor, account: str | None) -> tuple[int, int]:
    """In dollars: available, pending."""
    balance = p.v1.balance.retrieve(None, {"stripe_account": account} if account else None)
    available, pending = (next(one.amount for one in rows if one.currency == "usd") for rows in (balance.available, balance.pending))
    return available, pending


def test_a_charge_rests_for_two_days_and_the_platform_keeps_its_fee() -> None:
    p, account, _ = processor_with_account()
    charge = p.charge(account, amount=10_000, card=GOOD, fee=100)
    assert sums(p, account) == (0, 10_000 - 320 - 100)
    assert sums(p, None) == (0, 100)
    p.advance(2 * DAY)
    assert sums(p, account) == (9_580, 0)
    assert sums(p, None) == (100, 0)
    found = p.v1.charges.retrieve(charge, None, {"stripe_account": account})
    fee = p.v1.application_fees.list({"charge": charge}).data[0]
    assert (found.application_fee, found.application_fee_amount) == (fee.id, 100)
    assert (fee.account, fee.amount, fee.amount_refunded, fee.charge) == (account, 100, 0, charge)
    assert p.types(account)[1:] == ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]


@pytest.mark.parametrize(
    ("number", "code", "decline"),
    [
        ("4000000000000002", "card_declined", "generic_decline"),
        ("4000000000009995", "card_declined", "insufficient_funds"),
        ("4000000000000069", "expired_card", "expired_card"),
        ("4111111111111111", "card_declined", "test_mode_live_card"),
    ],
)
def test_a_declined_card_leaves_a_failed_charge_and_no_money(number: str, code: str, decline: str) -> None:
    p, account, _ = processor_with_account()
    with pytest.raises(ProcessorRefusal) as refused:
        p.charge(account, card=PaymentCard(number))
    assert (refused.value.status, refused.value.type, refused.value.code) == (402, "card_error", code)
    charge = p.v1.charges.list(None, {"stripe_account": account}).data[0]
    assert (charge.status, charge.paid, charge.failure_code) == ("failed", False, code)
    assert charge.outcome is not None and charge.outcome.reason == decline
    assert sums(p, account) == (0, 0)
    assert p.types(account)[-2:] == ["charge.failed", "payment_intent.payment_failed"]


def test_a_number_that_is_no_card_reaches_no_bank() -> None:
    p, account, _ = processor_with_account()
    for number in ("4242424242424241", "", "abc", "42"):
        with pytest.raises(ProcessorRefusal, match="card number is incorrect"):
            p.charge(account, card=PaymentCard(number))
    assert p.state.book(account).charges == {}


def test_refunds_take_what_is_left_and_give_the_fee_back_in_proportion() -> None:
    p, account, at = processor_with_account()
    charge = p.charge(account, amount=1_000, fee=33)
    begin = sums(p, account)[0]
    first = p.v1.refunds.create({"charge": charge, "amount": 333, "refund_application_fee": True, "metadata": {"key": "k"}}, at)
    assert (first.amount, first.status, words(first.metadata)) == (333, "succeeded", {"key": "k"})
    fee = p.v1.application_fees.list().data[0]
    assert (fee.amount_refunded, fee.refunded) == (10, False)
    assert sums(p, account)[0] == begin - 333 + 10
    with pytest.raises(stripe.InvalidRequestError, match="unrefunded amount") as refused:
        p.v1.refunds.create({"charge": charge, "amount": 668}, at)
    assert refused.value.code == "amount_too_large"
    rest = p.v1.refunds.create({"payment_intent": str(first.payment_intent), "refund_application_fee": True}, at)
    assert rest.amount == 667
    found = p.v1.charges.retrieve(charge, None, at)
    assert (found.amount_refunded, found.refunded) == (1_000, True)
    fee = p.v1.application_fees.list().data[0]
    assert (fee.amount_refunded, fee.refunded) == (33, True)
    assert sums(p, None) == (0, 0)
    with pytest.raises(stripe.InvalidRequestError) as again:
        p.v1.refunds.create({"charge": charge}, at)
    assert again.value.code == "charge_already_refunded"
    assert [one.id for one in p.v1.refunds.list({"charge": charge}, at).data] == [rest.id, first.id]
    assert p.types()[-3:] == ["charge.refunded", "refund.created", "application_fee.refunded"]


def test_a_refund_of_what_is_not_there_or_is_disputed_is_refused() -> None:
    p, account, at = processor_with_account()
    with pytest.raises(stripe.InvalidRequestError) as unknown:
        p.v1.refunds.create({"charge": "ch_x"}, at)
    assert (unknown.value.http_status, unknown.value.code, unknown.value.param) == (404, "resource_missing", "charge")
    disputed = p.charge(account, card=PaymentCard("4000000000000259"))
    with pytest.raises(stripe.InvalidRequestError) as refused:
        p.v1.refunds.create({"charge": disputed}, at)
    assert refused.value.code == "charge_disputed"
    asked = p.charge(account, card=PaymentCard("4000000000001976"))
    assert p.v1.disputes.list({"charge": asked}, at).data[0].is_charge_refundable is True
    assert p.v1.refunds.create({"charge": asked}, at).status == "succeeded"
    plain = p.charge(account)
    with pytest.raises(stripe.InvalidRequestError) as none:
        p.v1.refunds.create({"charge": plain, "refund_application_fee": True}, at)
    assert none.value.param == "refund_application_fee"


def test_a_refund_that_the_payers_bank_returns_is_a_failed_one() -> None:
    p, account, at = processor_with_account()
    charge = p.charge(account, card=PaymentCard("4000000000005126"))
    refund = p.v1.refunds.create({"charge": charge, "amount": 100}, at)
    assert (refund.status, refund.failure_reason) == ("failed", "lost_or_stolen_card")
    assert p.v1.charges.retrieve(charge, None, at).amount_refunded == 0
    assert p.types(account)[-3:] == ["refund.updated", "charge.refund.updated", "refund.failed"]


def test_a_payout_needs_the_money_and_arrives_two_days_later() -> None:
    p, account, at = processor_with_account()
    p.charge(account, amount=10_000)
    with pytest.raises(stripe.InvalidRequestError) as short:
        p.v1.payouts.create({"amount": 9_681, "currency": "usd"}, at)
    assert short.value.code == "balance_insufficient"
    payout = p.v1.payouts.create({"amount": 9_680, "currency": "usd", "metadata": {"a": "b"}}, at)
    assert (payout.status, payout.automatic, words(payout.metadata)) == ("pending", False, {"a": "b"})
    assert sums(p, account) == (0, 0)
    p.advance(DAY)
    assert p.v1.payouts.retrieve(payout.id, None, at).status == "in_transit"
    with pytest.raises(stripe.InvalidRequestError, match="in_transit"):
        p.v1.payouts.cancel(payout.id, None, at)
    p.advance(DAY)
    assert p.v1.payouts.retrieve(payout.id, None, at).status == "paid"
    assert p.types(account)[-4:] == ["payout.created", "payout.updated", "payout.updated", "payout.paid"]


def test_a_payout_taken_back_or_returned_is_in_the_balance_again() -> None:
    p, account, at = processor_with_account()
    p.charge(account, amount=10_000)
    first = p.v1.payouts.create({"amount": 500, "currency": "usd"}, at)
    assert p.v1.payouts.cancel(first.id, None, at).status == "canceled"
    second = p.v1.payouts.create({"amount": 9_680, "currency": "usd"}, at)
    fail_payout(p.state, account, second.id)
    found = p.v1.payouts.retrieve(second.id, None, at)
    assert (found.status, found.failure_code) == ("failed", "account_closed")
    assert sums(p, account) == (9_680, 0)


def test_a_schedule_pays_out_by_itself() -> None:
    p, account, at = processor_with_account()
    p.v1.accounts.update(account, {"settings": {"payouts": {"schedule": {"interval": "weekly", "weekly_anchor": "monday"}}}})
    p.charge(account, amount=10_000)
    p.advance(DAY)
    assert p.v1.payouts.list(None, at).data == []
    p.advance(6 * DAY)
    made = p.v1.payouts.list(None, at).data
    assert [(one.amount, one.automatic) for one in made] == [(9_680, True)]
    assert sums(p, account) == (0, 0)


def test_a_dispute_takes_the_money_and_evidence_goes_to_the_bank_once() -> None:
    p, account, at = processor_with_account()
    charge = p.charge(account, amount=10_000)
    dispute = open_dispute(p.state, account, charge, "product_not_received").id
    assert sums(p, account)[0] == 9_680 - 10_000 - 1_500
    staged = p.v1.disputes.update(dispute, {"evidence": {"customer_name": "Ada"}, "submit": False}, at)
    assert (staged.status, staged.evidence.customer_name, staged.evidence_details.submission_count) == ("needs_response", "Ada", 0)
    sent = p.v1.disputes.update(dispute, {"evidence": {"uncategorized_text": "It was used."}}, at)
    assert (sent.status, sent.evidence_details.submission_count, sent.evidence.customer_name) == ("under_review", 1, "Ada")
    with pytest.raises(stripe.InvalidRequestError, match="only once"):
        p.v1.disputes.update(dispute, {"evidence": {"customer_name": "Eve"}}, at)
    with pytest.raises(stripe.InvalidRequestError, match="No such file upload"):
        p.v1.disputes.update(dispute, {"evidence": {"receipt": "file_1"}}, at)
    close_dispute(p.state, account, dispute, "won")
    assert sums(p, account)[0] == 9_680 - 1_500
    assert p.types(account)[-6:] == [
        "charge.dispute.created",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.updated",
        "charge.dispute.updated",
        "charge.dispute.closed",
        "charge.dispute.funds_reinstated",
    ]


def test_a_review_is_approved_once_and_a_refund_closes_it_too() -> None:
    p, account, at = processor_with_account()
    charges = [p.charge(account, card=PaymentCard("4000000000009235")) for _ in range(2)]
    reviews = p.v1.reviews.list(None, at).data
    assert {str(review.charge) for review in reviews} == set(charges)
    approved = p.v1.reviews.approve(reviews[0].id, None, at)
    assert (approved.open, approved.reason, approved.closed_reason) == (False, "approved", "approved")
    with pytest.raises(stripe.InvalidRequestError, match="already been closed"):
        p.v1.reviews.approve(reviews[0].id, None, at)
    p.v1.refunds.create({"charge": str(reviews[1].charge)}, at)
    assert p.v1.reviews.retrieve(reviews[1].id, None, at).reason == "refunded"
    assert p.v1.reviews.list(None, at).data == []


def test_a_value_is_on_a_list_once_and_fits_its_kind() -> None:
    p, _, at = processor_with_account()
    made = p.v1.radar.value_lists.create({"alias": "lands", "name": "Lands", "item_type": "country"}, at)
    item = p.v1.radar.value_list_items.create({"value_list": made.id, "value": "CH"}, at)
    for value, code in (("CH", "resource_already_exists"), ("Switzerland", None)):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            p.v1.radar.value_list_items.create({"value_list": made.id, "value": value}, at)
        assert (refused.value.param, refused.value.code) == ("value", code)
    assert [one.id for one in p.v1.radar.value_list_items.list({"value_list": made.id}, at).data] == [item.id]
