"""Invoices: finalised, sent, paid, voided; what they come to, and how they go over the wire. `invoice_calls` answers the API."""

from simulators.processor.balance import BALANCE_DAY_SECONDS
from simulators.processor.call import find_row, list_object, null_members
from simulators.processor.cards import TestCard, card_verdict
from simulators.processor.charges import (
    attempt_payment,
    make_payment_intent,
    notify_payment_intent,
)
from simulators.processor.entities import (
    Charge,
    Invoice,
    InvoiceItem,
)
from simulators.processor.events import emit_event
from simulators.processor.invoice_items import invoice_line_json
from simulators.processor.refusal import JsonObject, ProcessorRefusal
from simulators.processor.state import ProcessorState


def finalize_draft(state: ProcessorState, account: str, row: Invoice) -> None:
    """Its figures are frozen, it has a number and a pay page; with nothing to pay it is paid."""
    if row.status != "draft":
        raise ProcessorRefusal("This invoice is already finalized, you can't re-finalize a non-draft invoice.")
    total = invoice_total(state, account, row)
    if row.fee_amount is not None and row.fee_amount > max(total, 0):
        raise ProcessorRefusal("The application fee cannot be larger than the invoice's total.", param="application_fee_amount")
    row.status, row.finalized_at = "open", state.now()
    row.number = row.number or next_invoice_number(state, account, row)
    row.slug = state.new_id("inv_slug_")[len("inv_slug_") :]
    if row.due_date is None and row.days_until_due is not None:
        row.due_date = state.now() + row.days_until_due * BALANCE_DAY_SECONDS
    if total > 0:
        request_invoice_payment(state, account, row)
    notify_invoice(state, account, row, "invoice.updated", "invoice.finalized")
    if total <= 0:
        mark_invoice_paid(state, account, row)


def next_invoice_number(state: ProcessorState, account: str, row: Invoice) -> str:
    """The customer's prefix, and a count."""
    book = state.book(account)
    taken = {one.number for one in book.invoices.values()}
    prefix = book.customers[row.customer].prefix
    count = 1
    while f"{prefix}-{count:04d}" in taken:
        count += 1
    return f"{prefix}-{count:04d}"


def request_invoice_payment(state: ProcessorState, account: str, row: Invoice) -> None:
    """The payment that the pay page is for."""
    amount = invoice_due(state, account, row)
    intent = make_payment_intent(state, account, amount=amount, currency=row.currency, fee_amount=row.fee_amount, metadata={})
    intent.customer, intent.description = row.customer, f"Payment for Invoice {row.number}"
    row.intent, row.payment = intent.id, state.new_id("inpay_")
    notify_payment_intent(state, account, intent, "payment_intent.created")


def mail_invoice(state: ProcessorState, account: str, row: Invoice) -> None:
    """Mail it; a draft is finalised first."""
    if row.collection_method != "send_invoice":
        raise ProcessorRefusal("You can only manually send an invoice if its collection method is 'send_invoice'.")
    if row.status not in ("draft", "open"):
        raise ProcessorRefusal(f"You can't send an invoice that is {row.status}.")
    if row.customer_email is None:
        raise ProcessorRefusal("This invoice cannot be sent: its customer has no email address.")
    if row.status == "draft":
        finalize_draft(state, account, row)
    row.sent_at = state.now()
    notify_invoice(state, account, row, "invoice.sent")


def void_open_invoice(state: ProcessorState, account: str, row: Invoice) -> None:
    """Taken back; it keeps its number."""
    if row.status not in ("open", "uncollectible"):
        text = "You can only pass in open or uncollectible invoices." if row.status == "draft" else f"This invoice is {row.status}."
        raise ProcessorRefusal(f"{text} This invoice cannot be voided.")
    row.status, row.voided_at = "void", state.now()
    cancel_invoice_payment(state, account, row)
    notify_invoice(state, account, row, "invoice.updated", "invoice.voided")


def cancel_invoice_payment(state: ProcessorState, account: str, row: Invoice) -> None:
    """Nobody can pay it any more."""
    intent = state.book(account).intents.get(row.intent or "")
    if intent is not None and intent.status == "requires_payment_method":
        intent.status, intent.canceled_at, intent.cancellation_reason = "canceled", state.now(), "void_invoice"
        notify_payment_intent(state, account, intent, "payment_intent.canceled")


def find_invoice_by_slug(state: ProcessorState, slug: str) -> tuple[str, Invoice] | None:
    """The account and the invoice of a pay page's address."""
    for account, book in state.books.items():
        for invoice in book.invoices.values():
            if invoice.slug == slug:
                return account, invoice
    return None


def pay_invoice_by_card(state: ProcessorState, account: str, invoice: str, card: TestCard) -> Charge:
    """The recipient pays all of it with a card. A declined card raises ProcessorRefusal (402): the invoice stays open."""
    book = state.book(account)
    row = find_row(book.invoices, invoice, "invoice")
    if row.status == "paid":
        raise ProcessorRefusal("Invoice is already paid")
    if row.status != "open" or row.intent is None:
        raise ProcessorRefusal(f"This invoice cannot be paid: it is {row.status}.")
    card_verdict(card.number)
    row.attempts += 1
    try:
        charge = attempt_payment(state, account, book.intents[row.intent], card)
    except ProcessorRefusal:
        notify_invoice(state, account, row, "invoice.payment_failed", "invoice.updated")
        raise
    mark_invoice_paid(state, account, row)
    return charge


def mark_invoice_paid(state: ProcessorState, account: str, row: Invoice) -> None:
    """It is paid, by a charge, out of band, or because there is nothing to pay."""
    row.amount_paid += invoice_remaining(state, account, row)
    row.status, row.paid_at = "paid", state.now()
    notify_invoice(state, account, row, "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
    if row.payment is not None:
        emit_event(state, "invoice_payment.paid", invoice_payment_json(state, account, row), account)


def invoice_lines(state: ProcessorState, account: str, invoice: Invoice) -> list[InvoiceItem]:
    """Its lines, in order."""
    rows = state.book(account).items
    return [rows[id] for id in invoice.items]


def invoice_total(state: ProcessorState, account: str, invoice: Invoice) -> int:
    """The sum of its lines; below nothing is nothing (the rest would be the customer's credit)."""
    return sum(item.amount for item in invoice_lines(state, account, invoice))


def invoice_due(state: ProcessorState, account: str, invoice: Invoice) -> int:
    """What there is to pay, before any payment."""
    return max(0, invoice_total(state, account, invoice))


def invoice_remaining(state: ProcessorState, account: str, invoice: Invoice) -> int:
    """What is still to be paid."""
    return invoice_due(state, account, invoice) - invoice.amount_paid


SHOWN_INVOICE_LINES = 10


def invoice_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    """An invoice with its first lines."""
    total, due = invoice_total(state, account, row), invoice_due(state, account, row)
    return {
        "id": row.id,
        "object": "invoice",
        **invoice_amounts_json(row, total, due, invoice_remaining(state, account, row)),
        **invoice_parties_json(state, account, row),
        "account_tax_ids": None,
        "attempt_count": row.attempts,
        "attempted": row.attempts > 0,
        "auto_advance": row.auto_advance,
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None, "provider": None, "status": None},
        "automatically_finalizes_at": row.created + 3600 if row.auto_advance and row.status == "draft" else None,
        "billing_reason": "manual",
        "collection_method": row.collection_method,
        "created": row.created,
        "currency": row.currency,
        "custom_fields": [dict(one) for one in row.custom_fields] or None,
        **null_members("default_payment_method default_source"),
        "default_tax_rates": [],
        "description": row.description,
        "discounts": [],
        "due_date": row.due_date,
        "effective_at": row.effective_at or row.finalized_at,
        "ending_balance": None if row.status == "draft" else 0,
        "footer": row.footer,
        "from_invoice": None,
        "hosted_invoice_url": f"{state.pages_url}/invoices/{row.slug}" if row.slug else None,
        "invoice_pdf": f"{state.pages_url}/invoices/{row.slug}/pdf" if row.slug else None,
        "issuer": {"type": "self"},
        **null_members("last_finalization_error latest_revision"),
        "lines": invoice_lines_json(state, account, row),
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "next_payment_attempt": None,
        "number": row.number,
        **null_members("on_behalf_of parent"),
        "payment_settings": null_members("default_mandate payment_method_options payment_method_types"),
        **null_members("receipt_number rendering shipping_cost shipping_details"),
        "statement_descriptor": row.statement_descriptor,
        **invoice_progress_json(row),
        "test_clock": None,
    }


def invoice_progress_json(row: Invoice) -> JsonObject:
    """How far it has come, and when."""
    return {
        "period_end": row.created,
        "period_start": row.created,
        "status": row.status,
        "status_transitions": {
            "finalized_at": row.finalized_at,
            "marked_uncollectible_at": row.uncollectible_at,
            "paid_at": row.paid_at,
            "voided_at": row.voided_at,
        },
        "webhooks_delivered_at": row.created,
    }


def invoice_amounts_json(row: Invoice, total: int, due: int, remaining: int) -> JsonObject:
    """All amounts; nothing here is taxed, shipped or credited."""
    return {
        "amount_due": due,
        "amount_overpaid": 0,
        "amount_paid": row.amount_paid,
        "amount_paid_off_stripe": row.amount_paid if row.out_of_band else 0,
        "amount_remaining": remaining,
        "amount_shipping": 0,
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "starting_balance": 0,
        "subtotal": total,
        "subtotal_excluding_tax": total,
        "total": total,
        "total_discount_amounts": [],
        "total_excluding_tax": total,
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
    }


def invoice_parties_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    """Who asks whom."""
    owner = state.accounts[account]
    return {
        "account_country": owner.country,
        "account_name": owner.name,
        "application": state.client_id if account != state.platform else None,
        "customer": row.customer,
        "customer_account": None,
        "customer_address": row.customer_address,
        "customer_email": row.customer_email,
        "customer_name": row.customer_name,
        "customer_phone": row.customer_phone,
        "customer_shipping": None,
        "customer_tax_exempt": "none",
        "customer_tax_ids": [],
    }


def invoice_lines_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    """The first of them."""
    items = invoice_lines(state, account, row)
    shown = [invoice_line_json(state, item) for item in items[:SHOWN_INVOICE_LINES]]
    found = list_object(shown, f"/v1/invoices/{row.id}/lines", more=len(items) > SHOWN_INVOICE_LINES)
    return {**found, "total_count": len(items)}


def invoice_payment_json(state: ProcessorState, account: str, row: Invoice) -> JsonObject:
    """The payment that an invoice asks for."""
    status = {"paid": "paid", "void": "canceled"}.get(row.status, "open")
    return {
        "id": row.payment,
        "object": "invoice_payment",
        "amount_paid": row.amount_paid if status == "paid" else None,
        "amount_requested": invoice_due(state, account, row),
        "created": row.finalized_at,
        "currency": row.currency,
        "invoice": row.id,
        "is_default": True,
        "livemode": state.live,
        "payment": {"payment_intent": row.intent, "type": "payment_intent"},
        "status": status,
        "status_transitions": {"canceled_at": row.voided_at, "paid_at": row.paid_at},
    }


def notify_invoice(state: ProcessorState, account: str, row: Invoice, *types: str) -> None:
    """About an invoice."""
    for type in types:
        emit_event(state, type, invoice_json(state, account, row), account)
