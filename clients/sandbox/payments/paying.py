"""People who pay: charges made directly, invoices, and checkouts."""

from clients.sandbox.payments.call import found
from clients.sandbox.payments.cards import Card, verdict_of
from clients.sandbox.payments.charging import attempt, new_intent
from clients.sandbox.payments.entities import Charge, Intent, Invoice, Promotion, Session
from clients.sandbox.payments.invoice_figures import remaining_of
from clients.sandbox.payments.news import tell_intent, tell_invoice, tell_session
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.render_invoice import payment
from clients.sandbox.payments.render_shop import subtotal_of, total_of, usable
from clients.sandbox.payments.state import State, emit

__all__ = ["Card", "complete_checkout", "enter_promotion", "find_invoice", "find_session", "make_charge", "pay_invoice"]


def make_charge(
    state: State,
    account: str,
    *,
    amount: int,
    currency: str,
    card: Card,
    fee_amount: int | None = None,
    metadata: dict[str, str] | None = None,
    description: str | None = None,
) -> Charge:
    """Somebody pays an account outside of any page here. A declined card is a Refusal (402), and leaves a failed charge."""
    intent = new_intent(state, account, amount=amount, currency=currency, fee_amount=fee_amount, metadata=metadata or {})
    intent.description = description
    tell_intent(state, account, intent, "payment_intent.created")
    return attempt(state, account, intent, card)


def find_invoice(state: State, slug: str) -> tuple[str, Invoice] | None:
    """The account and the invoice of a pay page's address."""
    for account, book in state.books.items():
        for invoice in book.invoices.values():
            if invoice.slug == slug:
                return account, invoice
    return None


def pay_invoice(state: State, account: str, invoice: str, card: Card) -> Charge:
    """The recipient pays all of it with a card. A declined card is a Refusal (402): the invoice stays open."""
    book = state.book(account)
    row = found(book.invoices, invoice, "invoice")
    if row.status == "paid":
        raise Refusal("Invoice is already paid")
    if row.status != "open" or row.intent is None:
        raise Refusal(f"This invoice cannot be paid: it is {row.status}.")
    verdict_of(card.number)
    row.attempts += 1
    try:
        charge = attempt(state, account, book.intents[row.intent], card)
    except Refusal:
        tell_invoice(state, account, row, "invoice.payment_failed", "invoice.updated")
        raise
    settle_invoice(state, account, row)
    return charge


def settle_invoice(state: State, account: str, row: Invoice) -> None:
    """It is paid, by a charge, out of band, or because there is nothing to pay."""
    row.amount_paid += remaining_of(state, account, row)
    row.status, row.paid_at = "paid", state.now()
    tell_invoice(state, account, row, "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
    if row.payment is not None:
        emit(state, "invoice_payment.paid", payment(state, account, row), account)


def find_session(state: State, session: str) -> tuple[str, Session] | None:
    """The account and the session of a checkout page's address."""
    for account, book in state.books.items():
        if session in book.sessions:
            return account, book.sessions[session]
    return None


def enter_promotion(state: State, account: str, session: str, code: str) -> Promotion:
    """The buyer types in a code: the session's total goes down. A code that is not good is a Refusal."""
    book = state.book(account)
    row = found(book.sessions, session, "checkout.session")
    promotion = next((one for one in book.promotions.values() if one.code.lower() == code.lower() and usable(state, one)), None)
    if not row.promotions or promotion is None or not fits(row, promotion):
        raise Refusal("This code is invalid.", param="promotion_code")
    apply_coupon(state, account, row, promotion.coupon)
    row.promotion = promotion.id
    return promotion


def fits(row: Session, promotion: Promotion) -> bool:
    """The purchase is large enough for it."""
    least = promotion.minimum_amount
    return least is None or (promotion.minimum_currency == row.currency and subtotal_of(row) >= least)


def apply_coupon(state: State, account: str, row: Session, coupon: str) -> None:
    """Take a coupon's money off."""
    found_coupon = state.book(account).coupons[coupon]
    total = subtotal_of(row)
    if found_coupon.amount_off is not None:
        if found_coupon.currency != row.currency:
            raise Refusal("This code is invalid.", param="promotion_code")
        row.discount = min(total, found_coupon.amount_off)
    else:
        hundredths = round((found_coupon.percent_off or 0) * 100)
        row.discount = (total * hundredths + 5000) // 10_000
    row.coupon = coupon


def complete_checkout(state: State, account: str, session: str, card: Card | None) -> Session:
    """The buyer pays; no card is needed where nothing is to be paid. A declined card is a Refusal (402): the session stays open."""
    book = state.book(account)
    row = found(book.sessions, session, "checkout.session")
    if row.status != "open":
        raise Refusal(f"This Checkout Session is {row.status}.")
    if total_of(row) > 0:
        if card is None:
            raise Refusal("Your card number is incomplete.", status=402, type="card_error", code="incorrect_number", param="number")
        attempt(state, account, intent_of(state, account, row), card)
        row.payment_status = "paid"
    else:
        row.payment_status = "no_payment_required"
    redeem(state, account, row)
    row.status = "complete"
    row.buyer_email, row.buyer_name = row.email or (card and card.email), card and card.name
    tell_session(state, account, row, "checkout.session.completed")
    return row


def intent_of(state: State, account: str, row: Session) -> Intent:
    """A session's payment: made when the buyer first tries to pay."""
    book = state.book(account)
    intent = book.intents.get(row.intent or "")
    if intent is None:
        intent = new_intent(
            state, account, amount=total_of(row), currency=row.currency, fee_amount=row.fee_amount, metadata=row.intent_metadata
        )
        intent.customer, intent.description = row.customer, row.intent_description
        row.intent = intent.id
        tell_intent(state, account, intent, "payment_intent.created")
    intent.amount = total_of(row)
    intent.fee_amount = None if row.fee_amount is None else min(row.fee_amount, intent.amount)
    return intent


def redeem(state: State, account: str, row: Session) -> None:
    """Count the use of a coupon and of its code."""
    book = state.book(account)
    if row.coupon is not None:
        book.coupons[row.coupon].times_redeemed += 1
    if row.promotion is not None:
        book.promotions[row.promotion].times_redeemed += 1
