"""Calls about money given back."""

from clients.sandbox.payments import render_charge
from clients.sandbox.payments.call import Call, found, listed
from clients.sandbox.payments.entities import Charge
from clients.sandbox.payments.form import Form, invalid
from clients.sandbox.payments.news import tell_refund
from clients.sandbox.payments.refunding import give_back
from clients.sandbox.payments.refusal import Members, Refusal, missing

REASONS = ("duplicate", "fraudulent", "requested_by_customer")


def create_refund(call: Call, form: Form) -> Members:
    """Of a charge, or of the charge of a payment; without an amount, all the rest."""
    charge, intent = form.text("charge"), form.text("payment_intent")
    amount, reason = form.integer("amount", 1), form.choice("reason", REASONS)
    with_fee, metadata = form.flag("refund_application_fee"), form.metadata()
    form.flag("reverse_transfer")
    form.email("instructions_email")
    form.done()
    row = refunded_charge(call, charge, intent)
    if with_fee and row.fee_amount is None:
        raise Refusal("Cannot refund the application fee of a charge that has none.", param="refund_application_fee")
    if row.disputed and any(one.charge == row.id and not one.status.startswith("warning_") for one in call.book.disputes.values()):
        raise Refusal(f"Charge {row.id} has been charged back; cannot issue a refund.", code="charge_disputed")
    wanted = refundable(row, amount)
    return render_charge.refund(
        call.state,
        give_back(call.state, call.account, row, amount=wanted, reason=reason, metadata=metadata, with_fee=with_fee or False),
    )


def refunded_charge(call: Call, charge: str | None, intent: str | None) -> Charge:
    """The charge that is named, one way or the other."""
    if charge is None and intent is None:
        raise invalid(
            "One of the following params should be provided for this request: payment_intent or charge.", "charge", "parameter_missing"
        )
    if intent is not None:
        payment = found(call.book.intents, intent, "payment_intent", param="payment_intent")
        if payment.charge is None or (charge is not None and charge != payment.charge):
            raise Refusal("This PaymentIntent does not have a successful charge to refund.", param="payment_intent")
        charge = payment.charge
    row = call.book.charges.get(charge or "")
    if row is None:
        raise missing("charge", charge or "", param="charge")
    return row


def refundable(row: Charge, amount: int | None) -> int:
    """How much goes back, if it may."""
    rest = row.amount - row.amount_refunded
    if row.status != "succeeded":
        raise Refusal(f"Charge {row.id} was not successful and cannot be refunded.", code="charge_not_refundable", param="charge")
    if rest == 0:
        raise Refusal(f"Charge {row.id} has already been refunded.", code="charge_already_refunded")
    if amount is not None and amount > rest:
        asked, left = money(amount, row.currency), money(rest, row.currency)
        raise Refusal(
            f"Refund amount ({asked}) is greater than unrefunded amount on charge ({left})", code="amount_too_large", param="amount"
        )
    return rest if amount is None else amount


def money(amount: int, currency: str) -> str:
    """As people read it."""
    whole = f"{amount}" if currency in ("jpy", "krw", "clp", "vnd") else f"{amount // 100}.{amount % 100:02d}"
    return f"${whole}" if currency == "usd" else f"{whole} {currency.upper()}"


def retrieve_refund(call: Call, form: Form) -> Members:
    """One refund."""
    form.done()
    return render_charge.refund(call.state, found(call.book.refunds, call.ids[0], "refund"))


def update_refund(call: Call, form: Form) -> Members:
    """The account's words about it."""
    row = found(call.book.refunds, call.ids[0], "refund")
    metadata = form.metadata(row.metadata)
    form.done()
    row.metadata = metadata
    tell_refund(call.state, call.account, row, "refund.updated", "charge.refund.updated")
    return render_charge.refund(call.state, row)


def list_refunds(call: Call, form: Form) -> Members:
    """Newest first."""
    charge, intent = form.text("charge"), form.text("payment_intent")
    rows = {id: row for id, row in call.book.refunds.items() if charge in (None, row.charge) and intent in (None, row.intent)}
    return listed(
        form, rows, lambda row: render_charge.refund(call.state, row), url="/v1/refunds", kind="refund", when=lambda row: row.created
    )
