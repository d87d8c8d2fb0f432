"""What happens to an invoice: drafted, finalised, sent, voided."""

from clients.sandbox.payments.charging import new_intent
from clients.sandbox.payments.entities import Invoice, InvoiceItem
from clients.sandbox.payments.invoice_figures import due_of, total_of
from clients.sandbox.payments.ledger import DAY
from clients.sandbox.payments.news import tell_intent, tell_invoice
from clients.sandbox.payments.paying import settle_invoice
from clients.sandbox.payments.refusal import Refusal
from clients.sandbox.payments.state import State

MOST_LINES = 250


def put_on(state: State, invoice: Invoice, item: InvoiceItem) -> None:
    """A line more."""
    if len(invoice.items) >= MOST_LINES:
        text = f"Invoice {invoice.id} has reached the maximum of {MOST_LINES} line items."
        raise Refusal(text, param="invoice")
    if item.currency != invoice.currency:
        text = f"The currency of the invoice item ({item.currency}) does not match the currency of the invoice ({invoice.currency})."
        raise Refusal(text, param="currency")
    invoice.items.append(item.id)
    item.invoice, item.line = invoice.id, item.line or state.new_id("il_")


def finalize(state: State, account: str, row: Invoice) -> None:
    """Its figures are frozen, it has a number and a pay page; with nothing to pay it is paid."""
    if row.status != "draft":
        raise Refusal("This invoice is already finalized, you can't re-finalize a non-draft invoice.")
    total = total_of(state, account, row)
    if row.fee_amount is not None and row.fee_amount > max(total, 0):
        raise Refusal("The application fee cannot be larger than the invoice's total.", param="application_fee_amount")
    row.status, row.finalized_at = "open", state.now()
    row.number = row.number or next_number(state, account, row)
    row.slug = state.new_id("inv_slug_")[len("inv_slug_") :]
    if row.due_date is None and row.days_until_due is not None:
        row.due_date = state.now() + row.days_until_due * DAY
    if total > 0:
        ask_for_payment(state, account, row)
    tell_invoice(state, account, row, "invoice.updated", "invoice.finalized")
    if total <= 0:
        settle_invoice(state, account, row)


def next_number(state: State, account: str, row: Invoice) -> str:
    """The customer's prefix, and a count."""
    book = state.book(account)
    taken = {one.number for one in book.invoices.values()}
    prefix = book.customers[row.customer].prefix
    count = 1
    while f"{prefix}-{count:04d}" in taken:
        count += 1
    return f"{prefix}-{count:04d}"


def ask_for_payment(state: State, account: str, row: Invoice) -> None:
    """The payment that the pay page is for."""
    amount = due_of(state, account, row)
    intent = new_intent(state, account, amount=amount, currency=row.currency, fee_amount=row.fee_amount, metadata={})
    intent.customer, intent.description = row.customer, f"Payment for Invoice {row.number}"
    row.intent, row.payment = intent.id, state.new_id("inpay_")
    tell_intent(state, account, intent, "payment_intent.created")


def send(state: State, account: str, row: Invoice) -> None:
    """Mail it; a draft is finalised first."""
    if row.collection_method != "send_invoice":
        raise Refusal("You can only manually send an invoice if its collection method is 'send_invoice'.")
    if row.status not in ("draft", "open"):
        raise Refusal(f"You can't send an invoice that is {row.status}.")
    if row.customer_email is None:
        raise Refusal("This invoice cannot be sent: its customer has no email address.")
    if row.status == "draft":
        finalize(state, account, row)
    row.sent_at = state.now()
    tell_invoice(state, account, row, "invoice.sent")


def void(state: State, account: str, row: Invoice) -> None:
    """Taken back; it keeps its number."""
    if row.status not in ("open", "uncollectible"):
        text = "You can only pass in open or uncollectible invoices." if row.status == "draft" else f"This invoice is {row.status}."
        raise Refusal(f"{text} This invoice cannot be voided.")
    row.status, row.voided_at = "void", state.now()
    cancel_payment(state, account, row)
    tell_invoice(state, account, row, "invoice.updated", "invoice.voided")


def cancel_payment(state: State, account: str, row: Invoice) -> None:
    """Nobody can pay it any more."""
    intent = state.book(account).intents.get(row.intent or "")
    if intent is not None and intent.status == "requires_payment_method":
        intent.status, intent.canceled_at, intent.cancellation_reason = "canceled", state.now(), "void_invoice"
        tell_intent(state, account, intent, "payment_intent.canceled")
