"""Payouts, disputes and reviews, as they go over the wire."""

from clients.sandbox.payments.call import nulls, page
from clients.sandbox.payments.entities import Dispute, Payout, Review, Value, ValueList
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.render_charge import txn
from clients.sandbox.payments.state import Book, State

TEXTS = [
    "access_activity_log",
    "billing_address",
    "cancellation_policy_disclosure",
    "cancellation_rebuttal",
    "customer_email_address",
    "customer_name",
    "customer_purchase_ip",
    "duplicate_charge_explanation",
    "duplicate_charge_id",
    "product_description",
    "refund_policy_disclosure",
    "refund_refusal_explanation",
    "service_date",
    "shipping_address",
    "shipping_carrier",
    "shipping_date",
    "shipping_tracking_number",
    "uncategorized_text",
]
FILES = [
    "cancellation_policy",
    "customer_communication",
    "customer_signature",
    "duplicate_charge_documentation",
    "receipt",
    "refund_policy",
    "service_documentation",
    "shipping_documentation",
    "uncategorized_file",
]
IN_LIST = 10


def payout(state: State, row: Payout) -> Members:
    """Money sent to the account's bank."""
    return {
        "id": row.id,
        "object": "payout",
        "amount": row.amount,
        "application_fee": None,
        "application_fee_amount": None,
        "arrival_date": row.arrival,
        "automatic": row.automatic,
        "balance_transaction": row.txn,
        "created": row.created,
        "currency": row.currency,
        "description": row.description,
        "destination": row.destination,
        "failure_balance_transaction": row.failure_txn,
        "failure_code": row.failure_code,
        "failure_message": row.failure_message,
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "method": row.method,
        "original_payout": None,
        "payout_method": None,
        "reconciliation_status": "completed" if row.automatic else "not_applicable",
        "reversed_by": None,
        "source_type": "card",
        "statement_descriptor": row.statement_descriptor,
        "status": row.status,
        "trace_id": {"status": "supported", "value": row.id[-15:]} if row.status == "paid" else {"status": "pending", "value": None},
        "type": "bank_account",
    }


def dispute(state: State, row: Dispute, book: Book) -> Members:
    """A payer's bank asks for the money back."""
    return {
        "id": row.id,
        "object": "dispute",
        "amount": row.amount,
        "balance_transactions": [txn(state, book.txns[id]) for id in row.txns],
        "charge": row.charge,
        "created": row.created,
        "currency": row.currency,
        "enhanced_eligibility_types": [],
        "evidence": {**{name: row.evidence.get(name) for name in (*TEXTS, *FILES)}, "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": row.due_by,
            "enhanced_eligibility": {},
            "has_evidence": bool(row.evidence),
            "past_due": state.now() > row.due_by and row.submissions == 0,
            "submission_count": row.submissions,
            "submission_method": "manual" if row.submissions else "not_submitted",
        },
        "is_charge_refundable": row.status.startswith("warning_"),
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "payment_intent": row.intent,
        "payment_method_details": {
            "card": {
                "brand": row.brand,
                "case_type": "inquiry" if row.status.startswith("warning_") else "chargeback",
                "network": row.brand,
                "network_reason_code": "10.4" if row.reason == "fraudulent" else "13.1",
            },
            "type": "card",
        },
        "reason": row.reason,
        "status": row.status,
    }


def review(state: State, row: Review) -> Members:
    """A charge that a person should look at."""
    place = {**nulls("city latitude longitude region"), "country": row.country}
    return {
        "id": row.id,
        "object": "review",
        "billing_zip": row.zip,
        "charge": row.charge,
        "closed_reason": row.closed_reason,
        "created": row.created,
        "ip_address": row.ip_address,
        "ip_address_location": place if row.country else None,
        "livemode": state.live,
        "open": row.open,
        "opened_reason": row.opened_reason,
        "payment_intent": row.intent,
        "reason": row.reason,
        "session": None,
    }


def value_list(state: State, row: ValueList, book: Book) -> Members:
    """Values that the fraud rules name, with the newest of them."""
    values = [value(state, one) for one in book.values.values() if one.list == row.id]
    newest = values[::-1][:IN_LIST]
    return {
        "id": row.id,
        "object": "radar.value_list",
        "alias": row.alias,
        "created": row.created,
        "created_by": "platform@example.com",
        "item_type": row.item_type,
        "list_items": page(newest, f"/v1/radar/value_list_items?value_list={row.id}", more=len(values) > IN_LIST),
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "name": row.name,
    }


def value(state: State, row: Value) -> Members:
    """One of them."""
    return {
        "id": row.id,
        "object": "radar.value_list_item",
        "created": row.created,
        "created_by": "platform@example.com",
        "livemode": state.live,
        "value": row.value,
        "value_list": row.list,
    }
