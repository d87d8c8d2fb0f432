"""Charges, refunds, disputes, payouts and application fees as we keep and show them, and which word of one is the newest."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, TypeVar, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.records import ApplicationFee, Charge, Dispute, Payout, Refund
from registry.order_numbers import without_tokens
from storage.money.payment_records import Kind, PaymentRecord

Money: TypeAlias = Charge | Refund | Dispute | Payout | ApplicationFee
Amount = Annotated[int, Field(description="Minor units (cents)")]
Code = Annotated[str, Field(description="ISO 4217, upper case")]
Moment = Annotated[int, Field(description="Unix seconds")]


class ChargeRecord(TypedDict):
    """A payment that a buyer made, or tried to. `invoice` and `order` are ours, where it paid one."""

    id: str
    object: Literal["charge"]
    amount: Amount
    amount_refunded: Amount
    currency: Code
    status: Literal["pending", "succeeded", "failed"]
    refunded: bool
    disputed: bool
    failure_code: str | None
    payment_intent: str | None
    application_fee: str | None
    invoice: str | None
    order: str | None
    created: Moment


class RefundRecord(TypedDict):
    """Money given back to a payer."""

    id: str
    object: Literal["refund"]
    amount: Amount
    currency: Code
    status: Literal["pending", "requires_action", "succeeded", "failed", "canceled"]
    charge: str | None
    payment_intent: str | None
    reason: str | None
    failure_reason: str | None
    created: Moment


class DisputeRecord(TypedDict):
    """A payer's bank asks for the money back. `evidence_due_by`: until when it takes an answer."""

    id: str
    object: Literal["dispute"]
    amount: Amount
    currency: Code
    status: str
    reason: str
    charge: str
    payment_intent: str | None
    evidence_due_by: int | None
    evidence_submissions: int
    created: Moment


class PayoutRecord(TypedDict):
    """Money sent to the account's bank, by the schedule (`automatic`) or by a call."""

    id: str
    object: Literal["payout"]
    amount: Amount
    currency: Code
    status: Literal["pending", "in_transit", "paid", "failed", "canceled"]
    automatic: bool
    arrival_date: Moment
    failure_code: str | None
    created: Moment


class FeeRecord(TypedDict):
    """What the service kept of a charge, and gave back of it."""

    id: str
    object: Literal["application_fee"]
    amount: Amount
    amount_refunded: Amount
    currency: Code
    charge: str
    account: str
    created: Moment


Shown = TypeVar("Shown", ChargeRecord, RefundRecord, DisputeRecord, PayoutRecord, FeeRecord)
CHARGE_STAGES: Mapping[str, int] = {"pending": 0, "succeeded": 1, "failed": 1}
REFUND_STAGES: Mapping[str, int] = {"pending": 0, "requires_action": 1, "succeeded": 2, "failed": 3, "canceled": 3}
PAYOUT_STAGES: Mapping[str, int] = {"pending": 0, "in_transit": 1, "paid": 2, "failed": 3, "canceled": 3}
DISPUTE_STAGES: Mapping[str, int] = {
    "warning_needs_response": 0,
    "warning_under_review": 1,
    "warning_closed": 2,
    "needs_response": 3,
    "under_review": 4,
    "won": 5,
    "lost": 5,
    "prevented": 5,
}
CLOSED = frozenset({"warning_closed", "won", "lost", "prevented"})
GONE = frozenset({"failed", "canceled"})
# A status weighs more than any amount, and an amount more than a flag, in 63 bits.
STATUS, AMOUNT = 1 << 60, 2
MOST_COUNTED = 999


def order_of(charge: Charge) -> str | None:
    """The number of the order or top-up that a charge paid. Checkouts of before name the order by its token, at the processor for ever."""
    named = charge.metadata.get("order")
    return None if named is None else without_tokens(named)


def charge_shown(charge: Charge) -> ChargeRecord:
    """A charge, with what of ours it paid."""
    return {
        "id": charge.id,
        "object": "charge",
        "amount": charge.amount,
        "amount_refunded": charge.amount_refunded,
        "currency": charge.currency,
        "status": charge.status,
        "refunded": charge.refunded,
        "disputed": charge.disputed,
        "failure_code": charge.failure_code,
        "payment_intent": charge.payment_intent,
        "application_fee": charge.application_fee,
        "invoice": charge.metadata.get("invoice"),
        "order": order_of(charge),
        "created": charge.created,
    }


def refund_shown(refund: Refund) -> RefundRecord:
    """A refund."""
    return {
        "id": refund.id,
        "object": "refund",
        "amount": refund.amount,
        "currency": refund.currency,
        "status": refund.status,
        "charge": refund.charge,
        "payment_intent": refund.payment_intent,
        "reason": refund.reason,
        "failure_reason": refund.failure_reason,
        "created": refund.created,
    }


def dispute_shown(dispute: Dispute) -> DisputeRecord:
    """A dispute."""
    return {
        "id": dispute.id,
        "object": "dispute",
        "amount": dispute.amount,
        "currency": dispute.currency,
        "status": dispute.status,
        "reason": dispute.reason,
        "charge": dispute.charge,
        "payment_intent": dispute.payment_intent,
        "evidence_due_by": dispute.evidence_due_by,
        "evidence_submissions": dispute.evidence_submissions,
        "created": dispute.created,
    }


def payout_shown(payout: Payout) -> PayoutRecord:
    """A payout."""
    return {
        "id": payout.id,
        "object": "payout",
        "amount": payout.amount,
        "currency": payout.currency,
        "status": payout.status,
        "automatic": payout.automatic,
        "arrival_date": payout.arrival_date,
        "failure_code": payout.failure_code,
        "created": payout.created,
    }


def fee_shown(fee: ApplicationFee) -> FeeRecord:
    """An application fee."""
    return {
        "id": fee.id,
        "object": "application_fee",
        "amount": fee.amount,
        "amount_refunded": fee.amount_refunded,
        "currency": fee.currency,
        "charge": fee.charge,
        "account": fee.account,
        "created": fee.created,
    }


def record_of(thing: Money, *, account: str, organisation: str, as_of: float) -> PaymentRecord:
    """A word about a thing, as of the second in which it was true."""
    kind, stage, charge, body = facts_of(thing)
    text = orjson.dumps(body).decode()
    return PaymentRecord(account, kind, thing.id, organisation, thing.created, charge, text, as_of, stage)


def facts_of(thing: Money) -> tuple[Kind, int, str | None, object]:
    """Its kind, how far along it is, the charge it belongs to (a charge: its payment), and how it is shown.

    Of two words of one second the one that is further along is the newer: nothing of it goes back within a second.
    """
    match thing:
        case Charge():
            stage = CHARGE_STAGES[thing.status] * STATUS + thing.amount_refunded * AMOUNT + thing.disputed
            return "charge", stage, thing.payment_intent, charge_shown(thing)
        case Refund():
            return "refund", REFUND_STAGES[thing.status], thing.charge, refund_shown(thing)
        case Dispute():
            sent = min(thing.evidence_submissions, MOST_COUNTED)
            stage = DISPUTE_STAGES.get(thing.status, 0) * (MOST_COUNTED + 1) + sent
            return "dispute", stage, thing.charge, dispute_shown(thing)
        case Payout():
            return "payout", PAYOUT_STAGES[thing.status], None, payout_shown(thing)
        case ApplicationFee():
            return "fee", thing.amount_refunded, thing.charge, fee_shown(thing)


def shown(record: PaymentRecord, kind: type[Shown]) -> Shown:
    """A kept record as its owner sees it."""
    del kind
    return cast(Shown, orjson.loads(record.body))
