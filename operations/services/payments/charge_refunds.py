"""What of a charge is refunded, or may be soon: worked out from all that is known, under the account's lock."""

from collections.abc import Sequence

import orjson

from operations.services.payments.payment_records import GONE, ChargeRecord, RefundRecord, shown
from storage.connection import Connection
from storage.money.charge_refunds import find_refunds, open_refunds, set_reserved, take_refund
from storage.money.payment_attempts import open_attempts_of
from storage.money.payment_records import Linked, PaymentRecord, find_record, records_of


def known_refunded(connection: Connection, account: str, charge: PaymentRecord) -> int:
    """The refunds that were made, as far as was told, and those of ours that are under way or whose outcome is unknown.

    The charge's own sum may know of refunds whose own words have not come yet; those that failed after it was told are no part of it.
    Were it too low all the same, the processor refuses what is too much.
    """
    refunds = records_of(connection, account=account, kind="refund", charge=charge.id)
    attempts = open_attempts_of(connection, account=account, charge=charge.id)
    return refunded_of(charge, refunds, under_way=sum(attempt.amount for attempt in attempts))


def refunded_of(charge: PaymentRecord, refunds: Sequence[PaymentRecord | Linked], *, under_way: int = 0) -> int:
    """What was refunded of a charge by all words about it and its refunds. The processor does not tell of a charge when a refund fails."""
    made, fell = 0, 0
    for record in refunds:
        refund: RefundRecord = orjson.loads(record.body)
        if refund["status"] not in GONE:
            made += refund["amount"]
        elif record.as_of >= charge.as_of:
            fell += refund["amount"]
    return max(shown(charge, ChargeRecord)["amount_refunded"] - fell, made + under_way)


def refresh_refunds(connection: Connection, *, account: str, charge: str, now: float) -> None:
    """Something of a charge has changed. One that was never refunded through us is worked out when it is."""
    held = find_refunds(connection, account=account, charge=charge)
    record = find_record(connection, account=account, kind="charge", id=charge)
    if held is not None and record is not None:
        reserved = known_refunded(connection, account, record)
        if reserved != held.reserved:
            set_reserved(connection, account=account, charge=charge, reserved=reserved, now=now)


def left_of(connection: Connection, *, account: str, charge: str) -> int:
    """What may still be refunded of a charge that is known."""
    record = find_record(connection, account=account, kind="charge", id=charge)
    if record is None:
        return 0
    held = find_refunds(connection, account=account, charge=charge)
    amount = shown(record, ChargeRecord)["amount"]
    return max(0, amount - (known_refunded(connection, account, record) if held is None else held.reserved))


def reserve(connection: Connection, *, account: str, charge: PaymentRecord, amount: int, now: float) -> bool:
    """Take it of what is left, by one conditional statement."""
    whole: int = orjson.loads(charge.body)["amount"]
    reserved = known_refunded(connection, account, charge)
    open_refunds(connection, account=account, charge=charge.id, amount=whole, reserved=reserved, now=now)
    return take_refund(connection, account=account, charge=charge.id, amount=amount, now=now)
