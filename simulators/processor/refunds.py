"""Refunds: money given back to payers, and the calls about it."""

from simulators.processor.application_fees import refund_application_fee
from simulators.processor.balance import book_transaction
from simulators.processor.call import (
    ApiCall,
    ApiNoun,
    CallForm,
    ProcessorRefusal,
    find_row,
    invalid_parameter,
    missing_row,
    null_members,
    row_members,
)
from simulators.processor.charges import CHARGES
from simulators.processor.fraud import close_review, find_open_review
from simulators.processor.state import Charge, JsonObject, ProcessorState, Refund

REFUND_FAILS_LAST4 = "5126"  # the card whose refunds fail
REFUND_REASONS = ("duplicate", "fraudulent", "requested_by_customer")


def refund_charge(
    state: ProcessorState, account: str, charge: Charge, *, amount: int, reason: str | None, metadata: dict[str, str], with_fee: bool
) -> Refund:
    """Refunds out of the balance, which may become negative."""
    previous: JsonObject = {"amount_refunded": charge.amount_refunded, "refunded": charge.amount_refunded == charge.amount}
    refund = Refund(state.new_id("re_"), state.now(), amount, charge.currency, charge.id, intent=charge.intent, reason=reason)
    refund.metadata = metadata
    book = state.book(account)
    book.refunds[refund.id] = refund
    txn = book_transaction(state, account, amount=-amount, currency=charge.currency, type="refund", source=refund.id)
    refund.txn = txn.id
    charge.amount_refunded += amount
    CHARGES.notify(state, account, charge, "charge.refunded", previous=previous)
    REFUNDS.notify(state, account, refund, "refund.created")
    if with_fee:
        refund_application_fee(state, account, charge)
    review = find_open_review(state, account, charge)
    if review is not None:
        close_review(state, account, review, "refunded_as_fraud" if reason == "fraudulent" else "refunded")
    if charge.last4 == REFUND_FAILS_LAST4:
        fail_refund(state, account, refund)
    return refund


def fail_refund(state: ProcessorState, account: str, refund: Refund, reason: str = "lost_or_stolen_card") -> None:
    """Fails a refund: the money is back in the balance."""
    charge = state.book(account).charges[refund.charge]
    txn = book_transaction(state, account, amount=refund.amount, currency=refund.currency, type="refund_failure", source=refund.id)
    refund.status, refund.failure_reason, refund.failure_txn = "failed", reason, txn.id
    charge.amount_refunded -= refund.amount
    REFUNDS.notify(state, account, refund, "refund.updated", "charge.refund.updated", "refund.failed")


REFUNDS = ApiNoun(
    "refund",
    "refunds",
    lambda book: book.refunds,
    lambda state, _, row: refund_json(state, row),
    filters={"charge": "charge", "payment_intent": "intent"},
)


def create_refund(call: ApiCall, form: CallForm) -> JsonObject:
    """Of a charge, or of the charge of a payment; without an amount, all the rest."""
    charge, intent = form.text("charge"), form.text("payment_intent")
    amount, reason = form.integer("amount", 1), form.choice("reason", REFUND_REASONS)
    with_fee, metadata = form.flag("refund_application_fee"), form.metadata()
    form.flag("reverse_transfer")
    form.email("instructions_email")
    form.done()
    row = _find_refunded_charge(call, charge, intent)
    if with_fee and row.fee_amount is None:
        raise ProcessorRefusal("Cannot refund the application fee of a charge that has none.", param="refund_application_fee")
    if row.disputed and any(one.charge == row.id and not one.status.startswith("warning_") for one in call.book.disputes.values()):
        raise ProcessorRefusal(f"Charge {row.id} has been charged back; cannot issue a refund.", code="charge_disputed")
    wanted = refundable_amount(row, amount)
    made = refund_charge(call.state, call.account, row, amount=wanted, reason=reason, metadata=metadata, with_fee=with_fee or False)
    return REFUNDS.answer(call, made)


def _find_refunded_charge(call: ApiCall, charge: str | None, intent: str | None) -> Charge:
    if charge is None and intent is None:
        raise invalid_parameter(
            "One of the following params should be provided for this request: payment_intent or charge.", "charge", "parameter_missing"
        )
    if intent is not None:
        payment = find_row(call.book.intents, intent, "payment_intent", param="payment_intent")
        if payment.charge is None or (charge is not None and charge != payment.charge):
            raise ProcessorRefusal("This PaymentIntent does not have a successful charge to refund.", param="payment_intent")
        charge = payment.charge
    row = call.book.charges.get(charge or "")
    if row is None:
        raise missing_row("charge", charge or "", param="charge")
    return row


def refundable_amount(row: Charge, amount: int | None) -> int:
    """The amount to refund: `amount`, or all the rest. Raises ProcessorRefusal where that is not possible."""
    rest = row.amount - row.amount_refunded
    if row.status != "succeeded":
        raise ProcessorRefusal(f"Charge {row.id} was not successful and cannot be refunded.", code="charge_not_refundable", param="charge")
    if rest == 0:
        raise ProcessorRefusal(f"Charge {row.id} has already been refunded.", code="charge_already_refunded")
    if amount is not None and amount > rest:
        asked, left = _refund_money_text(amount, row.currency), _refund_money_text(rest, row.currency)
        raise ProcessorRefusal(
            f"Refund amount ({asked}) is greater than unrefunded amount on charge ({left})", code="amount_too_large", param="amount"
        )
    return rest if amount is None else amount


def _refund_money_text(amount: int, currency: str) -> str:
    whole = f"{amount}" if currency in ("jpy", "krw", "clp", "vnd") else f"{amount // 100}.{amount % 100:02d}"
    return f"${whole}" if currency == "usd" else f"{whole} {currency.upper()}"


def update_refund(call: ApiCall, form: CallForm) -> JsonObject:
    row = REFUNDS.find(call)
    metadata = form.metadata(row.metadata)
    form.done()
    row.metadata = metadata
    return REFUNDS.change(call, row, "refund.updated", "charge.refund.updated")


def refund_json(state: ProcessorState, row: Refund) -> JsonObject:
    found: JsonObject = {
        **row_members(row, "id amount charge created currency reason status"),
        "object": "refund",
        "balance_transaction": row.txn,
        "destination_details": {
            "card": {"reference_status": "pending", "reference_type": "acquirer_reference_number", "type": "refund"},
            "type": "card",
        },
        "metadata": dict(row.metadata),
        "payment_intent": row.intent,
        **null_members("receipt_number source_transfer_reversal transfer_reversal"),
    }
    if row.failure_reason is not None:
        found |= {"failure_reason": row.failure_reason, "failure_balance_transaction": row.failure_txn}
    return found
