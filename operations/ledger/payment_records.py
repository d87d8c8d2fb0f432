"""Charges, refunds, disputes, payouts and application fees as we keep and show them, which word of one is the newest, which words are
events, and how much of a charge is refunded or may be soon.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias, TypeVar, cast, get_args

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.records import ApplicationFee, Charge, Dispute, Payout, Refund
from operations.deps import Deps
from operations.event_types.declaration import EventType, new_event
from operations.event_types.payment import (
    DISPUTE_CLOSED,
    DISPUTE_OPENED,
    PAYOUT_FAILED,
    PAYOUT_PAID,
    REFUND_DONE,
    REFUND_FAILED,
    DisputeEventData,
    PaymentAccountData,
    PayoutEventData,
    RefundEventData,
)
from operations.vocabulary import Currency, render_fields
from registry.ids import without_order_tokens
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.payment_records import (
    LinkedRecord,
    PaymentRecord,
    PaymentRecordKind,
    add_refund_reserved,
    find_payment_record,
    find_refunds,
    open_attempts_of,
    open_refunds,
    records_of_charge,
    set_refund_reserved,
)

ProcessorRecord: TypeAlias = Charge | Refund | Dispute | Payout | ApplicationFee
PaymentCents = Annotated[int, Field(description="Minor units (cents)")]
PaymentCurrency = Annotated[str, Field(description="ISO 4217, upper case")]
PaymentMoment = Annotated[int, Field(description="Unix seconds")]


def payment_amount_text(amount: int, currency: str) -> str:
    """Minor units for people: 5.00 EUR. Currencies that may have no hundredths are written as they are: 500 JPY in minor units."""
    hundredths = currency in get_args(Currency)
    return f"{amount // 100:,}.{amount % 100:02d} {currency}" if hundredths else f"{amount} {currency} in minor units"


class ChargeRecord(TypedDict):
    """A payment that a buyer made, or tried to. `invoice` and `order` are ours, where it paid one."""

    id: str
    object: Literal["charge"]
    amount: PaymentCents
    amount_refunded: PaymentCents
    currency: PaymentCurrency
    status: Literal["pending", "succeeded", "failed"]
    refunded: bool
    disputed: bool
    failure_code: str | None
    payment_intent: str | None
    application_fee: str | None
    invoice: str | None
    order: str | None
    created: PaymentMoment


class RefundRecord(TypedDict):
    """Money given back to a payer."""

    id: str
    object: Literal["refund"]
    amount: PaymentCents
    currency: PaymentCurrency
    status: Literal["pending", "requires_action", "succeeded", "failed", "canceled"]
    charge: str | None
    payment_intent: str | None
    reason: str | None
    failure_reason: str | None
    created: PaymentMoment


class DisputeRecord(TypedDict):
    """A payer's bank asks for the money back. `evidence_due_by`: until when it takes an answer."""

    id: str
    object: Literal["dispute"]
    amount: PaymentCents
    currency: PaymentCurrency
    status: str
    reason: str
    charge: str
    payment_intent: str | None
    evidence_due_by: int | None
    evidence_submissions: int
    created: PaymentMoment


class PayoutRecord(TypedDict):
    """Money sent to the account's bank, by the schedule (`automatic`) or by a call."""

    id: str
    object: Literal["payout"]
    amount: PaymentCents
    currency: PaymentCurrency
    status: Literal["pending", "in_transit", "paid", "failed", "canceled"]
    automatic: bool
    arrival_date: PaymentMoment
    failure_code: str | None
    created: PaymentMoment


class FeeRecord(TypedDict):
    """What the service kept of a charge, and gave back of it."""

    id: str
    object: Literal["application_fee"]
    amount: PaymentCents
    amount_refunded: PaymentCents
    currency: PaymentCurrency
    charge: str
    account: str
    created: PaymentMoment


ShownRecord = TypeVar("ShownRecord", ChargeRecord, RefundRecord, DisputeRecord, PayoutRecord, FeeRecord)
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
CLOSED_DISPUTE_STATUSES = frozenset({"warning_closed", "won", "lost", "prevented"})
FAILED_TRANSFER_STATUSES = frozenset({"failed", "canceled"})
INQUIRY_PREFIX = "warning_"
SOLD_NUMBER = re.compile(r"(onr|tuc)_[0-9a-z]{26}", re.ASCII)
# A status weighs more than any amount, and an amount more than a flag, in 63 bits.
STAGE_STATUS_WEIGHT, STAGE_AMOUNT_WEIGHT = 1 << 60, 2
EVIDENCE_COUNT_LIMIT = 999


def render_dispute(dispute: Dispute) -> DisputeRecord:
    """`dispute` as its owner sees it."""
    return render_fields(dispute, DisputeRecord, object="dispute")


def render_transfer(made: Refund | Payout) -> RefundRecord | PayoutRecord:
    """The refund or payout `made` as its owner sees it."""
    if isinstance(made, Refund):
        return render_fields(made, RefundRecord, object="refund")
    return render_fields(made, PayoutRecord, object="payout")


def payment_record_of(thing: ProcessorRecord, *, account: str, organisation: str, as_of: float) -> PaymentRecord:
    """The record of `thing` as it was at `as_of`, in Unix seconds."""
    kind, stage, charge, body = payment_record_facts(thing)
    text = orjson.dumps(body).decode()
    return PaymentRecord(account, kind, thing.id, organisation, thing.created, charge, text, as_of, stage)


def payment_record_facts(thing: ProcessorRecord) -> tuple[PaymentRecordKind, int, str | None, object]:
    """Its kind, how far along it is, the charge it belongs to (a charge: its payment), and how it is shown.

    Of two words of one second the one that is further along is the newer: nothing of it goes back within a second.
    """
    match thing:
        case Charge():
            stage = CHARGE_STAGES[thing.status] * STAGE_STATUS_WEIGHT + thing.amount_refunded * STAGE_AMOUNT_WEIGHT + thing.disputed
            # The number of the order or top-up that it paid. Checkouts of before name the order by its token, at the processor for ever.
            invoice, order = thing.metadata.get("invoice"), thing.metadata.get("order")
            order = None if order is None else without_order_tokens(order)
            return "charge", stage, thing.payment_intent, render_fields(thing, ChargeRecord, object="charge", invoice=invoice, order=order)
        case Refund():
            return "refund", REFUND_STAGES[thing.status], thing.charge, render_transfer(thing)
        case Dispute():
            sent = min(thing.evidence_submissions, EVIDENCE_COUNT_LIMIT)
            stage = DISPUTE_STAGES.get(thing.status, 0) * (EVIDENCE_COUNT_LIMIT + 1) + sent
            return "dispute", stage, thing.charge, render_dispute(thing)
        case Payout():
            return "payout", PAYOUT_STAGES[thing.status], None, render_transfer(thing)
        case ApplicationFee():
            return "fee", thing.amount_refunded, thing.charge, render_fields(thing, FeeRecord, object="application_fee")


def load_payment_record(record: PaymentRecord, _kind: type[ShownRecord]) -> ShownRecord:
    """The stored `record` as its owner sees it."""
    return cast(ShownRecord, orjson.loads(record.body))


PaymentDataT = TypeVar("PaymentDataT", RefundEventData, DisputeEventData, PayoutEventData, PaymentAccountData)


def log_payment_event(
    connection: Connection, deps: Deps, event_type: EventType[PaymentDataT], data: PaymentDataT, organisation: str, now: float
) -> None:
    """Writes an event of an organisation's money in the transaction that makes it true. `now`: Unix seconds."""
    event = new_event(event_type, data, organisation=organisation, ids=deps.ids, now=now, livemode=deps.payments.live)
    log_event(connection, event=event)


def log_record_event(
    connection: Connection, deps: Deps, thing: ProcessorRecord, record: PaymentRecord, old: str | None, now: float
) -> None:
    """Logs what `thing`, stored as `record`, says that its `old` status did not (None: it was not known). `now`: Unix seconds."""
    match thing:
        case Refund() if (refund_type := refund_event_type(thing.status, old)) is not None:
            order = order_of_charge(connection, record)
            refunded = render_fields(thing, RefundEventData, refund=thing.id, order=order)
            log_payment_event(connection, deps, refund_type, refunded, record.organisation, now)
        case Dispute() if (dispute_type := dispute_event_type(thing.status, old)) is not None:
            order = order_of_charge(connection, record)
            disputed = render_fields(thing, DisputeEventData, dispute=thing.id, order=order)
            log_payment_event(connection, deps, dispute_type, disputed, record.organisation, now)
        case Payout() if (payout_type := payout_event_type(thing.status, old)) is not None:
            log_payment_event(
                connection, deps, payout_type, render_fields(thing, PayoutEventData, payout=thing.id), record.organisation, now
            )
        case _:
            pass


def refund_event_type(status: str, old: str | None) -> EventType[RefundEventData] | None:
    if status in FAILED_TRANSFER_STATUSES:
        return None if old in FAILED_TRANSFER_STATUSES else REFUND_FAILED
    return REFUND_DONE if status == "succeeded" != old else None


def payout_event_type(status: str, old: str | None) -> EventType[PayoutEventData] | None:
    if status in FAILED_TRANSFER_STATUSES:
        return None if old in FAILED_TRANSFER_STATUSES else PAYOUT_FAILED
    return PAYOUT_PAID if status == "paid" != old else None


def dispute_event_type(status: str, old: str | None) -> EventType[DisputeEventData] | None:
    """Choice: an inquiry that becomes a dispute is opened once more, since money is taken for it from then on."""
    was_closed = old in CLOSED_DISPUTE_STATUSES
    if status in CLOSED_DISPUTE_STATUSES:
        return None if was_closed else DISPUTE_CLOSED
    grew = old is not None and old.startswith(INQUIRY_PREFIX) and not status.startswith(INQUIRY_PREFIX)
    return DISPUTE_OPENED if old is None or was_closed or grew else None


def order_of_charge(connection: Connection, record: PaymentRecord) -> str | None:
    """The order or top-up that the charge of a refund or a dispute paid.

    The account's owner may write anything as its name at the processor: what is no number of ours is left out.
    """
    charge = record.charge and find_payment_record(connection, account=record.account, kind="charge", id=record.charge)
    named = load_payment_record(charge, ChargeRecord)["order"] if charge else None
    return named if named is not None and SOLD_NUMBER.fullmatch(named) else None


def refunded_or_under_way(connection: Connection, account: str, charge: PaymentRecord) -> int:
    """The refunds that were made, as far as was told, and those of ours that are under way or whose outcome is unknown.

    The charge's own sum may know of refunds whose own words have not come yet; those that failed after it was told are no part of it.
    Were it too low all the same, the processor refuses what is too much.
    """
    refunds = records_of_charge(connection, account=account, kind="refund", charge=charge.id)
    attempts = open_attempts_of(connection, account=account, charge=charge.id)
    return refunded_amount(charge, refunds, under_way=sum(attempt.amount for attempt in attempts))


def refunded_amount(charge: PaymentRecord, refunds: Sequence[PaymentRecord | LinkedRecord], *, under_way: int = 0) -> int:
    """What was refunded of a charge by all words about it and its refunds. The processor does not tell of a charge when a refund fails."""
    made, fell = 0, 0
    for record in refunds:
        refund: RefundRecord = orjson.loads(record.body)
        if refund["status"] not in FAILED_TRANSFER_STATUSES:
            made += refund["amount"]
        elif record.as_of >= charge.as_of:
            fell += refund["amount"]
    return max(load_payment_record(charge, ChargeRecord)["amount_refunded"] - fell, made + under_way)


def refresh_charge_refunds(connection: Connection, *, account: str, charge: str, now: float) -> None:
    """Computes anew what is reserved of `charge`, where it was refunded through us before. `now`: Unix seconds."""
    held = find_refunds(connection, account=account, charge=charge)
    record = find_payment_record(connection, account=account, kind="charge", id=charge)
    if held is not None and record is not None:
        reserved = refunded_or_under_way(connection, account, record)
        if reserved != held.reserved:
            set_refund_reserved(connection, account=account, charge=charge, reserved=reserved, now=now)


def refundable_amount(connection: Connection, *, account: str, charge: str) -> int:
    """The minor units of `charge` that may still be refunded; 0 where it is not known."""
    record = find_payment_record(connection, account=account, kind="charge", id=charge)
    if record is None:
        return 0
    held = find_refunds(connection, account=account, charge=charge)
    amount = load_payment_record(record, ChargeRecord)["amount"]
    return max(0, amount - (refunded_or_under_way(connection, account, record) if held is None else held.reserved))


def reserve_refund(connection: Connection, *, account: str, charge: PaymentRecord, amount: int, now: float) -> bool:
    """Reserves `amount` minor units of what is left of `charge`, by one conditional statement; False where less is left."""
    whole: int = orjson.loads(charge.body)["amount"]
    reserved = refunded_or_under_way(connection, account, charge)
    open_refunds(connection, account=account, charge=charge.id, amount=whole, reserved=reserved, now=now)
    return add_refund_reserved(connection, account=account, charge=charge.id, amount=amount, now=now)
