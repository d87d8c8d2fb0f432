"""Commissions: what an affiliate earns from the platform fees of those it brought."""

from datetime import UTC, datetime

from registry.ids import Ids
from storage.connection import Connection
from storage.money.commissions import PlatformFee, add_to_commission, insert_fee
from storage.people.affiliates import referral_of

MONTHS = 12


def record_platform_fee(
    connection: Connection, *, ref: str, organisation: str, month: str, currency: str, amount: int, now: float, ids: Ids
) -> None:
    """Keep a fee that has become final, and give its affiliate the share; to be called inside the write that makes it final.

    `ref` names what the fee came from: recorded again it has no effect. A fee that is taken back is a negative amount with a `ref`
    of its own. `month` is `YYYY-MM`, `amount` in minor units of `currency`.
    """
    fee = PlatformFee(ref, organisation, month, currency, amount, now)
    if not insert_fee(connection, fee=fee):
        return
    referral = referral_of(connection, organisation=organisation)
    if referral is not None and earns(month, referral.created):
        add_to_commission(connection, id=ids.new("com_"), affiliate=referral.affiliate, fee=fee)


def earns(month: str, referred: float) -> bool:
    """Whether fees of the month earn a commission.

    Choice: twelve calendar months, in UTC: the one in which the organisation was referred, whole, and the eleven after it.
    """
    began = datetime.fromtimestamp(referred, UTC)
    return 0 <= number_of(month) - (began.year * 12 + began.month) < MONTHS


def number_of(month: str) -> int:
    """Months since the year 0 of a `YYYY-MM`."""
    year, _, rest = month.partition("-")
    return int(year) * 12 + int(rest)
