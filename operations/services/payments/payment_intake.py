"""A word of the processor's about an account's money, and what follows from it. To be called under the account's lock."""

from datetime import UTC, datetime

from clients.payments.records import ApplicationFee, Charge, Payout, Refund
from operations.deps import Deps
from operations.services.payments.charge_refunds import refresh_refunds
from operations.services.payments.commissions import record_platform_fee
from operations.services.payments.payment_attempts import settle_by_word
from operations.services.payments.payment_records import FeeRecord, Money, facts_of, record_of, shown
from operations.services.shop.order_payment import take_refunds
from storage.connection import Connection
from storage.money.payment_records import find_record, put_record


def take_word(connection: Connection, *, deps: Deps, account: str, organisation: str, thing: Money, as_of: float, now: float) -> bool:
    """Keep it where it is newer than what is known; True where it says something else.

    An old word may still tell that a refund or payout of ours was made at all.
    """
    given_back = refunded_fee(connection, account, thing) if isinstance(thing, ApplicationFee) else 0
    record = record_of(thing, account=account, organisation=organisation, as_of=as_of)
    known = find_record(connection, account=account, kind=facts_of(thing)[0], id=record.id)
    news = put_record(connection, record=record) and (known is None or known.body != record.body)
    match thing:
        case Refund() | Payout():
            settle_by_word(connection, deps=deps, account=account, thing=thing, now=now)
        case ApplicationFee():
            earn_fee(connection, deps=deps, organisation=organisation, fee=thing, now=now)
            take_back_fee(connection, deps=deps, organisation=organisation, fee=thing, before=given_back, now=now)
        case _:
            pass
    charge = thing.id if isinstance(thing, Charge) else thing.charge if isinstance(thing, Refund) else None
    if charge is not None:
        refresh_refunds(connection, account=account, charge=charge, now=now)
        take_refunds(connection, deps=deps, account=account, charge=charge, now=now)
    return news


def earn_fee(connection: Connection, *, deps: Deps, organisation: str, fee: ApplicationFee, now: float) -> None:
    """A platform fee is final when the processor has collected it.

    Choice: its own word about the fee is the only one that counts, for invoices and sales alike. What a payment says about itself is
    written by whoever has the account.
    """
    record_platform_fee(
        connection,
        ref=fee.id,
        organisation=organisation,
        month=month_of(fee.created),
        currency=fee.currency,
        amount=fee.amount,
        now=now,
        ids=deps.ids,
    )


def refunded_fee(connection: Connection, account: str, fee: ApplicationFee) -> int:
    """What was known to have been given back of it so far."""
    record = find_record(connection, account=account, kind="fee", id=fee.id)
    return 0 if record is None else shown(record, FeeRecord)["amount_refunded"]


def take_back_fee(connection: Connection, *, deps: Deps, organisation: str, fee: ApplicationFee, before: int, now: float) -> None:
    """What the service gave back of a fee since it was last told is a negative fee of the same month, an invoice's as well as a sale's."""
    after = refunded_fee(connection, fee.account, fee)
    if after > before:
        record_platform_fee(
            connection,
            ref=f"{fee.id}:refunded:{after}",
            organisation=organisation,
            month=month_of(fee.created),
            currency=fee.currency,
            amount=before - after,
            now=now,
            ids=deps.ids,
        )


def month_of(created: int) -> str:
    """The UTC month of a moment, YYYY-MM."""
    return datetime.fromtimestamp(created, UTC).strftime("%Y-%m")
