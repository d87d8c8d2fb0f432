"""What payers' banks and fraud rules bring about: disputes and reviews."""

from typing import Literal

from clients.sandbox.payments.call import found
from clients.sandbox.payments.entities import Charge, Dispute, Review
from clients.sandbox.payments.ledger import DAY, move
from clients.sandbox.payments.news import tell_dispute
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.render_money_out import review as render_review
from clients.sandbox.payments.state import State, emit

DUE_DAYS = 9
DISPUTE_FEE = 1500
"""In minor units; Choice: kept also where the dispute is won."""
OVER = ("won", "lost", "warning_closed")


def open_dispute(
    state: State, account: str, charge: str, reason: str = "fraudulent", *, inquiry: bool = False, amount: int | None = None
) -> Dispute:
    """A payer's bank asks for the money back, and takes it at once; with `inquiry` it only asks."""
    book = state.book(account)
    row = found(book.charges, charge, "charge")
    if row.disputed or row.status != "succeeded":
        raise Refusal(f"Charge {charge} cannot be disputed: it is {'disputed already' if row.disputed else row.status}.")
    dispute = Dispute(
        id=state.new_id("du_"),
        created=state.now(),
        amount=row.amount if amount is None else amount,
        currency=row.currency,
        charge=row.id,
        reason=reason,
        status="warning_needs_response" if inquiry else "needs_response",
        due_by=state.now() + DUE_DAYS * DAY,
        intent=row.intent,
        brand=row.brand,
    )
    book.disputes[dispute.id] = dispute
    row.disputed = True
    tell_dispute(state, account, dispute, "charge.dispute.created")
    if not inquiry:
        take(state, account, dispute, -1)
        tell_dispute(state, account, dispute, "charge.dispute.funds_withdrawn")
    return dispute


def take(state: State, account: str, dispute: Dispute, sign: int) -> None:
    """The disputed money out of the balance, or back into it."""
    fee = DISPUTE_FEE if sign < 0 else 0
    amount = sign * dispute.amount
    txn = move(state, account, amount=amount, currency=dispute.currency, type="adjustment", source=dispute.id, fee=fee)
    dispute.txns.append(txn.id)


def close_dispute(state: State, account: str, dispute: str, outcome: Literal["won", "lost"]) -> Dispute:
    """The bank has decided."""
    row = found(state.book(account).disputes, dispute, "dispute")
    if row.status in OVER:
        raise Refusal("This dispute is already closed")
    inquiry = row.status.startswith("warning_")
    row.status = "warning_closed" if inquiry else outcome
    tell_dispute(state, account, row, "charge.dispute.closed")
    if outcome == "won" and not inquiry:
        take(state, account, row, 1)
        tell_dispute(state, account, row, "charge.dispute.funds_reinstated")
    return row


def open_review(state: State, account: str, charge: str, *, quiet: bool = False) -> Review:
    """The fraud rules want a person to look at a charge. `quiet`: the caller tells of it."""
    book = state.book(account)
    row = found(book.charges, charge, "charge")
    review = Review(
        id=state.new_id("prv_"),
        created=state.now(),
        charge=row.id,
        intent=row.intent,
        ip_address="203.0.113.7",
        country=row.country,
    )
    book.reviews[review.id] = review
    row.review = review.id
    if row.intent in book.intents:
        book.intents[row.intent].review = review.id
    if not quiet:
        emit(state, "review.opened", render_review(state, review), account)
    return review


def close_review(state: State, account: str, review: Review, reason: str) -> None:
    """Nobody needs to look any more: approved, refunded or disputed."""
    review.open, review.reason, review.closed_reason = False, reason, reason
    release(state, account, review)
    emit(state, "review.closed", render_review(state, review), account)


def release(state: State, account: str, review: Review) -> None:
    """Its charge is under no review any more."""
    book = state.book(account)
    book.charges[review.charge].review = None
    if review.intent in book.intents:
        book.intents[review.intent].review = None


def review_of(state: State, account: str, charge: Charge) -> Review | None:
    """The open review of a charge."""
    review = state.book(account).reviews.get(charge.review or "")
    return review if review is not None and review.open else None
