"""Invoices and their lines, as they go over the wire."""

from clients.sandbox.payments.call import nulls, page
from clients.sandbox.payments.entities import Invoice, InvoiceItem
from clients.sandbox.payments.invoice_figures import due_of, items_of, remaining_of, total_of
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import State

SHOWN_LINES = 10


def invoice(state: State, account: str, row: Invoice) -> Members:
    """An invoice with its first lines."""
    total, due = total_of(state, account, row), due_of(state, account, row)
    return {
        "id": row.id,
        "object": "invoice",
        **figures(row, total, due, remaining_of(state, account, row)),
        **parties(state, account, row),
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
        **nulls("default_payment_method default_source"),
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
        **nulls("last_finalization_error latest_revision"),
        "lines": lines(state, account, row),
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "next_payment_attempt": None,
        "number": row.number,
        **nulls("on_behalf_of parent"),
        "payment_settings": nulls("default_mandate payment_method_options payment_method_types"),
        **nulls("receipt_number rendering shipping_cost shipping_details"),
        "statement_descriptor": row.statement_descriptor,
        **progress(row),
        "test_clock": None,
    }


def progress(row: Invoice) -> Members:
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


def figures(row: Invoice, total: int, due: int, remaining: int) -> Members:
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


def parties(state: State, account: str, row: Invoice) -> Members:
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


def lines(state: State, account: str, row: Invoice) -> Members:
    """The first of them."""
    items = items_of(state, account, row)
    shown = [line(state, item) for item in items[:SHOWN_LINES]]
    found = page(shown, f"/v1/invoices/{row.id}/lines", more=len(items) > SHOWN_LINES)
    return {**found, "total_count": len(items)}


def line(state: State, row: InvoiceItem) -> Members:
    """A line of an invoice."""
    return {
        "id": row.line,
        "object": "line_item",
        "amount": row.amount,
        "currency": row.currency,
        "description": row.description,
        "discount_amounts": [],
        "discountable": row.discountable,
        "discounts": [],
        "invoice": row.invoice,
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "parent": {
            "invoice_item_details": {"invoice_item": row.id, "proration": False, "proration_details": None, "subscription": None},
            "subscription_item_details": None,
            "type": "invoice_item_details",
        },
        "period": {"end": row.period_end, "start": row.period_start},
        "pretax_credit_amounts": [],
        "pricing": pricing(row),
        "quantity": row.quantity,
        "quantity_decimal": str(row.quantity),
        "subscription": None,
        "subtotal": row.amount,
        "taxes": [],
    }


def pricing(row: InvoiceItem) -> Members:
    """What one of it costs."""
    details = {"price": row.price, "product": row.product}
    return {"price_details": details, "type": "price_details", "unit_amount_decimal": row.unit_decimal}


def item(state: State, row: InvoiceItem) -> Members:
    """An invoice item."""
    return {
        "id": row.id,
        "object": "invoiceitem",
        "amount": row.amount,
        "currency": row.currency,
        "customer": row.customer,
        "customer_account": None,
        "date": row.created,
        "description": row.description,
        "discountable": row.discountable,
        "discounts": [],
        "invoice": row.invoice,
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "net_amount": row.amount,
        "parent": None,
        "period": {"end": row.period_end, "start": row.period_start},
        "pricing": pricing(row),
        "proration": False,
        "quantity": row.quantity,
        "quantity_decimal": str(row.quantity),
        "tax_rates": [],
        "test_clock": None,
    }


def payment(state: State, account: str, row: Invoice) -> Members:
    """The payment that an invoice asks for."""
    status = {"paid": "paid", "void": "canceled"}.get(row.status, "open")
    return {
        "id": row.payment,
        "object": "invoice_payment",
        "amount_paid": row.amount_paid if status == "paid" else None,
        "amount_requested": due_of(state, account, row),
        "created": row.finalized_at,
        "currency": row.currency,
        "invoice": row.id,
        "is_default": True,
        "livemode": state.live,
        "payment": {"payment_intent": row.intent, "type": "payment_intent"},
        "status": status,
        "status_transitions": {"canceled_at": row.voided_at, "paid_at": row.paid_at},
    }
