"""An attempt at a payment: the bank's word, the money, the platform's fee, and what is told about each."""

from clients.sandbox.payments import render_charge
from clients.sandbox.payments.cards import Card, Verdict, brand_of, digits, verdict_of
from clients.sandbox.payments.entities import Charge, Fee, Intent
from clients.sandbox.payments.ledger import move
from clients.sandbox.payments.news import tell_charge, tell_intent
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.state import State, emit
from clients.sandbox.payments.trouble import open_dispute, open_review

REASONS = {"dispute": "fraudulent", "dispute_not_received": "product_not_received", "inquiry": "fraudulent"}


def new_intent(state: State, account: str, *, amount: int, currency: str, fee_amount: int | None, metadata: dict[str, str]) -> Intent:
    """A payment that is to be made, told about."""
    intent = Intent(state.new_id("pi_"), state.now(), amount, currency, fee_amount=fee_amount, metadata=dict(metadata))
    state.book(account).intents[intent.id] = intent
    return intent


def attempt(state: State, account: str, intent: Intent, card: Card) -> Charge:
    """Charge a card for it. A card that is declined leaves a failed charge, and is a Refusal (402)."""
    verdict = verdict_of(card.number)
    charge = new_charge(state, intent, card, verdict)
    state.book(account).charges[charge.id] = charge
    intent.charge, intent.method = charge.id, charge.method
    if verdict.code is not None:
        decline(state, account, intent, charge)
        raise declined(charge)
    succeed(state, account, intent, charge, verdict)
    return charge


def new_charge(state: State, intent: Intent, card: Card, verdict: Verdict) -> Charge:
    """The record of the attempt."""
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
        brand=brand_of(card.number),
        last4=digits(card.number)[-4:],
        failure_code=verdict.code,
        decline_code=verdict.decline,
        failure_message=verdict.message,
        risk_level=verdict.risk,
        risk_score=verdict.score,
        metadata=dict(intent.metadata),
    )


def decline(state: State, account: str, intent: Intent, charge: Charge) -> None:
    """The bank said no: the payment can be tried again."""
    intent.status, intent.method = "requires_payment_method", None
    intent.failure_code, intent.decline_code, intent.failure_message = charge.failure_code, charge.decline_code, charge.failure_message
    tell_charge(state, account, charge, "charge.failed")
    tell_intent(state, account, intent, "payment_intent.payment_failed")


def declined(charge: Charge) -> Refusal:
    """What the payer is told."""
    more: dict[str, object] = {"charge": charge.id, "decline_code": charge.decline_code}
    return Refusal(charge.failure_message or "", status=402, type="card_error", code=charge.failure_code, more=more)


def succeed(state: State, account: str, intent: Intent, charge: Charge, verdict: Verdict) -> None:
    """The money is on its way; then comes what the card stands for."""
    intent.status, intent.amount_received = "succeeded", charge.amount
    intent.failure_code = intent.decline_code = intent.failure_message = None
    rests = 0 if verdict.after == "available" else state.accounts[account].delay_days
    earn(state, account, charge, rests)
    if verdict.after == "review":
        review = open_review(state, account, charge.id, quiet=True)
        charge.review = intent.review = review.id
    tell_charge(state, account, charge, "charge.succeeded")
    tell_intent(state, account, intent, "payment_intent.succeeded")
    if charge.review:
        tell_review_opened(state, account, charge.review)
    if verdict.after in REASONS:
        open_dispute(state, account, charge.id, REASONS[verdict.after], inquiry=verdict.after == "inquiry")


def tell_review_opened(state: State, account: str, review: str) -> None:
    """Somebody should look at it."""
    from clients.sandbox.payments.render_money_out import review as render

    emit(state, "review.opened", render(state, state.book(account).reviews[review]), account)


def earn(state: State, account: str, charge: Charge, rests: int) -> None:
    """Into the account's balance, and the platform's part into the platform's."""
    own = processing_fee(charge.amount)
    kept = charge.fee_amount or 0
    txn = move(
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
        keep_fee(state, account, charge, rests)


def processing_fee(amount: int) -> int:
    """Choice: 2.9 % half up and 30 minor units of each charge, whatever the country and the currency."""
    return (amount * 29 + 500) // 1000 + 30


def keep_fee(state: State, account: str, charge: Charge, rests: int) -> None:
    """The platform's part of a connected account's charge."""
    fee = Fee(state.new_id("fee_"), state.now(), account, charge.id, charge.fee_amount or 0, charge.currency)
    platform = state.platform
    txn = move(state, platform, amount=fee.amount, currency=fee.currency, type="application_fee", source=fee.id, rests=rests)
    fee.txn, charge.fee = txn.id, fee.id
    state.book(platform).fees[fee.id] = fee
    emit(state, "application_fee.created", render_charge.fee(state, fee), platform)
