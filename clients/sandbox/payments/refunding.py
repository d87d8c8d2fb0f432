"""Money given back to payers, and the platform's part of it."""

from clients.sandbox.payments import render_charge
from clients.sandbox.payments.cards import REFUND_FAILS_LAST4
from clients.sandbox.payments.entities import Charge, FeeRefund, Refund
from clients.sandbox.payments.ledger import move
from clients.sandbox.payments.news import tell_charge, tell_refund
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import State, emit
from clients.sandbox.payments.trouble import close_review, review_of


def give_back(
    state: State, account: str, charge: Charge, *, amount: int, reason: str | None, metadata: dict[str, str], with_fee: bool
) -> Refund:
    """Out of the balance, which may go below zero by it."""
    previous: Members = {"amount_refunded": charge.amount_refunded, "refunded": charge.amount_refunded == charge.amount}
    refund = Refund(
        id=state.new_id("re_"),
        created=state.now(),
        amount=amount,
        currency=charge.currency,
        charge=charge.id,
        intent=charge.intent,
        reason=reason,
        metadata=metadata,
    )
    book = state.book(account)
    book.refunds[refund.id] = refund
    txn = move(state, account, amount=-amount, currency=charge.currency, type="refund", source=refund.id)
    refund.txn = txn.id
    charge.amount_refunded += amount
    tell_charge(state, account, charge, "charge.refunded", previous)
    tell_refund(state, account, refund, "refund.created")
    if with_fee:
        give_fee_back(state, account, charge)
    review = review_of(state, account, charge)
    if review is not None:
        close_review(state, account, review, "refunded_as_fraud" if reason == "fraudulent" else "refunded")
    if charge.last4 == REFUND_FAILS_LAST4:
        fail_refund(state, account, refund)
    return refund


def give_fee_back(state: State, account: str, charge: Charge) -> None:
    """In proportion to all that was refunded so far; nothing is lost or won by rounding."""
    platform = state.book(state.platform)
    fee = platform.fees.get(charge.fee or "")
    if fee is None:
        return
    amount = fee.amount * charge.amount_refunded // charge.amount - fee.amount_refunded
    if amount <= 0:
        return
    given = FeeRefund(state.new_id("fr_"), state.now(), fee.id, amount, fee.currency)
    txn = move(state, state.platform, amount=-amount, currency=fee.currency, type="application_fee_refund", source=given.id)
    given.txn = txn.id
    platform.fee_refunds[given.id] = given
    fee.amount_refunded += amount
    move(state, account, amount=amount, currency=fee.currency, type="application_fee_refund", source=given.id)
    emit(state, "application_fee.refunded", render_charge.fee(state, fee), state.platform)


def fail_refund(state: State, account: str, refund: Refund, reason: str = "lost_or_stolen_card") -> None:
    """The payer's bank does not take it: the money is in the balance again."""
    charge = state.book(account).charges[refund.charge]
    txn = move(state, account, amount=refund.amount, currency=refund.currency, type="refund_failure", source=refund.id)
    refund.status, refund.failure_reason, refund.failure_txn = "failed", reason, txn.id
    charge.amount_refunded -= refund.amount
    tell_refund(state, account, refund, "refund.updated", "charge.refund.updated", "refund.failed")
