"""Payments, and charges, which are the attempts at them: cards, money, events, and the calls about them."""

from simulators.processor.application_fees import keep_application_fee
from simulators.processor.balance import book_transaction
from simulators.processor.call import ApiCall, ApiNoun, CallForm, ProcessorRefusal, labelled_json, null_members, row_members
from simulators.processor.cards import CardVerdict, SimulatedCard, card_brand, card_digits, card_verdict
from simulators.processor.disputes import open_dispute
from simulators.processor.fraud import REVIEWS, open_review
from simulators.processor.state import Charge, JsonObject, PaymentIntent, ProcessorState

CHARGES = ApiNoun(
    "charge",
    "charges",
    lambda book: book.charges,
    lambda state, _, row: charge_json(state, row),
    filters={"customer": "customer", "payment_intent": "intent"},
)
PAYMENT_INTENTS = ApiNoun(
    "payment_intent",
    "payment_intents",
    lambda book: book.intents,
    lambda state, _, row: _payment_intent_json(state, row),
    "intent",
    {"customer": "customer"},
)
DISPUTE_REASONS = {"dispute": "fraudulent", "dispute_not_received": "product_not_received", "inquiry": "fraudulent"}
EMPTY_ADDRESS = null_members("city country line1 line2 postal_code state")


def make_payment_intent(
    state: ProcessorState, account: str, *, amount: int, currency: str, fee_amount: int | None, metadata: dict[str, str]
) -> PaymentIntent:
    """Adds a payment that is to be made. The caller emits its event."""
    intent = PaymentIntent(state.new_id("pi_"), state.now(), amount, currency, fee_amount=fee_amount, metadata=dict(metadata))
    state.book(account).intents[intent.id] = intent
    return intent


def attempt_payment(state: ProcessorState, account: str, intent: PaymentIntent, card: SimulatedCard) -> Charge:
    """Charge a card for it. A card that is declined leaves a failed charge, and raises ProcessorRefusal (402)."""
    verdict = card_verdict(card.number)
    charge = _make_attempt(state, intent, card, verdict)
    state.book(account).charges[charge.id] = charge
    intent.charge, intent.method = charge.id, charge.method
    if verdict.code is not None:
        decline_payment(state, account, intent, charge)
        raise _declined_refusal(charge)
    complete_payment(state, account, intent, charge, verdict)
    return charge


def _make_attempt(state: ProcessorState, intent: PaymentIntent, card: SimulatedCard, verdict: CardVerdict) -> Charge:
    return Charge(
        id=state.new_id("ch_"),
        created=state.now(),
        amount=intent.amount,
        currency=intent.currency,
        status="failed" if verdict.code else "succeeded",
        intent=intent.id,
        fee_amount=intent.fee_amount,
        customer=intent.customer,
        name=card.name,
        email=card.email,
        description=intent.description,
        method=state.new_id("pm_"),
        brand=card_brand(card.number),
        last4=card_digits(card.number)[-4:],
        failure_code=verdict.code,
        decline_code=verdict.decline,
        failure_message=verdict.message,
        risk_level=verdict.risk,
        risk_score=verdict.score,
        metadata=dict(intent.metadata),
    )


def decline_payment(state: ProcessorState, account: str, intent: PaymentIntent, charge: Charge) -> None:
    """Records that the bank declined the charge: the payment can be tried again."""
    intent.status, intent.method = "requires_payment_method", None
    intent.failure_code, intent.decline_code, intent.failure_message = charge.failure_code, charge.decline_code, charge.failure_message
    CHARGES.notify(state, account, charge, "charge.failed")
    PAYMENT_INTENTS.notify(state, account, intent, "payment_intent.payment_failed")


def _declined_refusal(charge: Charge) -> ProcessorRefusal:
    more: dict[str, object] = {"charge": charge.id, "decline_code": charge.decline_code}
    return ProcessorRefusal(charge.failure_message or "", status=402, type="card_error", code=charge.failure_code, more=more)


def complete_payment(state: ProcessorState, account: str, intent: PaymentIntent, charge: Charge, verdict: CardVerdict) -> None:
    """Completes a payment, then does what the test card stands for, such as a review or a dispute."""
    intent.status, intent.amount_received = "succeeded", charge.amount
    intent.failure_code = intent.decline_code = intent.failure_message = None
    rests = 0 if verdict.after == "available" else state.accounts[account].delay_days
    book_earnings(state, account, charge, rests)
    if verdict.after == "review":
        review = open_review(state, account, charge.id, quiet=True)
        charge.review = intent.review = review.id
    CHARGES.notify(state, account, charge, "charge.succeeded")
    PAYMENT_INTENTS.notify(state, account, intent, "payment_intent.succeeded")
    if charge.review:
        REVIEWS.notify(state, account, state.book(account).reviews[charge.review], "review.opened")
    if verdict.after in DISPUTE_REASONS:
        open_dispute(state, account, charge.id, DISPUTE_REASONS[verdict.after], inquiry=verdict.after == "inquiry")


def book_earnings(state: ProcessorState, account: str, charge: Charge, rests: int) -> None:
    """Books the charge into the account's balance, and the application fee into the platform's. The money rests for `rests` days."""
    # Choice: 2.9 % half up and 30 minor units of each charge, whatever the country and the currency.
    own = (charge.amount * 29 + 500) // 1000 + 30
    kept = charge.fee_amount or 0
    txn = book_transaction(
        state,
        account,
        amount=charge.amount,
        currency=charge.currency,
        type="charge",
        source=charge.id,
        fee=own + kept,
        application_fee=kept,
        rests=rests,
    )
    charge.txn = txn.id
    if kept:
        keep_application_fee(state, account, charge, rests)


def charge_json(state: ProcessorState, row: Charge) -> JsonObject:
    paid = row.status == "succeeded"
    return {
        **labelled_json(state, row, "charge", "id amount amount_refunded created currency customer description disputed failure_code"),
        **row_members(row, "failure_message review status"),
        "amount_captured": row.amount if paid else 0,
        "application": state.client_id if row.fee_amount is not None else None,
        "application_fee": row.fee,
        "application_fee_amount": row.fee_amount,
        "balance_transaction": row.txn,
        "billing_details": {"address": dict(EMPTY_ADDRESS), "email": row.email, "name": row.name, "phone": None, "tax_id": None},
        "calculated_statement_descriptor": "SIMULATED",
        "captured": paid,
        **null_members("failure_balance_transaction on_behalf_of receipt_email receipt_number shipping source source_transfer"),
        **null_members("statement_descriptor statement_descriptor_suffix transfer_data transfer_group"),
        "fraud_details": {},
        "outcome": _charge_outcome_json(row),
        "paid": paid,
        "payment_intent": row.intent,
        "payment_method": row.method,
        "payment_method_details": {"card": charge_card_json(row), "type": "card"},
        "radar_options": {},
        "receipt_url": f"{state.pages_url}/receipts/{row.id}" if paid else None,
        "refunded": 0 < row.amount == row.amount_refunded,
    }


def _charge_outcome_json(row: Charge) -> JsonObject:
    fine = row.status == "succeeded"
    blocked = row.decline_code == "fraudulent" and row.risk_level == "highest"
    kind = ("manual_review" if row.review else "authorized") if fine else "blocked" if blocked else "issuer_declined"
    message = "Payment complete." if fine else "The bank did not accept it."
    return {
        "advice_code": None if fine else "try_again_later",
        "network_advice_code": None,
        "network_decline_code": None if fine else "05",
        "network_status": "approved_by_network" if fine else "not_sent_to_network" if blocked else "declined_by_network",
        "reason": "elevated_risk_level" if row.review else row.decline_code,
        "risk_level": row.risk_level,
        "risk_score": row.risk_score,
        "seller_message": message,
        "type": kind,
    }


def charge_card_json(row: Charge) -> JsonObject:
    """The card that was used; its number is never kept."""
    return {
        "amount_authorized": row.amount,
        **null_members("authorization_code installments mandate network_transaction_id three_d_secure wallet"),
        **row_members(row, "brand country last4"),
        "checks": {"address_line1_check": None, "address_postal_code_check": None, "cvc_check": "pass"},
        "exp_month": 12,
        "exp_year": 2034,
        "extended_authorization": {"status": "disabled"},
        "fingerprint": f"simulated{row.brand}{row.last4}",
        "funding": "credit",
        "incremental_authorization": {"status": "unavailable"},
        "multicapture": {"status": "unavailable"},
        "network": row.brand,
        "network_token": {"used": False},
        "overcapture": {"maximum_amount_capturable": row.amount, "status": "unavailable"},
        "regulated_status": "unregulated",
    }


def _payment_intent_json(state: ProcessorState, row: PaymentIntent) -> JsonObject:
    return {
        **labelled_json(state, row, "payment_intent", "id amount amount_received canceled_at cancellation_reason created currency"),
        **row_members(row, "customer description review status"),
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "application": state.client_id if row.fee_amount is not None else None,
        "application_fee_amount": row.fee_amount,
        **null_members("automatic_payment_methods customer_account excluded_payment_method_types next_action on_behalf_of"),
        **null_members("payment_method_configuration_details processing setup_future_usage shipping source statement_descriptor"),
        **null_members("statement_descriptor_suffix transfer_data transfer_group"),
        "capture_method": "automatic_async",
        "client_secret": f"{row.id}_secret_{row.id[-16:]}",
        "confirmation_method": "automatic",
        "last_payment_error": last_error_json(row),
        "latest_charge": row.charge,
        "payment_method": row.method,
        "payment_method_options": {"card": null_members("installments mandate_options network") | {"request_three_d_secure": "automatic"}},
        "payment_method_types": ["card"],
        "receipt_email": row.email,
    }


def last_error_json(row: PaymentIntent) -> JsonObject | None:
    if row.failure_code is None:
        return None
    return {
        "charge": row.charge,
        "code": row.failure_code,
        "decline_code": row.decline_code,
        "message": row.failure_message,
        "type": "card_error",
    }


def update_charge(call: ApiCall, form: CallForm) -> JsonObject:
    row = CHARGES.find(call)
    metadata, description = form.metadata(row.metadata), form.text("description")
    form.done()
    row.metadata, row.description = metadata, description or row.description
    return CHARGES.answer(call, row)


def retrieve_payment_intent(call: ApiCall, form: CallForm) -> JsonObject:
    form.text("client_secret")
    return PAYMENT_INTENTS.retrieve(call, form)


def make_charge(
    state: ProcessorState,
    account: str,
    *,
    amount: int,
    currency: str,
    card: SimulatedCard,
    fee_amount: int | None = None,
    metadata: dict[str, str] | None = None,
    description: str | None = None,
) -> Charge:
    """Somebody pays an account outside of any page here. A declined card raises ProcessorRefusal (402) and leaves a failed charge."""
    intent = make_payment_intent(state, account, amount=amount, currency=currency, fee_amount=fee_amount, metadata=metadata or {})
    intent.description = description
    PAYMENT_INTENTS.notify(state, account, intent, "payment_intent.created")
    return attempt_payment(state, account, intent, card)
