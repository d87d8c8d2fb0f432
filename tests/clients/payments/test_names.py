"""The members that we read are members of the official library's own models, in the version that we ask for."""

import pytest
import stripe

Payments = stripe.BalanceSettings.Payments


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (stripe.Account, "id type controller charges_enabled payouts_enabled details_submitted default_currency requirements metadata"),
        (stripe.Account.Controller, "stripe_dashboard"),
        (stripe.Account.Controller.StripeDashboard, "type"),
        (stripe.Account.Requirements, "currently_due"),
        (stripe.AccountLink, "url expires_at"),
        (stripe.LoginLink, "url"),
        (stripe.OAuth.OAuthToken, "stripe_user_id"),
        (stripe.Balance, "livemode available pending"),
        (stripe.Balance.Available, "amount currency"),
        (stripe.Balance.Pending, "amount currency"),
        (stripe.BalanceSettings, "payments"),
        (Payments, "payouts settlement_timing"),
        (Payments.Payouts, "schedule"),
        (Payments.Payouts.Schedule, "interval weekly_payout_days monthly_payout_days"),
        (Payments.SettlementTiming, "delay_days"),
        (stripe.Charge, "id amount amount_refunded currency status refunded disputed created payment_intent application_fee metadata"),
        (stripe.Charge, "failure_code"),
        (stripe.Refund, "id amount currency status charge payment_intent reason created failure_reason metadata"),
        (stripe.Payout, "id amount currency status automatic arrival_date created failure_code metadata"),
        (stripe.Dispute, "id amount currency status reason charge payment_intent evidence_details created"),
        (stripe.Dispute.EvidenceDetails, "due_by submission_count"),
        (stripe.ApplicationFee, "id account amount amount_refunded currency charge created"),
        (stripe.Review, "id open reason charge payment_intent created"),
        (stripe.radar.ValueList, "id alias name item_type created"),
        (stripe.radar.ValueListItem, "id value_list value created"),
        (stripe.Invoice, "id status total amount_paid currency hosted_invoice_url status_transitions metadata"),
        (stripe.Invoice.StatusTransitions, "paid_at"),
        (stripe.PromotionCode, "id promotion code active"),
        (stripe.PromotionCode.Promotion, "coupon"),
        (stripe.checkout.Session, "id status payment_status amount_total currency payment_intent expires_at url customer_details metadata"),
        (stripe.checkout.Session, "customer_email"),
        (stripe.checkout.Session.CustomerDetails, "email"),
        (stripe.Event, "id type account created livemode data"),
    ],
    ids=lambda given: given.__qualname__ if isinstance(given, type) else None,
)
def test_a_member_that_is_read_is_one_of_the_model(model: type, names: str) -> None:
    assert set(names.split()) <= model.__annotations__.keys()
