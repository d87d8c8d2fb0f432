"""Platform fees, and the affiliates' shares of them."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    StatementBuild,
    TableDescription,
    all_rows,
    changes_one,
    first_row,
    insert_once,
)


class PlatformFee(NamedTuple):
    """A fee that an organisation owes for a month, or has taken back: minor units. `ref` names what it came from."""

    ref: Key
    organisation: Annotated[str, Field(index=True)]
    month: str
    currency: str
    amount: BigInt
    created: float


class PlatformFeeTable(TableDescription, row=PlatformFee, table=True):
    """A platform fee that an organisation owes: what commissions are made of. `ref` makes a repeated record have no effect."""


class Commission(NamedTuple):
    """An affiliate's share of one organisation's fees of one month."""

    id: Annotated[str, Field(unique=True)]
    month: str
    organisation: str
    currency: str
    fees: BigInt
    amount: BigInt


class CommissionTable(TableDescription, row=Commission, table=True):
    """An affiliate's share of one referred organisation's fees of one month; amounts in minor units."""

    affiliate: str
    updated: float
    __table_args__ = (sa.PrimaryKeyConstraint("affiliate", "month", "currency", "organisation"),)


PLATFORM_FEE = PlatformFeeTable.table

COMMISSION = CommissionTable.table

RATE_BPS = 1000

WHOLE_BPS = 10_000


class EarnedTotal(NamedTuple):
    """The sum of an affiliate's shares in one currency."""

    currency: str
    amount: int


class CommissionPlace(NamedTuple):
    month: str
    id: str


COMMISSION_KEY = ("affiliate", "month", "currency", "organisation")

# Sort behind every month and every id of today's alphabet.
LAST_COMMISSION_PLACE = CommissionPlace("9999-12", "com_" + "z" * 27)


def add_commission_query(dialect: Dialect) -> sa.Executable:
    """The fee on top of those that the row has; the share is worked out anew from the sum, on the row as it is then."""
    names = (*COMMISSION_KEY, "id", "fees", "amount", "updated")
    insert = dialect.insert(COMMISSION).values({name: sa.bindparam(name) for name in names})
    fees = COMMISSION.c.fees + insert.excluded.fees
    share = sa.case((fees > 0, (fees * RATE_BPS + WHOLE_BPS // 2) // WHOLE_BPS), else_=0)
    return insert.on_conflict_do_update(
        index_elements=COMMISSION_KEY, set_={"fees": fees, "amount": share, "updated": insert.excluded.updated}
    )


ADD_COMMISSION = Command(add_commission_query)

COMMISSION_IS_MINE = COMMISSION.c.affiliate == sa.bindparam("affiliate")


def affiliate_share(fees: int) -> int:
    """The share of a month's fees, half-up in minor units.

    Choice: a month whose fees were taken back earns nothing, and never less than nothing: what other months earned stays earned.
    """
    return (max(fees, 0) * RATE_BPS + WHOLE_BPS // 2) // WHOLE_BPS


@changes_one
def insert_fee(*, fee: PlatformFee) -> StatementBuild:
    """Insert a fee; False when a fee with its `ref` was there already."""
    return insert_once(PLATFORM_FEE, key=["ref"], **fee._asdict())


def add_to_commission(connection: Connection, *, id: str, affiliate: str, fee: PlatformFee) -> None:
    """Count the fee towards the affiliate's share of its month; `id` is the row's where it is the first."""
    connection.run(
        ADD_COMMISSION,
        id=id,
        affiliate=affiliate,
        month=fee.month,
        currency=fee.currency,
        organisation=fee.organisation,
        fees=fee.amount,
        amount=affiliate_share(fee.amount),
        updated=fee.created,
    )


@first_row(CommissionPlace)
def commission_place(*, affiliate: str, commission: str) -> sa.Executable:
    """The place of one of the affiliate's commissions in its list; None where it has no such one."""
    return sa.select(COMMISSION.c.month, COMMISSION.c.id).where(COMMISSION_IS_MINE, COMMISSION.c.id == commission)


@all_rows(Commission)
def list_commissions(*, affiliate: str, after: CommissionPlace = LAST_COMMISSION_PLACE, most: int) -> sa.Executable:
    """At most `most` commissions behind the place `after`, the newest month first."""
    return (
        sa.select(*(COMMISSION.c[name] for name in Commission._fields))
        .where(
            COMMISSION_IS_MINE,
            (COMMISSION.c.month < after.month) | ((COMMISSION.c.month == after.month) & (COMMISSION.c.id < after.id)),
        )
        .order_by(COMMISSION.c.month.desc(), COMMISSION.c.id.desc())
        .limit(most)
    )


@all_rows(EarnedTotal)
def earned_totals(*, affiliate: str) -> sa.Executable:
    """The sums of all the affiliate's shares, one for each currency, in minor units."""
    return (
        sa.select(COMMISSION.c.currency, sa.cast(sa.func.sum(COMMISSION.c.amount), sa.BigInteger).label("amount"))
        .where(COMMISSION_IS_MINE)
        .group_by(COMMISSION.c.currency)
        .order_by(COMMISSION.c.currency)
    )
