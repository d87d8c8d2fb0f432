"""What the payment processor's events are about, as its wire has it: the members that the service reads."""

from clients.payments.records import Charge, CheckoutSession, Refund

Members = dict[str, object]


def session_json(session: CheckoutSession) -> Members:
    """A page on which a buyer pays."""
    return {
        "id": session.id,
        "object": "checkout.session",
        "status": session.status,
        "payment_status": session.payment_status,
        "amount_total": session.amount_total,
        "currency": session.currency.lower(),
        "payment_intent": session.payment_intent,
        "expires_at": session.expires_at,
        "url": session.url,
        "customer_details": {"email": session.email},
        "metadata": dict(session.metadata),
    }


def charge_row(charge: Charge) -> Members:
    return {
        "id": charge.id,
        "object": "charge",
        "amount": charge.amount,
        "amount_refunded": charge.amount_refunded,
        "currency": charge.currency.lower(),
        "status": charge.status,
        "refunded": charge.refunded,
        "disputed": charge.disputed,
        "created": charge.created,
        "payment_intent": charge.payment_intent,
        "metadata": dict(charge.metadata),
    }


def refund_row(refund: Refund) -> Members:
    return {
        "id": refund.id,
        "object": "refund",
        "amount": refund.amount,
        "currency": refund.currency.lower(),
        "status": refund.status,
        "charge": refund.charge,
        "payment_intent": refund.payment_intent,
        "reason": refund.reason,
        "failure_reason": refund.failure_reason,
        "created": refund.created,
        "metadata": dict(refund.metadata),
    }
