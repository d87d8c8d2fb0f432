"""Charges, what they are attempts at, and what comes back of them, as they go over the wire."""

from clients.sandbox.payments.call import nulls
from clients.sandbox.payments.entities import Charge, Fee, FeeRefund, Intent, Refund, Txn
from clients.sandbox.payments.refusal import Members
from clients.sandbox.payments.state import State

NO_ADDRESS = nulls("city country line1 line2 postal_code state")


def charge(state: State, row: Charge) -> Members:
    """One attempt at a payment."""
    paid = row.status == "succeeded"
    return {
        "id": row.id,
        "object": "charge",
        "amount": row.amount,
        "amount_captured": row.amount if paid else 0,
        "amount_refunded": row.amount_refunded,
        "application": state.client_id if row.fee_amount is not None else None,
        "application_fee": row.fee,
        "application_fee_amount": row.fee_amount,
        "balance_transaction": row.txn,
        "billing_details": {"address": dict(NO_ADDRESS), "email": row.email, "name": row.name, "phone": None, "tax_id": None},
        "calculated_statement_descriptor": "SIMULATED",
        "captured": paid,
        "created": row.created,
        "currency": row.currency,
        "customer": row.customer,
        "description": row.description,
        "disputed": row.disputed,
        "failure_balance_transaction": None,
        "failure_code": row.failure_code,
        "failure_message": row.failure_message,
        "fraud_details": {},
        "livemode": state.live,
        "metadata": dict(row.metadata),
        "on_behalf_of": None,
        "outcome": outcome(row),
        "paid": paid,
        "payment_intent": row.intent,
        "payment_method": row.method,
        "payment_method_details": {"card": card(row), "type": "card"},
        "radar_options": {},
        **nulls("receipt_email receipt_number"),
        "receipt_url": f"{state.pages_url}/receipts/{row.id}" if paid else None,
        "refunded": 0 < row.amount == row.amount_refunded,
        "review": row.review,
        **nulls("shipping source source_transfer statement_descriptor statement_descriptor_suffix"),
        "status": row.status,
        **nulls("transfer_data transfer_group"),
    }


def outcome(row: Charge) -> Members:
    """What the payer's bank and the fraud rules made of it."""
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


def card(row: Charge) -> Members:
    """The card that was used; its number is never kept."""
    return {
        "amount_authorized": row.amount,
        "authorization_code": None,
        "brand": row.brand,
        "checks": {"address_line1_check": None, "address_postal_code_check": None, "cvc_check": "pass"},
        "country": row.country,
        "exp_month": 12,
        "exp_year": 2034,
        "extended_authorization": {"status": "disabled"},
        "fingerprint": f"simulated{row.brand}{row.last4}",
        "funding": "credit",
        "incremental_authorization": {"status": "unavailable"},
        "installments": None,
        "last4": row.last4,
        "mandate": None,
        "multicapture": {"status": "unavailable"},
        "network": row.brand,
        "network_token": {"used": False},
        "network_transaction_id": None,
        "overcapture": {"maximum_amount_capturable": row.amount, "status": "unavailable"},
        "regulated_status": "unregulated",
        "three_d_secure": None,
        "wallet": None,
    }


def intent(state: State, row: Intent) -> Members:
    """A payment that is to be made."""
    return {
        "id": row.id,
        "object": "payment_intent",
        "amount": row.amount,
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": row.amount_received,
        "application": state.client_id if row.fee_amount is not None else None,
        "application_fee_amount": row.fee_amount,
        "automatic_payment_methods": None,
        "canceled_at": row.canceled_at,
        "cancellation_reason": row.cancellation_reason,
        "capture_method": "automatic_async",
        "client_secret": f"{row.id}_secret_{row.id[-16:]}",
        "confirmation_method": "automatic",
        "created": row.created,
        "currency": row.currency,
        "customer": row.customer,
        "customer_account": None,
        "description": row.description,
        "excluded_payment_method_types": None,
        "last_payment_error": last_error(row),
        "latest_charge": row.charge,
        "livemode": state.live,
        "metadata": dict(row.metadata),
        **nulls("next_action on_behalf_of"),
        "payment_method": row.method,
        "payment_method_configuration_details": None,
        "payment_method_options": {"card": nulls("installments mandate_options network") | {"request_three_d_secure": "automatic"}},
        "payment_method_types": ["card"],
        "processing": None,
        "receipt_email": row.email,
        "review": row.review,
        **nulls("setup_future_usage shipping source statement_descriptor statement_descriptor_suffix"),
        "status": row.status,
        **nulls("transfer_data transfer_group"),
    }


def last_error(row: Intent) -> Members | None:
    """Why the newest attempt failed."""
    if row.failure_code is None:
        return None
    return {
        "charge": row.charge,
        "code": row.failure_code,
        "decline_code": row.decline_code,
        "message": row.failure_message,
        "type": "card_error",
    }


def refund(state: State, row: Refund) -> Members:
    """Money given back."""
    found: Members = {
        "id": row.id,
        "object": "refund",
        "amount": row.amount,
        "balance_transaction": row.txn,
        "charge": row.charge,
        "created": row.created,
        "currency": row.currency,
        "destination_details": {
            "card": {
                "reference_status": "pending",
                "reference_type": "acquirer_reference_number",
                "type": "refund",
            },
            "type": "card",
        },
        "metadata": dict(row.metadata),
        "payment_intent": row.intent,
        "reason": row.reason,
        **nulls("receipt_number source_transfer_reversal"),
        "status": row.status,
        "transfer_reversal": None,
    }
    if row.failure_reason is not None:
        found |= {"failure_reason": row.failure_reason, "failure_balance_transaction": row.failure_txn}
    return found


def fee(state: State, row: Fee) -> Members:
    """What the platform kept."""
    given = [one for one in state.book(state.platform).fee_refunds.values() if one.fee == row.id]
    refunds: Members = {
        "object": "list",
        "data": [fee_refund(one) for one in reversed(given)][:10],
        "has_more": len(given) > 10,
        "url": f"/v1/application_fees/{row.id}/refunds",
    }
    return {
        "id": row.id,
        "object": "application_fee",
        "account": row.account,
        "amount": row.amount,
        "amount_refunded": row.amount_refunded,
        "application": state.client_id,
        "balance_transaction": row.txn,
        "charge": row.charge,
        "created": row.created,
        "currency": row.currency,
        "fee_source": {"charge": row.charge, "type": "charge"},
        "livemode": state.live,
        "originating_transaction": None,
        "refunded": row.amount_refunded == row.amount,
        "refunds": refunds,
    }


def fee_refund(row: FeeRefund) -> Members:
    """A part of it that went back."""
    return {
        "id": row.id,
        "object": "fee_refund",
        "amount": row.amount,
        "balance_transaction": row.txn,
        "created": row.created,
        "currency": row.currency,
        "fee": row.fee,
        "metadata": {},
    }


def txn(state: State, row: Txn) -> Members:
    """A movement of the balance."""
    own = row.fee - row.application_fee
    details: list[Members] = []
    if row.application_fee:
        details.append(fee_detail(row, row.application_fee, "application_fee", state.client_id))
    if own:
        details.append(fee_detail(row, own, "stripe_fee", None))
    return {
        "id": row.id,
        "object": "balance_transaction",
        "amount": row.amount,
        "available_on": row.available_on,
        "balance_type": "payments",
        "created": row.created,
        "currency": row.currency,
        "description": None,
        "exchange_rate": None,
        "fee": row.fee,
        "fee_details": details,
        "net": row.amount - row.fee,
        "reporting_category": "dispute" if row.type == "adjustment" else row.type,
        "source": row.source,
        "status": "pending" if row.available_on > state.now() else "available",
        "type": row.type,
    }


def fee_detail(row: Txn, amount: int, type: str, application: str | None) -> Members:
    """Whose a part of the fee is."""
    words = "Application fee" if application else "Processing fees"
    return {"amount": amount, "application": application, "currency": row.currency, "description": words, "type": type}
